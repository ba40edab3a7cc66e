package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.TopicPartition;

/** Subsystem `cleaner` of 4.3: {@link LogCleanerManager} over {@link UnifiedLog}s. */
public final class CleanerAdapter extends CleanerCalls {
    @Override
    String segmentBytes() {
        return LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG;
    }

    @Override
    protected Manager open(List<File> directories) {
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        gauges.forget(directories);
        return new TheManager(new LogCleanerManager(directories, logs, failures), logs);
    }

    @Override
    protected Offsets cleanableOffsets(Log log, Long lastClean) throws Exception {
        var found = LogCleanerManager.cleanableOffsets(kafkas(log), Optional.ofNullable(lastClean), now);
        return new Offsets(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset(),
            found.forceUpdateCheckpoint());
    }

    @Override
    protected ToClean measured(String partition, Log log, Offsets offsets, boolean needCompactionNow) {
        return toClean(new LogToClean(kafkas(log), offsets.firstDirty(), offsets.firstUncleanable(), needCompactionNow));
    }

    private static ToClean toClean(LogToClean log) {
        return new ToClean(log.topicPartition().toString(), log.firstDirtyOffset(), log.firstUncleanableOffset(),
            log.cleanBytes(), log.cleanableBytes(), log.totalBytes(), log.cleanableRatio(), log.needCompactionNow());
    }

    private final class TheManager implements Manager {
        private final LogCleanerManager manager;
        private final ConcurrentMap<TopicPartition, UnifiedLog> logs;

        TheManager(LogCleanerManager manager, ConcurrentMap<TopicPartition, UnifiedLog> logs) {
            this.manager = manager;
            this.logs = logs;
        }

        @Override
        public void know(String partition, Log log) {
            logs.put(partition(partition), kafkas(log));
        }

        @Override
        public void forget(String partition) {
            logs.remove(partition(partition));
        }

        @Override
        public String state(String partition) {
            LogCleaningState state = manager.cleaningState(partition(partition)).orElse(null);
            if (state instanceof LogCleaningState.LogCleaningPaused paused) {
                return "paused(" + paused.pausedCount() + ")";
            }
            return state == null ? "none" : state instanceof LogCleaningState.LogCleaningAborted ? "aborted"
                : "inProgress";
        }

        @Override
        public void abortAndPauseCleaning(String partition) {
            manager.abortAndPauseCleaning(partition(partition));
        }

        @Override
        public void abortCleaning(String partition) {
            manager.abortCleaning(partition(partition));
        }

        @Override
        public void resumeCleaning(String partition) {
            manager.resumeCleaning(Set.of(partition(partition)));
        }

        @Override
        public void doneCleaning(String partition, File dir, long endOffset) {
            manager.doneCleaning(partition(partition), dir, endOffset);
        }

        @Override
        public void doneDeleting(String partition) {
            manager.doneDeleting(List.of(partition(partition)));
        }

        @Override
        public void checkCleaningAborted(String partition) {
            manager.checkCleaningAborted(partition(partition));
        }

        @Override
        public Collection<String> pauseCleaningForNonCompactedPartitions() {
            return manager.pauseCleaningForNonCompactedPartitions().stream().map(e -> e.getKey().toString()).toList();
        }

        @Override
        public Collection<String> deletableLogs() {
            return manager.deletableLogs().keySet().stream().map(TopicPartition::toString).toList();
        }

        @Override
        public void markPartitionUncleanable(File dir, String partition) {
            manager.markPartitionUncleanable(dir.toString(), partition(partition));
        }

        @Override
        public void maintainUncleanablePartitions() {
            manager.maintainUncleanablePartitions();
        }

        @Override
        public Collection<String> uncleanablePartitions(File dir) {
            return manager.uncleanablePartitions(dir.toString()).stream().map(TopicPartition::toString).toList();
        }

        @Override
        public Number uncleanableBytes(File dir) {
            return gauges.value("uncleanable-bytes", dir);
        }

        @Override
        public void updateCheckpoints(File dir, String update, Long offset, String remove) {
            manager.updateCheckpoints(dir,
                Optional.ofNullable(update).map(p -> Map.entry(partition(p), offset)),
                Optional.ofNullable(remove).map(CleanerAdapter::partition));
        }

        @Override
        public void maybeTruncateCheckpoint(File dir, String partition, long offset) {
            manager.maybeTruncateCheckpoint(dir, partition(partition), offset);
        }

        @Override
        public void alterCheckpointDir(String partition, File source, File dest) {
            manager.alterCheckpointDir(partition(partition), source, dest);
        }

        @Override
        public void handleLogDirFailure(File dir) {
            manager.handleLogDirFailure(dir.toString());
        }

        @Override
        public Grab grabFilthiestCompactedLog() {
            PreCleanStats stats = new PreCleanStats();
            ToClean found = manager.grabFilthiestCompactedLog(time, stats).map(CleanerAdapter::toClean).orElse(null);
            return new Grab(found, stats.cleanablePartitions(), stats.delayedPartitions(),
                stats.maxCompactionDelayMs());
        }
    }
}
