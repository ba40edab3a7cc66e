package kafkaspec.target;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The log cleaner's manager of any release, over logs in directories of their own. What an operation does is Kafka's,
 * behind {@link Manager} and {@link Log}; here are the directories, the callers that wait, and the JSON.
 *
 * <p>A call that waits for the cleaner is made by a thread of its own. It is shown as blocked once Kafka says that the
 * partition is aborted and the thread waits; both are looked at, nothing is foretold. The call that lets it go waits
 * until it has returned.
 */
public abstract class CleanerManager implements Adapter {
    private static final long PATIENCE_MS = 5_000;
    private static final String FILE = "cleaner-offset-checkpoint";
    private static final String POLICY = "cleanup.policy";
    /** A batch of one record without key and value. */
    private static final int BATCH_BYTES = 68;

    /** A segment: bytes and ms; a timestamp is -1 where there is none. */
    public record Segment(long baseOffset, int size, long largestTimestamp, long firstBatchTimestamp) {
    }

    /** What a log looks like; the last segment is the active one. */
    public record Shape(long logStartOffset, long logEndOffset, long lastStableOffset, List<Segment> segments) {
        public static final Shape EMPTY = new Shape(0, 0, 0, List.of(new Segment(0, 0, -1, -1)));
    }

    /** One of Kafka's logs. */
    public interface Log {
        /** The settings that hold from now on, by their names in the topic's configuration. */
        void configure(Map<String, String> settings) throws Exception;

        /** It begins again, with other contents. */
        void become(Shape shape) throws Exception;

        Shape shape() throws Exception;

        /** One batch of one record; the new log end. */
        default long append(byte[] key, byte[] value) throws Exception {
            throw new UnknownOperation("append");
        }

        default void highWatermarkToEnd() throws Exception {
            throw new UnknownOperation("append");
        }

        default boolean maybeIncrementLogStartOffset(long offset) throws Exception {
            throw new UnknownOperation("maybeIncrementLogStartOffset");
        }
    }

    /** Kafka's manager with the map of logs that it is given. A partition goes by its name, a directory by its file. */
    public interface Manager {
        void know(String partition, Log log);

        void forget(String partition);

        /** none, inProgress, aborted, or paused(n). */
        String state(String partition);

        void abortAndPauseCleaning(String partition) throws Exception;

        void abortCleaning(String partition) throws Exception;

        void resumeCleaning(String partition);

        void doneCleaning(String partition, File dir, long endOffset);

        void doneDeleting(String partition);

        void checkCleaningAborted(String partition);

        Collection<String> pauseCleaningForNonCompactedPartitions();

        Collection<String> deletableLogs();

        void markPartitionUncleanable(File dir, String partition);

        void maintainUncleanablePartitions();

        Collection<String> uncleanablePartitions(File dir);

        /** What the gauge says. Kafka asks the machine's clock for it: nothing is too young then. */
        Number uncleanableBytes(File dir);

        /** Each may be null. */
        void updateCheckpoints(File dir, String update, Long offset, String remove);

        void maybeTruncateCheckpoint(File dir, String partition, long offset);

        void alterCheckpointDir(String partition, File source, File dest);

        void handleLogDirFailure(File dir);

        Grab grabFilthiestCompactedLog();
    }

    /** What a grab gives: the log to clean, or null, and the statistics. */
    public record Grab(ToClean log, int cleanable, int delayed, long maxDelayMs) {
    }

    /** Kafka's LogToClean. */
    public record ToClean(String partition, long firstDirty, long firstUncleanable, long cleanBytes,
            long cleanableBytes, long totalBytes, double ratio, boolean needCompactionNow) {
        Map<String, Object> json() {
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("partition", partition);
            out.put("firstDirtyOffset", firstDirty);
            out.put("firstUncleanableOffset", firstUncleanable);
            out.put("cleanBytes", cleanBytes);
            out.put("cleanableBytes", cleanableBytes);
            out.put("totalBytes", totalBytes);
            out.put("cleanableRatio", ratio);
            out.put("needCompactionNow", needCompactionNow);
            return out;
        }
    }

    /** Kafka's OffsetsToClean. */
    public record Offsets(long firstDirty, long firstUncleanable, boolean forceUpdate) {
    }

    /** All operations. */
    protected static final List<String> OPERATIONS = List.of("grabFilthiestCompactedLog", "cleanableOffsets",
        "logToClean", "abortAndPauseCleaning", "abortCleaning", "resumeCleaning", "doneCleaning", "doneDeleting",
        "checkCleaningAborted", "pauseCleaningForNonCompactedPartitions", "deletableLogs", "markPartitionUncleanable",
        "maintainUncleanablePartitions", "uncleanableBytes", "updateCheckpoints", "maybeTruncateCheckpoint",
        "alterCheckpointDir", "handleLogDirFailure", "restart", "append", "maybeIncrementLogStartOffset",
        "logChanged", "updateConfig", "forgetLog", "restoreLog", "advance");

    private final Scratch scratch = new Scratch("cleaner");
    private final Path root;
    private final Map<String, Log> made = new LinkedHashMap<>(); // by directory and partition, kept for later histories
    private final Map<String, Log> logs = new LinkedHashMap<>(); // of this history, known or not
    private final Map<String, File> home = new LinkedHashMap<>();
    private final Map<String, Map<String, String>> settings = new LinkedHashMap<>();
    private final Map<String, Read> directories = new TreeMap<>();
    private final TreeSet<String> known = new TreeSet<>();
    private final TreeMap<String, Caller> blocked = new TreeMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "caller");
        thread.setDaemon(true);
        return thread;
    });
    private Manager manager;
    private int batchBytes;
    /** The clock, in ms. */
    protected volatile long now;

    protected CleanerManager() {
        try {
            root = scratch.directory("logs");
        } catch (IOException e) {
            throw new AdapterFailure("no directory", e);
        }
    }

    /** A new manager of these directories, without logs. */
    protected abstract Manager open(List<File> directories) throws Exception;

    /** A log in its directory; {@link Log#configure} and {@link Log#become} come next. */
    protected abstract Log log(String partition, File directory) throws Exception;

    /** LogCleanerManager.cleanableOffsets; {@code lastClean} may be null. */
    protected abstract Offsets cleanableOffsets(Log log, Long lastClean) throws Exception;

    /** new LogToClean(...). */
    protected abstract ToClean measured(String partition, Log log, Offsets offsets, boolean needCompactionNow)
        throws Exception;

    @Override
    public void init(JsonNode args) throws Exception {
        letGo();
        now = 1_000_000;
        batchBytes = args.path("batchBytes").asInt(72);
        JsonNode partitions = args.get("partitions");
        if (partitions == null) {
            throw new AdapterFailure("init names no partitions");
        }
        List.of(logs, home, settings, directories).forEach(Map::clear);
        known.clear();
        for (JsonNode given : partitions) {
            String partition = given.get("partition").textValue();
            File dir = root.resolve(given.get("logDir").textValue()).toFile();
            String key = dir.getName() + "/" + partition;
            File own = new File(dir, partition);
            if (!made.containsKey(key)) {
                Files.createDirectories(own.toPath());
                made.put(key, log(partition, own));
            }
            Log log = made.get(key);
            settings.put(partition, settings(given));
            log.configure(settings.get(partition));
            log.become(Shape.EMPTY);
            logs.put(partition, log);
            home.put(partition, dir);
            directories.putIfAbsent(dir.getName(), new Read(new File(dir, FILE).toPath()));
            known.add(partition);
        }
        for (Read checkpoint : directories.values()) {
            Files.deleteIfExists(checkpoint.file);
        }
        start();
    }

    /** A new manager over the same directories, with the logs that are known. */
    private void start() throws Exception {
        manager = open(directories.values().stream().map(d -> d.file.getParent().toFile()).toList());
        known.forEach(p -> manager.know(p, logs.get(p)));
    }

    @Override
    public Object apply(String op, JsonNode args) throws Throwable {
        String partition = args.path("partition").textValue();
        switch (op) {
            case "grabFilthiestCompactedLog": {
                Grab grab = manager.grabFilthiestCompactedLog();
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("log", grab.log == null ? null : grab.log.json());
                out.put("cleanablePartitions", grab.cleanable);
                out.put("delayedPartitions", grab.delayed);
                out.put("maxCompactionDelayMs", grab.maxDelayMs);
                return out;
            }
            case "cleanableOffsets": {
                Offsets offsets = cleanableOffsets(log(partition), number(args, "lastCleanOffset"));
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("firstDirtyOffset", offsets.firstDirty);
                out.put("firstUncleanableDirtyOffset", offsets.firstUncleanable);
                out.put("forceUpdateCheckpoint", offsets.forceUpdate);
                return out;
            }
            case "logToClean":
                return logToClean(partition, number(args, "lastCleanOffset"));
            case "abortAndPauseCleaning":
                return waiting(op, partition, () -> manager.abortAndPauseCleaning(partition));
            case "abortCleaning":
                return waiting(op, partition, () -> manager.abortCleaning(partition));
            case "resumeCleaning":
                manager.resumeCleaning(partition);
                return null;
            case "doneCleaning":
                manager.doneCleaning(partition, home.get(partition), args.get("endOffset").longValue());
                return released(partition);
            case "doneDeleting":
                manager.doneDeleting(partition);
                return released(partition);
            case "checkCleaningAborted":
                manager.checkCleaningAborted(partition);
                return null;
            case "pauseCleaningForNonCompactedPartitions":
                return new TreeSet<>(manager.pauseCleaningForNonCompactedPartitions());
            case "deletableLogs":
                return new TreeSet<>(manager.deletableLogs());
            case "markPartitionUncleanable":
                manager.markPartitionUncleanable(dir(args, "dir"), partition);
                return null;
            case "maintainUncleanablePartitions":
                manager.maintainUncleanablePartitions();
                return null;
            case "uncleanableBytes":
                return manager.uncleanableBytes(dir(args, "dir"));
            case "updateCheckpoints":
                manager.updateCheckpoints(dir(args, "dir"), args.path("update").textValue(), number(args, "offset"),
                    args.path("remove").textValue());
                return null;
            case "maybeTruncateCheckpoint":
                manager.maybeTruncateCheckpoint(dir(args, "dir"), partition, args.get("offset").longValue());
                return null;
            case "alterCheckpointDir":
                manager.alterCheckpointDir(partition, dir(args, "source"), dir(args, "dest"));
                return null;
            case "handleLogDirFailure":
                manager.handleLogDirFailure(dir(args, "dir"));
                return null;
            case "restart": // whoever waited is gone with the process
                letGo();
                start();
                return null;
            case "append":
                return append(log(partition), args);
            case "maybeIncrementLogStartOffset":
                return log(partition).maybeIncrementLogStartOffset(args.get("offset").longValue());
            case "logChanged": { // the log lies in its directory with other contents: what did that is not shown
                Log log = log(partition);
                log.become(shape(args.get("log")));
                known(partition, known.contains(partition));
                return null;
            }
            case "updateConfig":
                settings.get(partition).put(POLICY, args.get("policy").textValue());
                log(partition).configure(settings.get(partition));
                return null;
            case "forgetLog":
                known(partition, false);
                return null;
            case "restoreLog":
                known(partition, true);
                return null;
            case "advance":
                now += args.get("ms").longValue();
                return null;
            default:
                throw new UnknownOperation(op);
        }
    }

    /** Of a partition as {@code init} gives it. */
    private static Map<String, String> settings(JsonNode partition) {
        Map<String, String> out = new LinkedHashMap<>();
        out.put(POLICY, "compact");
        partition.fields().forEachRemaining(e -> out.put(e.getKey(), e.getValue().asText()));
        out.keySet().removeAll(List.of("partition", "logDir"));
        return out;
    }

    private Log log(String partition) {
        Log log = logs.get(partition);
        if (log == null) {
            throw new AdapterFailure("no partition " + partition);
        }
        return log;
    }

    private File dir(JsonNode args, String name) {
        Read directory = directories.get(args.get(name).textValue());
        if (directory == null) {
            throw new AdapterFailure("no directory " + args.get(name));
        }
        return directory.file.getParent().toFile();
    }

    private static Long number(JsonNode args, String name) {
        JsonNode value = args.get(name);
        return value == null || value.isNull() ? null : value.longValue();
    }

    private void known(String partition, boolean isKnown) {
        if (isKnown) {
            known.add(partition);
            manager.know(partition, log(partition));
        } else {
            known.remove(partition);
            manager.forget(partition);
        }
    }

    private static Shape shape(JsonNode log) {
        List<Segment> segments = new ArrayList<>();
        for (JsonNode s : log.get("segments")) {
            segments.add(new Segment(s.get("baseOffset").longValue(), s.get("size").intValue(),
                s.path("largestTimestamp").asLong(-1), s.path("firstBatchTimestamp").asLong(-1)));
        }
        return new Shape(log.get("logStartOffset").longValue(), log.get("logEndOffset").longValue(),
            log.get("lastStableOffset").longValue(), segments);
    }

    private Object append(Log log, JsonNode args) throws Exception {
        byte[] key = args.get("key").textValue().getBytes();
        int rest = batchBytes - BATCH_BYTES - key.length;
        if (rest < 0 || key.length + rest > 50) { // beyond that its length takes two bytes
            throw new AdapterFailure("no batch of one record with that key has " + batchBytes + " bytes");
        }
        byte[] value = new byte[rest];
        long end = log.shape().logEndOffset;
        for (int n = args.get("count").intValue(); n > 0; n--) {
            end = log.append(key, value);
        }
        if (!args.path("thenHighWatermark").isNull()) {
            log.highWatermarkToEnd();
        }
        return end;
    }

    /**
     * What a grab finds of one log: a grab by another manager, of another directory, that has this log alone, and
     * compacted. Its checkpoint has the first dirty offset that Kafka takes, so that there is none to mend. Of a log
     * that is not taken Kafka does not show what it found: the same LogToClean is made once more.
     */
    private Object logToClean(String partition, Long lastClean) throws Exception {
        File dir = Files.createDirectories(root.resolve("alone")).toFile();
        Files.deleteIfExists(new File(dir, FILE).toPath());
        Log log = log(partition);
        Manager alone = open(List.of(dir));
        alone.know(partition, log);
        Offsets offsets = cleanableOffsets(log, lastClean);
        alone.updateCheckpoints(dir, partition, offsets.firstDirty, null);
        Grab grab;
        Map<String, String> compacted = new LinkedHashMap<>(settings.get(partition));
        compacted.put(POLICY, "compact");
        log.configure(compacted);
        try {
            grab = alone.grabFilthiestCompactedLog();
        } finally {
            log.configure(settings.get(partition));
        }
        ToClean found = grab.log;
        if (found == null) {
            found = measured(partition, log, offsets, grab.maxDelayMs > 0);
        }
        if (found.totalBytes == 0) {
            return null;
        }
        Map<String, Object> out = found.json();
        out.put("cleanable", grab.log != null);
        out.put("compactionDelayMs", grab.maxDelayMs);
        return out;
    }

    // ---- callers that wait

    private interface Call {
        void make() throws Exception;
    }

    /** A caller that may wait: its operation and what becomes of it. */
    private static final class Caller {
        final String operation;
        volatile Thread thread;
        Future<?> call;

        Caller(String operation) {
            this.operation = operation;
        }
    }

    private Object waiting(String operation, String partition, Call call) throws Throwable {
        Caller caller = new Caller(operation);
        if (manager.state(partition).equals("inProgress")) { // only then a thread of its own can be needed
            caller.call = threads.submit(() -> {
                caller.thread = Thread.currentThread();
                call.make();
                return null;
            });
            long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
            while (!caller.call.isDone()) {
                Thread thread = caller.thread;
                if (thread != null && thread.getState() == Thread.State.TIMED_WAITING
                        && manager.state(partition).equals("aborted")) {
                    blocked.put(partition, caller);
                    return Map.of("blocked", true);
                }
                if (System.nanoTime() > until) {
                    throw new AdapterFailure(operation + " of " + partition + " neither returns nor waits");
                }
                Thread.onSpinWait();
            }
            outcome(caller);
        } else {
            call.make();
        }
        return Map.of("blocked", false);
    }

    private static void outcome(Caller caller) throws Throwable {
        try {
            caller.call.get(PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            throw e.getCause();
        }
    }

    /** The operation of the caller that is let go, null if nobody waited. A caller that goes on waiting stays shown. */
    private Object released(String partition) throws Throwable {
        Caller caller = blocked.get(partition);
        String operation = null;
        if (caller != null) {
            try {
                outcome(caller);
                operation = caller.operation;
                blocked.remove(partition);
            } catch (TimeoutException e) {
                System.err.println(caller.operation + " of " + partition + " goes on waiting");
            }
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("released", operation);
        return out;
    }

    private void letGo() {
        blocked.values().forEach(caller -> caller.call.cancel(true));
        blocked.clear();
    }

    // ---- what is shown

    /** A checkpoint file, read again only where its bytes are others. */
    private static final class Read {
        final Path file;
        private byte[] bytes = {};
        private Map<String, Long> entries = Map.of();

        Read(Path file) {
            this.file = file;
        }

        Map<String, Long> entries() throws IOException {
            byte[] now = Files.readAllBytes(file);
            if (!java.util.Arrays.equals(now, bytes)) {
                Map<String, Long> read = new TreeMap<>();
                new String(now).lines().skip(2).map(line -> line.split(" ")).forEach(
                    words -> read.put(words[0] + "-" + words[1], Long.parseLong(words[2])));
                bytes = now;
                entries = read;
            }
            return entries;
        }
    }

    @Override
    public Object observe() throws Exception {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("now", now);
        Map<String, Object> cleaning = new LinkedHashMap<>();
        logs.keySet().forEach(p -> cleaning.put(p, manager.state(p)));
        out.put("cleaning", cleaning);
        Map<String, Object> checkpoints = new LinkedHashMap<>();
        Map<String, Object> uncleanable = new LinkedHashMap<>();
        for (Map.Entry<String, Read> directory : directories.entrySet()) {
            Read checkpoint = directory.getValue();
            checkpoints.put(directory.getKey(), checkpoint.entries());
            uncleanable.put(directory.getKey(),
                new TreeSet<>(manager.uncleanablePartitions(checkpoint.file.getParent().toFile())));
        }
        out.put("checkpoints", checkpoints);
        out.put("uncleanable", uncleanable);
        out.put("blockedCallers", blocked.keySet());
        Map<String, Object> shown = new LinkedHashMap<>();
        for (Map.Entry<String, Log> log : logs.entrySet()) {
            Shape shape = log.getValue().shape();
            Map<String, Object> view = new LinkedHashMap<>();
            view.put("known", known.contains(log.getKey()));
            view.put("logStartOffset", shape.logStartOffset);
            view.put("logEndOffset", shape.logEndOffset);
            view.put("lastStableOffset", shape.lastStableOffset);
            List<Object> segments = new ArrayList<>();
            for (Segment s : shape.segments) {
                Map<String, Object> segment = new LinkedHashMap<>();
                segment.put("baseOffset", s.baseOffset);
                segment.put("size", s.size);
                segment.put("largestTimestamp", s.largestTimestamp);
                segments.add(segment);
            }
            view.put("segments", segments);
            shown.put(log.getKey(), view);
        }
        out.put("logs", shown);
        return out;
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message).replaceAll("@[0-9a-f]+", "@HASH");
    }

    @Override
    public void close() throws Exception {
        letGo();
        threads.shutdownNow();
        scratch.close();
    }
}
