package kafkaspec.target;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * A producer state manager of any release over its directory of snapshots. What an operation does is Kafka's, behind
 * the abstract methods; here are the clock, the files, the numbering of verification guards, and the JSON.
 *
 * <p>{@code appendDataBatch} and {@code appendEndTxnMarker} are what the manager does with a batch, with the calls that
 * a log makes around it; {@code produce} and {@code endTransaction} are a log's own append.
 */
public abstract class ProducerState implements Adapter {
    protected static final long FIRST_NOW = 1_000_000;
    protected static final long NO_GUARD = 0;
    private static final String SUFFIX = ".snapshot";

    public record Config(int maxTransactionTimeoutMs, int producerIdExpirationMs, boolean verification) {
    }

    public record Data(long producerId, String origin, short epoch, int firstSequence, int lastSequence,
                          long firstOffset, long lastOffset, long timestamp, boolean transactional, long guard) {
        public int count() {
            return (int) (lastOffset - firstOffset + 1);
        }
    }

    public record Marker(long producerId, String origin, String type, int coordinatorEpoch, short epoch, long offset,
                            long timestamp, short transactionVersion) {
    }

    /** A transaction that a marker ended, and the last stable offset of its entry in the transaction index. */
    public record Ended(long producerId, long firstOffset, long lastOffset, boolean aborted, long lastStableOffset) {
    }

    /** A batch is first and last sequence, first and last offset, timestamp. */
    public record Producer(long id, short epoch, int coordinatorEpoch, long lastTimestamp, int lastSequence,
                              Long transaction, List<long[]> batches) {
    }

    public record Verification(int lowestSequence, short epoch, boolean supportsEpochBump, long timestamp) {
    }

    public record Shown(long mapEndOffset, Long firstUnstableOffset, Long firstUndecidedOffset,
                           List<Producer> producers, boolean hasLateTransaction) {
    }

    private final Scratch scratch = new Scratch("producer-state");
    private final List<Object> guards = new ArrayList<>();
    private final TreeSet<Long> verified = new TreeSet<>(); // the producers that were: the manager does not list them
    private Path file;
    private Config config;
    protected Path directory;
    protected long now = FIRST_NOW;

    /** A new manager over {@code directory}; it loads nothing yet. */
    protected abstract void open(Config config) throws Exception;

    /** The first offsets of the transactions that the batch opened. */
    protected abstract List<Long> appendDataBatch(Data data) throws Exception;

    /** Null: it ended none. */
    protected abstract Ended appendEndTxnMarker(Marker marker) throws Exception;

    /** The answer: {@link #duplicate} or {@link #started}. */
    protected abstract Object produce(Data data) throws Exception;

    protected abstract Ended endTransaction(Marker marker) throws Exception;

    protected abstract long[] findDuplicateBatch(long producerId, short epoch, int firstSequence, int lastSequence)
        throws Exception;

    protected abstract void onHighWatermarkUpdated(long highWatermark);

    protected abstract void removeExpiredProducers(long currentTimeMs);

    protected abstract void takeSnapshot() throws Exception;

    protected abstract void truncateAndReload(long logStartOffset, long logEndOffset, long currentTimeMs)
        throws Exception;

    protected abstract void truncateFullyAndStartAt(long offset) throws Exception;

    protected abstract void onLogStartOffsetIncremented(long logStartOffset);

    protected abstract void deleteSnapshotsBefore(long offset) throws Exception;

    protected abstract void removeStraySnapshots(List<Long> segmentBaseOffsets) throws Exception;

    /** The fields of an entry as the file has them, in its order. */
    protected abstract void writeSnapshot(File file, List<long[]> entries) throws Exception;

    protected abstract List<long[]> readSnapshot(File file) throws Exception;

    /**
     * What another manager, over a directory that is not there, knows after it was made to read, as a log is read again, one
     * control batch without a record: as the cleaner leaves it, whose header these are.
     */
    protected abstract List<Producer> readEmptiedMarker(File directory, ByteBuffer into, long producerId, short epoch,
                                                        long offset, long timestamp) throws Exception;

    protected abstract Shown shown() throws Exception;

    /** Whether the manager knows of the snapshot file at that offset. */
    protected abstract boolean knowsSnapshot(long offset);

    /** The offsets of the latest and of the oldest snapshot file that the manager knows of. */
    protected abstract List<Long> latestAndOldestSnapshot();

    /** Null: there is none. */
    protected Verification verification(long producerId) {
        return null;
    }

    /** Whether the release has verifications, and says whether a transaction is late. */
    protected abstract boolean verifies();

    protected abstract boolean knowsLateTransactions();

    protected Verification maybeCreateVerification(long producerId, int sequence, short epoch, boolean epochBump) {
        throw new UnknownOperation("maybeCreateVerificationStateEntry");
    }

    protected void clearVerification(long producerId) {
        throw new UnknownOperation("clearVerificationStateEntry");
    }

    /** Null: none is needed. */
    protected Object startVerification(long producerId, int sequence, short epoch, boolean epochBump) throws Exception {
        throw new UnknownOperation("startVerification");
    }

    /** The guard of the producer's verification, for its number. */
    protected Object guardOf(long producerId) {
        return null;
    }

    /** Kafka's guard of that number; null for none. */
    protected final Object guard(long number) {
        return number == NO_GUARD ? null : guards.get((int) number - 1);
    }

    private long number(Object guard) {
        if (guard == null) {
            return NO_GUARD;
        }
        if (!guards.contains(guard)) {
            guards.add(guard);
        }
        return guards.indexOf(guard) + 1;
    }

    protected static Object duplicate(long... batch) {
        return Map.of("duplicate", batch);
    }

    protected static Object started(List<Long> firstOffsets) {
        return Map.of("startedTransactions", List.copyOf(firstOffsets));
    }

    @Override
    public void init(JsonNode args) throws Exception {
        if (directory == null) {
            directory = scratch.directory("t-0");
            file = scratch.directory("file").resolve("a" + SUFFIX);
        }
        for (File old : directory.toFile().listFiles()) {
            Files.delete(old.toPath());
        }
        now = FIRST_NOW;
        guards.clear();
        verified.clear();
        config = new Config(
            args.path("maxTransactionTimeoutMs").asInt(300_000),
            args.path("producerIdExpirationMs").asInt(86_400_000),
            args.path("transactionVerificationEnabled").asBoolean(true));
        open(config);
    }

    @Override
    public Object apply(String op, JsonNode args) throws Throwable {
        switch (op) {
            case "appendDataBatch":
                return started(appendDataBatch(data(args)));
            case "appendEndTxnMarker":
                return ended(appendEndTxnMarker(marker(args)));
            case "produce":
                return produce(data(args));
            case "endTransaction":
                return ended(endTransaction(marker(args)));
            case "findDuplicateBatch":
                return findDuplicateBatch(number(args, "producerId"), (short) number(args, "producerEpoch"),
                    (int) number(args, "firstSeq"), (int) number(args, "lastSeq"));
            case "maybeCreateVerificationStateEntry": {
                long id = verified(args);
                Verification v = maybeCreateVerification(id, (int) number(args, "sequence"),
                    (short) number(args, "epoch"), args.get("supportsEpochBump").booleanValue());
                number(guardOf(id));
                return verification(v, false);
            }
            case "clearVerificationStateEntry":
                clearVerification(number(args, "producerId"));
                return null;
            case "startVerification":
                return number(startVerification(verified(args), (int) number(args, "sequence"),
                    (short) number(args, "epoch"), args.get("supportsEpochBump").booleanValue()));
            case "onHighWatermarkUpdated":
                onHighWatermarkUpdated(number(args, "highWatermark"));
                return null;
            case "removeExpiredProducers":
                removeExpiredProducers(number(args, "currentTimeMs"));
                return null;
            case "advance":
                now += number(args, "ms");
                return null;
            case "takeSnapshot":
                takeSnapshot();
                return null;
            case "truncateAndReload":
                truncateAndReload(number(args, "logStartOffset"), number(args, "logEndOffset"),
                    number(args, "currentTimeMs"));
                return null;
            case "truncateFullyAndStartAt":
                truncateFullyAndStartAt(number(args, "offset"));
                return null;
            case "onLogStartOffsetIncremented":
                onLogStartOffsetIncremented(number(args, "logStartOffset"));
                return null;
            case "deleteSnapshotsBefore":
                deleteSnapshotsBefore(number(args, "offset"));
                return null;
            case "removeStraySnapshots": {
                List<Long> bases = new ArrayList<>();
                args.get("segmentBaseOffsets").forEach(x -> bases.add(x.longValue()));
                removeStraySnapshots(bases);
                return null;
            }
            case "reopen": // another process looks at the directory
                open(config);
                return null;
            case "corruptSnapshot": {
                Path snapshot = directory.resolve(String.format("%020d", number(args, "offset")) + SUFFIX);
                byte[] bytes = Files.readAllBytes(snapshot);
                bytes[0] = (byte) 255;
                Files.write(snapshot, bytes);
                return null;
            }
            case "readEmptiedMarker":
                return producer(readEmptiedMarker(file.getParent().resolve("none").toFile(), ByteBuffer.allocate(64),
                    number(args, "producerId"), (short) number(args, "producerEpoch"), number(args, "offset"),
                    number(args, "timestamp")).get(0));
            case "writeSnapshot": {
                List<long[]> entries = new ArrayList<>();
                for (JsonNode e : args.get("entries")) {
                    long[] fields = new long[e.size()];
                    for (int n = 0; n < fields.length; n++) {
                        fields[n] = e.get(n).longValue();
                    }
                    entries.add(fields);
                }
                Files.deleteIfExists(file);
                writeSnapshot(file.toFile(), entries);
                return HexFormat.of().formatHex(Files.readAllBytes(file));
            }
            case "readSnapshot":
                Files.write(file, HexFormat.of().parseHex(args.get("file").textValue()));
                return readSnapshot(file.toFile());
            default:
                throw new UnknownOperation(op);
        }
    }

    private long verified(JsonNode args) {
        long producerId = number(args, "producerId");
        verified.add(producerId);
        return producerId;
    }

    private static long number(JsonNode args, String name) {
        return args.get(name).longValue();
    }

    private static Data data(JsonNode args) {
        return new Data(number(args, "producerId"), args.get("origin").textValue(),
            (short) number(args, "producerEpoch"), (int) number(args, "firstSeq"), (int) number(args, "lastSeq"),
            number(args, "firstOffset"), number(args, "lastOffset"), number(args, "timestamp"),
            args.get("transactional").booleanValue(), args.path("guard").longValue());
    }

    private static Marker marker(JsonNode args) {
        return new Marker(number(args, "producerId"), args.get("origin").textValue(), args.get("type").textValue(),
            (int) number(args, "coordinatorEpoch"), (short) number(args, "producerEpoch"), number(args, "offset"),
            number(args, "timestamp"), (short) args.path("transactionVersion").asInt(-1));
    }

    private static Object ended(Ended e) {
        if (e == null) {
            return null;
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("producerId", e.producerId());
        out.put("firstOffset", e.firstOffset());
        out.put("lastOffset", e.lastOffset());
        out.put("isAborted", e.aborted());
        out.put("lastStableOffset", e.lastStableOffset());
        return out;
    }

    private static Map<String, Object> verification(Verification v, boolean withTimestamp) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("lowestSequence", v.lowestSequence());
        out.put("epoch", v.epoch());
        out.put("supportsEpochBump", v.supportsEpochBump());
        if (withTimestamp) {
            out.put("timestamp", v.timestamp());
        }
        return out;
    }

    /** Those of the files on the disk that the manager knows of, and the ends of what it knows of. */
    private TreeSet<Long> snapshots() throws IOException {
        TreeSet<Long> out = new TreeSet<>(latestAndOldestSnapshot());
        for (String name : directory.toFile().list()) {
            if (name.endsWith(SUFFIX)) {
                long offset = Long.parseLong(name.substring(0, name.length() - SUFFIX.length()));
                if (knowsSnapshot(offset)) {
                    out.add(offset);
                }
            }
        }
        return out;
    }

    private static Map<String, Object> producer(Producer p) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("producerId", p.id());
        out.put("epoch", p.epoch());
        out.put("coordinatorEpoch", p.coordinatorEpoch());
        out.put("lastTimestamp", p.lastTimestamp());
        out.put("lastSeq", p.lastSequence());
        out.put("currentTxnFirstOffset", p.transaction());
        out.put("batches", p.batches());
        return out;
    }

    @Override
    public Object observe() throws Exception {
        Shown shown = shown();
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("now", now);
        state.put("mapEndOffset", shown.mapEndOffset());
        state.put("firstUnstableOffset", shown.firstUnstableOffset());
        state.put("firstUndecidedOffset", shown.firstUndecidedOffset());
        state.put("producers", shown.producers().stream()
            .sorted(Comparator.comparingLong(Producer::id)).map(ProducerState::producer).toList());
        if (verifies()) {
            Map<String, Object> verifications = new LinkedHashMap<>();
            for (long id : verified) {
                Verification v = verification(id);
                if (v != null) {
                    verifications.put(Long.toString(id), verification(v, true));
                }
            }
            state.put("verification", verifications);
        }
        state.put("snapshots", snapshots());
        if (knowsLateTransactions()) {
            state.put("hasLateTransaction", shown.hasLateTransaction());
        }
        return state;
    }

    @Override
    public String masked(String message) {
        return message.replace(scratch.root().toString(), "$DIR");
    }

    /** All but {@code lastStableOffset}, which is asked of a log; those of verification where the release has them. */
    @Override
    public Collection<String> operations() {
        List<String> out = new ArrayList<>(List.of("appendDataBatch", "appendEndTxnMarker", "produce", "endTransaction",
            "findDuplicateBatch", "onHighWatermarkUpdated", "removeExpiredProducers", "advance", "takeSnapshot",
            "truncateAndReload", "truncateFullyAndStartAt", "onLogStartOffsetIncremented", "deleteSnapshotsBefore",
            "removeStraySnapshots", "reopen", "corruptSnapshot", "readEmptiedMarker",
            "writeSnapshot", "readSnapshot"));
        if (verifies()) {
            out.addAll(List.of("maybeCreateVerificationStateEntry", "clearVerificationStateEntry", "startVerification"));
        }
        return out;
    }

    /** A new, empty directory for a log of this history. */
    protected final Path logDirectory() throws IOException {
        return scratch.directory("t-0");
    }

    @Override
    public void close() throws Exception {
        scratch.close();
    }
}
