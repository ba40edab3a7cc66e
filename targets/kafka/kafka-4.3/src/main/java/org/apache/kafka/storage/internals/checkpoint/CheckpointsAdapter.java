package org.apache.kafka.storage.internals.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import kafka.log.LogManager;
import kafka.server.builders.LogManagerBuilder;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.KafkaStorageException;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The checkpoint files' classes over files of the texts given, and {@link LogManager} with its logs in one directory.
 *
 * <p>The adapter stands for the rest of the broker. Nothing happens in the background: what is scheduled does not run, and
 * no cleaner is started; only when the process ends, files of segments that went are closed and removed, of which a
 * start would remove what is left. Of the replica manager it does three things: a log's high watermark is set from the checkpoint
 * when the log is created and after a start, as Partition.createLog does; {@code checkpointHighWatermarks} and
 * {@code shutdown} write those of all logs; when a directory has failed, LogManager.handleLogDirFailure is called, and
 * whether it halts the process is the answer. Every record is a batch and a segment of its own, so that raising the log
 * start with {@code deleteSegments}, which is UnifiedLog.deleteOldSegments, leaves no segment below it. A broker that
 * crashes while loading is one whose recovery thread is held as soon as it reads the clock, before it opens a log.
 * {@code kill} lets go of the files as the end of a process does; a directory that awaits its deletion is removed then.
 */
public final class CheckpointsAdapter implements Adapter {
    private static final String RECOVERY_POINTS = "recovery-point-offset-checkpoint";
    private static final String LOG_STARTS = "log-start-offset-checkpoint";
    private static final String HIGH_WATERMARKS = "replication-offset-checkpoint";

    private final Scratch scratch = new Scratch("checkpoints");
    private final LogConfig config = new LogConfig(
        Map.of("retention.ms", -1, "retention.bytes", -1, "segment.index.bytes", 120, "index.interval.bytes", 0));
    private final File one = scratch.file("one-checkpoint");
    private final Path other;
    private File dir;
    private LogManager broker;
    private LogDirFailureChannel failures;
    private final Never scheduler = new Never();
    private OffsetCheckpointFile highWatermarks;
    private boolean loaded;
    private Loading loading;

    public CheckpointsAdapter() throws IOException {
        other = Files.createDirectories(scratch.root().resolve("t-0"));
    }

    /** The end of the process. */
    private static final class Halted extends RuntimeException {
        Halted() {
            super("halted", null, false, false);
        }
    }

    /** Tasks that wait for ever, but for those that remove segments' files: these hold the files open. */
    private static final class Never implements Scheduler {
        private final List<Runnable> removals = new ArrayList<>();

        void remove() {
            for (Runnable removal : removals) {
                try {
                    removal.run();
                } catch (KafkaStorageException e) {
                    // the directory has failed, and its files stay
                }
            }
            removals.clear();
        }

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.equals("delete-file")) {
                synchronized (removals) { // logs are loaded by threads
                    removals.add(task);
                }
            }
            return new Task();
        }

        @Override
        public void resizeThreadPool(int newSize) {
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

    /** A start that is held before it has opened a log. */
    private static final class Loading extends MockTime {
        final CountDownLatch reached = new CountDownLatch(1);
        final CountDownLatch over = new CountDownLatch(1);
        Thread thread;

        @Override
        public long hiResClockMs() {
            if (Thread.currentThread().getName().startsWith("log-recovery-")) {
                reached.countDown();
                try {
                    over.await();
                } catch (InterruptedException e) {
                    throw new AdapterFailure("interrupted", e);
                }
                throw new Halted();
            }
            return super.hiResClockMs();
        }
    }

    @Override
    public void init(JsonNode args) throws Exception {
        kill();
        if (dir != null) {
            Scratch.delete(dir.toPath().getParent());
        }
        dir = scratch.directory("data").toFile();
        start(new MockTime());
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "offsetCheckpoint.write": {
                Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
                Iterator<Map.Entry<String, JsonNode>> given = a.get("offsets").fields();
                while (given.hasNext()) {
                    Map.Entry<String, JsonNode> entry = given.next();
                    offsets.put(partition(entry.getKey()), entry.getValue().asLong());
                }
                new OffsetCheckpointFile(one, new LogDirFailureChannel(1)).write(offsets);
                return Files.readString(one.toPath());
            }
            case "offsetCheckpoint.read":
                write(one.toPath(), a);
                return shown(new OffsetCheckpointFile(one, new LogDirFailureChannel(1)).read());
            case "leaderEpochCheckpoint.read": {
                write(one.toPath(), a);
                List<long[]> entries = new ArrayList<>();
                for (EpochEntry e : new LeaderEpochCheckpointFile(one, new LogDirFailureChannel(1)).read()) {
                    entries.add(new long[] {e.epoch(), e.startOffset()});
                }
                return entries;
            }
            case "partitionMetadata.writeRead": {
                PartitionMetadataFile metadata = metadata();
                metadata.record(Uuid.fromString(a.get("topicId").asText()));
                metadata.maybeFlush();
                String text = Files.readString(PartitionMetadataFile.newFile(other.toFile()).toPath());
                return Map.of("file", text, "topicId", metadata.read().topicId().toString());
            }
            case "partitionMetadata.read":
                write(PartitionMetadataFile.newFile(other.toFile()).toPath(), a);
                return metadata().read().topicId().toString();
            case "cleanShutdown.read": {
                write(other.resolve(CleanShutdownFileHandler.CLEAN_SHUTDOWN_FILE_NAME), a);
                OptionalLong epoch = new CleanShutdownFileHandler(other.toString()).read();
                return epoch.isPresent() ? epoch.getAsLong() : null;
            }
            case "createLog": {
                String name = a.get("partition").asText();
                setHighWatermark(broker.getOrCreateLog(
                    partition(name), true, false, Optional.empty(), scala.Option.empty()), checkpointed());
                return name;
            }
            case "append":
                for (int n = 0; n < a.get("count").asInt(); n++) {
                    log(a).appendAsLeader(MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(new byte[1])), 0);
                    log(a).roll();
                }
                return null;
            case "flush":
                log(a).flush(false);
                return null;
            case "advanceHighWatermark": // a leader's: not above the end of any replica, its own among them
                log(a).maybeIncrementHighWatermark(
                    new LogOffsetMetadata(Math.min(a.get("offset").asLong(), log(a).logEndOffset())));
                return null;
            case "raiseStart":
                log(a).maybeIncrementLogStartOffset(Math.min(a.get("offset").asLong(), log(a).highWatermark()),
                    LogStartOffsetIncrementReason.ClientRecordDeletion);
                if (a.get("deleteSegments").asBoolean()) {
                    log(a).deleteOldSegments();
                }
                return null;
            case "truncate":
                broker.truncateTo(CollectionConverters.asScala(
                    Map.of(log(a).topicPartition(), (Object) a.get("offset").asLong())), false);
                return null;
            case "deleteLog": {
                UnifiedLog log = log(a);
                broker.asyncDelete(log.topicPartition(), false, true, false);
                log.closeHandlers();
                return null;
            }
            case "checkpointRecoveryPoints":
                broker.checkpointLogRecoveryOffsets();
                return null;
            case "checkpointLogStarts":
                broker.checkpointLogStartOffsets();
                return null;
            case "checkpointHighWatermarks":
                checkpointHighWatermarks();
                return null;
            case "shutdown":
                if (loaded) {
                    checkpointHighWatermarks();
                }
                broker.shutdown(a.get("brokerEpoch").asLong());
                gone();
                return null;
            case "kill":
                kill();
                return null;
            case "damage":
                write(dir.toPath().resolve(a.get("name").asText()), a);
                return null;
            case "start": {
                kill();
                if (a.get("crashWhileLoading").asBoolean()) {
                    return startAndHold();
                }
                return start(new MockTime());
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private static TopicPartition partition(String name) {
        int at = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, at), Integer.parseInt(name.substring(at + 1)));
    }

    private static void write(Path path, JsonNode a) throws IOException {
        Files.write(path, a.get("file").asText().getBytes(StandardCharsets.UTF_8));
    }

    private PartitionMetadataFile metadata() {
        return new PartitionMetadataFile(PartitionMetadataFile.newFile(other.toFile()), new LogDirFailureChannel(1));
    }

    private static Map<String, Long> shown(Map<TopicPartition, Long> offsets) {
        Map<String, Long> out = new TreeMap<>();
        offsets.forEach((partition, offset) -> out.put(partition.toString(), offset));
        return out;
    }

    // ---- the broker
    private UnifiedLog log(JsonNode a) {
        return broker.getLog(partition(a.get("partition").asText()), false).get();
    }

    private Iterable<UnifiedLog> logs() {
        return CollectionConverters.asJava(broker.allLogs());
    }

    private LogManager broker(MockTime time) throws IOException {
        failures = new LogDirFailureChannel(1);
        highWatermarks = new OffsetCheckpointFile(new File(dir, HIGH_WATERMARKS), failures);
        return new LogManagerBuilder().setLogDirs(List.of(dir)).setConfigRepository(resource -> new Properties())
            .setInitialDefaultConfig(config).setCleanerConfig(new CleanerConfig(false)).setScheduler(scheduler)
            .setBrokerTopicStats(new BrokerTopicStats()).setLogDirFailureChannel(failures).setTime(time).build();
    }

    /** Start the broker: what it knew of the last stop, and whether it was halted. */
    private Map<String, Object> start(MockTime time) throws IOException {
        broker = broker(time);
        broker.startup(CollectionConverters.asScala(java.util.Set.of()), log -> false);
        loaded = true;
        boolean clean = clean();
        boolean halted = haltedByFailure();
        if (!halted) {
            try {
                LazyOffsetCheckpoints checkpointed = checkpointed();
                for (UnifiedLog log : logs()) {
                    setHighWatermark(log, checkpointed);
                }
            } catch (KafkaStorageException e) {
                halted = haltedByFailure(); // ReplicaManager marks the partition as offline, and goes on
            }
        }
        return Map.of("clean", clean, "halted", halted);
    }

    /** What ReplicaManager's handler of failed directories does, if one has failed; whether the broker halted. */
    private boolean haltedByFailure() throws IOException {
        if (!failures.hasOfflineLogDir(dir.getAbsolutePath())) {
            return false;
        }
        Exit.setHaltProcedure((status, message) -> {
            throw new Halted();
        });
        try {
            broker.handleLogDirFailure(dir.getAbsolutePath());
            return false;
        } catch (Halted e) {
            kill();
            return true;
        } finally {
            Exit.resetHaltProcedure();
        }
    }

    private Object startAndHold() throws Exception {
        loading = new Loading();
        broker = broker(loading);
        loading.thread = new Thread(() -> {
            try {
                broker.startup(CollectionConverters.asScala(java.util.Set.of()), log -> false);
            } catch (Halted e) {
                // what the recovery thread has thrown
            }
        });
        loading.thread.start();
        if (!loading.reached.await(10, TimeUnit.SECONDS)) {
            throw new AdapterFailure("the start did not come to a log");
        }
        return Map.of("clean", clean(), "halted", false);
    }

    /** What the broker took the last stop for, by its own private word. */
    private boolean clean() {
        try {
            Method flags = LogManager.class.getDeclaredMethod("hadCleanShutdownFlags");
            flags.setAccessible(true);
            return (Boolean) ((Map<?, ?>) flags.invoke(broker)).get(dir.getAbsolutePath());
        } catch (ReflectiveOperationException e) {
            throw new AdapterFailure("LogManager.hadCleanShutdownFlags", e);
        }
    }

    private LazyOffsetCheckpoints checkpointed() {
        return new LazyOffsetCheckpoints(Map.of(dir.getAbsolutePath(), highWatermarks));
    }

    private void setHighWatermark(UnifiedLog log, LazyOffsetCheckpoints checkpointed) throws IOException {
        log.updateHighWatermark(checkpointed.fetch(log.parentDir(), log.topicPartition()).orElse(0L));
    }

    private void checkpointHighWatermarks() {
        Map<TopicPartition, Long> marks = new LinkedHashMap<>();
        logs().forEach(log -> marks.put(log.topicPartition(), log.highWatermark()));
        highWatermarks.write(marks);
    }

    private void kill() throws IOException {
        if (broker == null) {
            return;
        }
        for (UnifiedLog log : logs()) {
            log.closeHandlers();
        }
        for (FileLock lock : CollectionConverters.asJava(broker.dirLocks())) {
            lock.destroy();
        }
        gone();
    }

    private void gone() throws IOException {
        if (loading != null) {
            loading.over.countDown();
            try {
                loading.thread.join();
            } catch (InterruptedException e) {
                throw new AdapterFailure("interrupted", e);
            }
            loading = null;
        }
        logs().forEach(UnifiedLog::removeLogMetrics);
        scheduler.remove();
        broker = null;
        loaded = false;
        for (File file : dir.listFiles()) {
            if (file.getName().endsWith(UnifiedLog.DELETE_DIR_SUFFIX)) {
                Scratch.delete(file.toPath());
            }
        }
    }

    @Override
    public Object observe() throws IOException {
        Map<String, Object> logs = new TreeMap<>();
        if (loaded) {
            for (UnifiedLog log : logs()) {
                logs.put(log.topicPartition().toString(), Map.of("start", log.logStartOffset(), "highWatermark",
                    log.highWatermark(), "recoveryPoint", log.recoveryPoint(), "end", log.logEndOffset()));
            }
        }
        Map<String, Object> files = new LinkedHashMap<>();
        for (String name : List.of(RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)) {
            try {
                files.put(name, shown(new OffsetCheckpointFile(new File(dir, name), new LogDirFailureChannel(1)).read()));
            } catch (RuntimeException e) {
                files.put(name, "unreadable");
            }
        }
        CleanShutdownFileHandler marker = new CleanShutdownFileHandler(dir.getPath());
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("logs", logs);
        state.put("files", files);
        state.put("marker", marker.exists() ? marker.read().getAsLong() : null);
        state.put("running", broker != null);
        return state;
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        kill();
        scratch.close();
    }
}
