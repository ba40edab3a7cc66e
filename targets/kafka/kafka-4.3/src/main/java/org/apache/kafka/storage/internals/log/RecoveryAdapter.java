package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * {@link UnifiedLog#create} and what comes of it, in one log directory with one partition, with Kafka's checkpoint files
 * and its marker of a clean stop.
 *
 * <p>The adapter adds: what LogManager and ReplicaManager do around one log, in their order (at a start: marker, recovery
 * points, log starts, log, high watermark; at a stop: high watermarks, flush, close, recovery points, log starts, marker;
 * the recovery points after a truncation). What is scheduled is done by {@code background} alone, and after a start. A
 * kill lets go of the files. {@code powerFails} makes of the directory's files those that are told: what is as told already
 * stays byte for byte. {@code startInterrupted} throws where the loader counts the segments that it has recovered; with a
 * marker it ends when that is gone. After each call the active segment's indexes are looked at, so that their files are there.
 */
public final class RecoveryAdapter implements Adapter {
    private static final TopicPartition PARTITION = LoaderFiles.PARTITION;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Scratch scratch = new Scratch("recovery");
    private final LoaderFiles contents;
    private final LogConfig config = new LogConfig(Map.of(
        "segment.index.bytes", 1024, "segment.ms", Long.MAX_VALUE, "retention.ms", -1, "retention.bytes", -1));
    private Path dir;
    private UnifiedLog log;
    private Held scheduler;
    private OffsetCheckpointFile points;
    private OffsetCheckpointFile starts;
    private OffsetCheckpointFile marks;

    public RecoveryAdapter() throws IOException {
        contents = new LoaderFiles(scratch);
    }

    /** Tasks that wait until they are called for. */
    private static final class Held implements Scheduler {
        private final List<Runnable> tasks = new ArrayList<>();

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0) {
                tasks.add(task);
            }
            return new Task();
        }

        @Override
        public void resizeThreadPool(int newSize) {
        }

        void run() {
            while (!tasks.isEmpty()) {
                tasks.remove(0).run();
            }
        }
    }

    private static final class Task extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return Long.compare(getDelay(TimeUnit.MILLISECONDS), other.getDelay(TimeUnit.MILLISECONDS));
        }
    }

    private static final class Killed extends RuntimeException {
        Killed() {
            super("killed", null, false, false);
        }
    }

    /** Where a loader says how many segments are left: after some it is killed. */
    private static final class Counted extends ConcurrentHashMap<String, Integer> {
        private final int most;
        private int recovered = -1;

        Counted(int most) {
            this.most = most;
        }

        @Override
        public Integer put(String thread, Integer remaining) {
            recovered++;
            if (recovered == most || remaining == 0) {
                throw new Killed();
            }
            return super.put(thread, remaining);
        }
    }

    @Override
    public void init(JsonNode a) throws IOException {
        finish();
        dir = scratch.directory("t-0");
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        points = new OffsetCheckpointFile(root("recovery-point-offset-checkpoint"), failures);
        starts = new OffsetCheckpointFile(root("log-start-offset-checkpoint"), failures);
        marks = new OffsetCheckpointFile(root("replication-offset-checkpoint"), failures);
        start(new ConcurrentHashMap<>());
        touch();
    }

    private File root(String name) {
        return dir.getParent().resolve(name).toFile();
    }

    private CleanShutdownFileHandler marker() {
        return new CleanShutdownFileHandler(dir.getParent().toString());
    }

    private Object start(ConcurrentMap<String, Integer> remaining) throws IOException {
        boolean clean = tookMarker();
        long point = points.read().getOrDefault(PARTITION, 0L);
        long first = starts.read().getOrDefault(PARTITION, 0L);
        scheduler = new Held();
        log = UnifiedLog.create(dir.toFile(), config, first, point, scheduler, new BrokerTopicStats(),
            new MockTime(LoaderFiles.NOW, 0), 300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), clean, Optional.empty(), remaining, false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        scheduler.run();
        Object found = object("clean", clean, "logStart", log.logStartOffset(), "recoveryPoint", log.recoveryPoint(),
            "logEnd", log.logEndOffset());
        log.updateHighWatermark(marks.read().getOrDefault(PARTITION, 0L));
        return found;
    }

    private boolean tookMarker() {
        boolean there = marker().exists();
        if (there) {
            try {
                marker().delete();
            } catch (Exception e) {
                throw new AdapterFailure("the marker stays", e);
            }
        }
        return there;
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        try {
            return call(op, a);
        } finally {
            touch();
        }
    }

    private void touch() throws IOException {
        if (log != null) {
            log.activeSegment().offsetIndex();
            log.activeSegment().timeIndex();
        }
    }

    private Object call(String op, JsonNode a) throws Exception {
        switch (op) {
            case "append": {
                int epoch = a.get("leaderEpoch").asInt();
                for (JsonNode records : a.get("records")) {
                    byte[] batch = contents.batch(0, records.asLong() - 1, epoch, true).clone();
                    log.appendAsLeader(MemoryRecords.readableRecords(ByteBuffer.wrap(batch)), epoch, AppendOrigin.CLIENT,
                        RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
                }
                return null;
            }
            case "roll":
                log.roll();
                return null;
            case "flush":
                log.flush(false);
                return null;
            case "background":
                scheduler.run();
                return null;
            case "updateHighWatermark":
                log.updateHighWatermark(a.get("offset").asLong());
                return null;
            case "deleteRecords":
                return log.maybeIncrementLogStartOffset(
                    a.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "deleteOldSegments":
                return log.deleteOldSegments();
            case "truncateTo": {
                boolean cut = log.truncateTo(a.get("offset").asLong());
                if (cut) {
                    checkpointRecoveryPoints();
                }
                return cut;
            }
            case "checkpointRecoveryPoints":
                checkpointRecoveryPoints();
                return null;
            case "checkpointLogStarts":
                checkpointLogStarts();
                return null;
            case "checkpointHighWatermarks":
                marks.write(Map.of(PARTITION, log.highWatermark()));
                return null;
            case "stop":
                marks.write(Map.of(PARTITION, log.highWatermark()));
                log.flush(true);
                log.close();
                checkpointRecoveryPoints();
                checkpointLogStarts();
                marker().write(-1L);
                log = null;
                return null;
            case "kill":
                kill();
                return null;
            case "powerFails":
                kill();
                become(a.get("files"));
                if (!a.get("keepsMarker").asBoolean()) {
                    marker().delete();
                }
                return null;
            case "start":
                return start(new ConcurrentHashMap<>());
            case "startInterrupted": {
                if (tookMarker()) {
                    return 0;
                }
                Counted counted = new Counted(a.get("segments").asInt());
                try {
                    start(counted);
                } catch (Killed e) {
                    log = null;
                    return counted.recovered;
                }
                throw new AdapterFailure("the load came to its end");
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private void checkpointRecoveryPoints() {
        points.write(Map.of(PARTITION, log.recoveryPoint()));
    }

    private void checkpointLogStarts() {
        boolean within = log.logStartOffset() > log.logSegments().iterator().next().baseOffset();
        starts.write(within ? Map.of(PARTITION, log.logStartOffset()) : Map.of());
    }

    private void kill() {
        if (log != null) {
            log.removeLogMetrics();
            log.closeHandlers();
            log = null;
        }
    }

    private void become(JsonNode files) throws IOException {
        for (File file : dir.toFile().listFiles()) {
            if (!files.has(file.getName())) {
                Files.delete(file.toPath());
            }
        }
        Iterator<Map.Entry<String, JsonNode>> wanted = files.fields();
        while (wanted.hasNext()) {
            Map.Entry<String, JsonNode> file = wanted.next();
            Path path = dir.resolve(file.getKey());
            if (!Files.exists(path) || !alike(LoaderFiles.shown(path.toFile()), file.getValue())) {
                Files.write(path, contents.bytes(file.getKey(), file.getValue()));
            }
        }
    }

    private static boolean alike(Object shown, JsonNode wanted) {
        JsonNode there = JSON.valueToTree(shown);
        return wanted.isObject()
            ? there.get("batches").toString().equals(wanted.get("batches").toString())
                && there.get("torn").equals(wanted.get("torn"))
            : there.toString().equals(wanted.toString());
    }

    @Override
    public Object observe() throws IOException {
        Map<String, Object> files = new TreeMap<>();
        for (File file : dir.toFile().listFiles()) {
            files.put(file.getName(), LoaderFiles.shown(file));
        }
        return object("files", files, "recoveryPoint", points.read().get(PARTITION), "logStart", starts.read().get(PARTITION),
            "highWatermark", marks.read().get(PARTITION), "marker", marker().exists(),
            "log", log == null ? null : object("logStart", log.logStartOffset(), "recoveryPoint", log.recoveryPoint(),
                "highWatermark", log.highWatermark(), "logEnd", log.logEndOffset()));
    }

    private static Map<String, Object> object(Object... pairs) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (int n = 0; n < pairs.length; n += 2) {
            out.put((String) pairs[n], pairs[n + 1]);
        }
        return out;
    }

    @Override
    public String masked(String message) {
        return null;
    }

    private void finish() throws IOException {
        kill();
        if (dir != null) {
            Scratch.delete(dir.getParent());
        }
    }

    @Override
    public void close() throws IOException {
        finish();
        scratch.close();
    }
}
