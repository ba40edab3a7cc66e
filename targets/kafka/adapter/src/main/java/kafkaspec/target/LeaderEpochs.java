package kafkaspec.target;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.function.Consumer;

/**
 * A leader epoch cache of any release over its checkpoint file. What an operation does is Kafka's, behind {@link Cache}
 * and {@link CheckpointFile}; here are the files, the clock-less scheduler, and the JSON.
 */
public abstract class LeaderEpochs implements Adapter {
    private static final String FILE = "leader-epoch-checkpoint";

    /** Kafka's cache. An entry is an epoch and an offset. */
    public interface Cache {
        void assign(int epoch, long startOffset);

        void truncateFromEnd(long endOffset);

        void truncateFromStart(long startOffset);

        void clearAndFlush();

        /** Epoch and end offset. */
        Map.Entry<Integer, Long> endOffsetFor(int requestedEpoch, long logEndOffset);

        List<long[]> epochEntries();

        /** None: null. */
        Integer latestEpoch();

        default Integer epochForOffset(long offset) {
            throw new UnknownOperation("epochForOffset");
        }

        default Integer previousEpoch(int epoch) {
            throw new UnknownOperation("previousEpoch");
        }

        default Integer nextEpoch(int epoch) {
            throw new UnknownOperation("nextEpoch");
        }

        default List<long[]> epochEntriesInRange(long startOffset, long endOffset) {
            throw new UnknownOperation("epochEntriesInRange");
        }
    }

    /** Kafka's checkpoint file. */
    public interface CheckpointFile {
        void write(List<long[]> entries);

        List<long[]> read();
    }

    private final Scratch scratch = new Scratch("leader-epochs");
    private final Queue<Runnable> waiting = new ArrayDeque<>();
    private Path directory;
    private Path other;
    private Cache cache;
    private boolean deferred;

    /** A new cache over the file of that directory; what it schedules goes to {@code later}. */
    protected abstract Cache open(Path file, Consumer<Runnable> later) throws Exception;

    protected abstract CheckpointFile checkpoint(Path file) throws Exception;

    @Override
    public void init(JsonNode args) throws Exception {
        deferred = args.path("deferred").asBoolean(false);
        if (directory == null) {
            directory = scratch.directory("topic-0");
            other = scratch.directory("topic-0");
        }
        Files.deleteIfExists(directory.resolve(FILE));
        reopen(directory);
    }

    @Override
    public Object apply(String op, JsonNode args) throws Throwable {
        switch (op) {
            case "assign":
                cache.assign(args.get("epoch").intValue(), args.get("startOffset").longValue());
                return null;
            case "truncateFromEndAsyncFlush":
                cache.truncateFromEnd(args.get("endOffset").longValue());
                return null;
            case "truncateFromStartAsyncFlush":
                cache.truncateFromStart(args.get("startOffset").longValue());
                return null;
            case "runScheduled": // the scheduler's thread gets to run
                while (!waiting.isEmpty()) {
                    waiting.remove().run();
                }
                return null;
            case "clearAndFlush":
                cache.clearAndFlush();
                return null;
            case "reopen":
                reopen(directory);
                return null;
            case "load": // a new cache, and the two truncations that the loading of a log makes, in its order
                reopen(directory);
                cache.truncateFromEnd(args.get("logEnd").longValue());
                cache.truncateFromStart(args.get("logStart").longValue());
                return null;
            case "endOffsetFor": {
                Map.Entry<Integer, Long> end =
                    cache.endOffsetFor(args.get("requestedEpoch").intValue(), args.get("logEndOffset").longValue());
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("epoch", end.getKey());
                out.put("endOffset", end.getValue());
                return out;
            }
            case "epochForOffset":
                return cache.epochForOffset(args.get("offset").longValue());
            case "previousEpoch/nextEpoch": {
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("previous", cache.previousEpoch(args.get("epoch").intValue()));
                out.put("next", cache.nextEpoch(args.get("epoch").intValue()));
                return out;
            }
            case "epochEntriesInRange":
                return cache.epochEntriesInRange(args.get("startOffset").longValue(), args.get("endOffset").longValue());
            case "leaderEpochCheckpoint.write": {
                List<long[]> entries = new ArrayList<>();
                for (JsonNode e : args.get("entries")) {
                    entries.add(new long[] {e.get(0).longValue(), e.get(1).longValue()});
                }
                Files.deleteIfExists(other.resolve(FILE));
                checkpoint(other.resolve(FILE)).write(entries);
                return Files.readString(other.resolve(FILE));
            }
            case "leaderEpochCheckpoint.read":
                Files.writeString(other.resolve(FILE), args.get("file").textValue());
                return checkpoint(other.resolve(FILE)).read();
            case "openText": { // whoever cannot open it keeps the cache that there was, and its file
                Files.writeString(other.resolve(FILE), args.get("file").textValue());
                Queue<Runnable> before = new ArrayDeque<>(waiting);
                try {
                    reopen(other);
                } catch (Throwable e) { // an OutOfMemoryError too: LEC-D2
                    waiting.addAll(before);
                    throw e;
                }
                Path back = directory;
                directory = other;
                other = back;
                return null;
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private void reopen(Path at) throws Exception {
        waiting.clear(); // what a process that is gone had scheduled
        cache = open(at.resolve(FILE), task -> {
            if (deferred) {
                waiting.add(task);
            } else {
                task.run();
            }
        });
    }

    @Override
    public Object observe() throws Exception {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("entries", cache.epochEntries());
        state.put("latestEpoch", cache.latestEpoch());
        state.put("file", Files.readString(directory.resolve(FILE)));
        state.put("scheduled", !waiting.isEmpty());
        return state;
    }

    @Override
    public String masked(String message) {
        return message.replace(directory.toString(), "$DIR").replace(other.toString(), "$DIR");
    }

    /** All but {@code judge}, which is asked of a log at rest, not of the cache. */
    @Override
    public Collection<String> operations() {
        return List.of("assign", "truncateFromEndAsyncFlush", "truncateFromStartAsyncFlush", "runScheduled",
            "clearAndFlush", "reopen", "load", "endOffsetFor", "epochForOffset", "previousEpoch/nextEpoch",
            "epochEntriesInRange", "leaderEpochCheckpoint.write", "leaderEpochCheckpoint.read", "openText");
    }

    @Override
    public void close() throws Exception {
        scratch.close();
    }
}
