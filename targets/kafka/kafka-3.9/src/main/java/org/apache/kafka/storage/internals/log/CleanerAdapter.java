package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.List;
import kafka.log.LogCleanerManager;
import kafka.log.LogToClean;
import kafka.log.ScalaCleanerManager;
import kafka.log.UnifiedLog;
import kafka.utils.Pool;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.TopicConfig;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Subsystem `cleaner` of 3.9: the Scala {@link LogCleanerManager} over {@link UnifiedLog}s. */
public final class CleanerAdapter extends CleanerCalls {
    @Override
    String segmentBytes() {
        return TopicConfig.SEGMENT_BYTES_CONFIG;
    }

    @Override
    protected Manager open(List<File> directories) {
        Pool<TopicPartition, UnifiedLog> logs = new Pool<>(Option.empty());
        gauges.forget(directories);
        LogCleanerManager manager = new LogCleanerManager(CollectionConverters.asScala(directories), logs, failures);
        return new ScalaCleanerManager<UnifiedLog>(manager, logs, CleanerCalls::kafkas, time, gauges) {
            @Override
            public void maintainUncleanablePartitions() {
                manager.maintainUncleanablePartitions();
            }
        };
    }

    @Override
    protected Offsets cleanableOffsets(Log log, Long lastClean) {
        var found = LogCleanerManager.cleanableOffsets(kafkas(log), Option.apply(lastClean), now);
        return new Offsets(found.firstDirtyOffset(), found.firstUncleanableDirtyOffset(),
            found.forceUpdateCheckpoint());
    }

    @Override
    protected ToClean measured(String partition, Log log, Offsets offsets, boolean needCompactionNow) {
        return ScalaCleanerManager.toClean(new LogToClean(partition(partition), kafkas(log), offsets.firstDirty(),
            offsets.firstUncleanable(), needCompactionNow));
    }

    @Override
    public String masked(String message) {
        return super.masked(ScalaCleanerManager.asNow(message));
    }

    @Override
    public String named(Throwable thrown) {
        return ScalaCleanerManager.nameNow(thrown);
    }
}
