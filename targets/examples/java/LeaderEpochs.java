import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A target for `kafkaspec judge`, to begin from: a leader epoch cache. It needs nothing but a JDK:
 *
 * <pre>
 *   javac -d targets/examples/java/out targets/examples/java/*.java
 *   kafkaspec judge --target "java -cp targets/examples/java/out LeaderEpochs" leader_epochs
 * </pre>
 *
 * <p>Put your own class in the place of this one; {@link Serve} stays as it is. See docs/judge.md and docs/protocol.md.
 */
public class LeaderEpochs implements Serve.Subsystem {
    /** Where each leader epoch began in a log: both rise from entry to entry. */
    record Entry(long epoch, long startOffset) {}

    protected final List<Entry> entries = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Serve.run("Leader epochs in Java", "1", Map.of("leader_epochs", new LeaderEpochs()));
    }

    @Override
    public List<String> operations() {
        return List.of("assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "clearAndFlush",
            "endOffsetFor", "epochForOffset");
    }

    /** A new history. This class has no use for the configuration. */
    @Override
    public void init(Map<String, Object> configuration) {
        entries.clear();
    }

    /** What the judge compares after a call. `file` and `scheduled` are left out: nothing is written here. */
    @Override
    public Object observe() {
        Map<String, Object> state = new HashMap<>();
        state.put("entries", entries.stream().map(e -> List.of(e.epoch, e.startOffset)).toList());
        state.put("latestEpoch", entries.isEmpty() ? null : latest().epoch);
        return state;
    }

    @Override
    public Object apply(String op, Map<String, Object> a) {
        switch (op) {
            case "assign" -> assign(new Entry((long) a.get("epoch"), (long) a.get("startOffset")));
            case "truncateFromEndAsyncFlush" -> truncateFromEnd((long) a.get("endOffset"));
            case "truncateFromStartAsyncFlush" -> truncateFromStart((long) a.get("startOffset"));
            case "clearAndFlush" -> entries.clear();
            case "endOffsetFor" -> {
                Entry end = endOffsetFor((long) a.get("requestedEpoch"), (long) a.get("logEndOffset"));
                return Map.of("epoch", end.epoch, "endOffset", end.startOffset);
            }
            case "epochForOffset" -> {
                return epochForOffset((long) a.get("offset"));
            }
            default -> throw new Serve.UnknownOperation();
        }
        return null;
    }

    protected Entry latest() {
        return entries.get(entries.size() - 1);
    }

    /** Whatever is thrown is a refusal. */
    protected void assign(Entry entry) {
        if (entry.epoch < 0 || entry.startOffset < 0) {
            throw new IllegalArgumentException();
        }
        if (!entries.isEmpty() && latest().epoch == entry.epoch && latest().startOffset <= entry.startOffset) {
            return;
        }
        while (!entries.isEmpty()
            && (latest().epoch >= entry.epoch || latest().startOffset >= entry.startOffset)) {
            entries.remove(entries.size() - 1);
        }
        entries.add(entry);
    }

    protected void truncateFromEnd(long endOffset) {
        entries.removeIf(e -> endOffset >= 0 && e.startOffset >= endOffset);
    }

    protected void truncateFromStart(long startOffset) {
        Entry last = null;
        while (!entries.isEmpty() && entries.get(0).startOffset <= startOffset) {
            last = entries.remove(0);
        }
        if (last != null) {
            entries.add(0, new Entry(last.epoch, startOffset));
        }
    }

    protected Entry endOffsetFor(long requested, long logEndOffset) {
        if (requested == -1 || entries.isEmpty() || requested > latest().epoch) {
            return new Entry(-1, -1);
        }
        if (requested == latest().epoch) {
            return new Entry(requested, logEndOffset);
        }
        long known = requested;
        for (Entry e : entries) {
            if (e.epoch > requested) {
                return new Entry(known, e.startOffset);
            }
            known = e.epoch;
        }
        throw new AssertionError("the latest epoch is higher");
    }

    protected Long epochForOffset(long offset) {
        Long found = null;
        for (Entry e : entries) {
            found = e.startOffset <= offset ? (Long) e.epoch : found;
        }
        return found;
    }
}
