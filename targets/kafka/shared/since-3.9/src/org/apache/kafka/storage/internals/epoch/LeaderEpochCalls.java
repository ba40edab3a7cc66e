package org.apache.kafka.storage.internals.epoch;

import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Consumer;
import kafkaspec.target.LeaderEpochs;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** {@link LeaderEpochFileCache} over a {@link LeaderEpochCheckpointFile}. */
abstract class LeaderEpochCalls extends LeaderEpochs {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);

    /** None: null. */
    abstract Integer latestEpoch(LeaderEpochFileCache cache);

    /** Epoch and start offset. */
    abstract long[] numbers(EpochEntry entry);

    @Override
    protected final Cache open(Path file, Consumer<Runnable> later) throws Exception {
        LeaderEpochFileCache cache = new LeaderEpochFileCache(PARTITION, kafkaFile(file), new Later(later));
        return new Cache() {
            @Override
            public void assign(int epoch, long startOffset) {
                cache.assign(epoch, startOffset);
            }

            @Override
            public void truncateFromEnd(long endOffset) {
                cache.truncateFromEndAsyncFlush(endOffset);
            }

            @Override
            public void truncateFromStart(long startOffset) {
                cache.truncateFromStartAsyncFlush(startOffset);
            }

            @Override
            public void clearAndFlush() {
                cache.clearAndFlush();
            }

            @Override
            public Map.Entry<Integer, Long> endOffsetFor(int requestedEpoch, long logEndOffset) {
                return cache.endOffsetFor(requestedEpoch, logEndOffset);
            }

            @Override
            public List<long[]> epochEntries() {
                return pairs(cache.epochEntries());
            }

            @Override
            public Integer latestEpoch() {
                return LeaderEpochCalls.this.latestEpoch(cache);
            }

            @Override
            public Integer epochForOffset(long offset) {
                return number(cache.epochForOffset(offset));
            }

            @Override
            public Integer previousEpoch(int epoch) {
                return number(cache.previousEpoch(epoch));
            }

            @Override
            public Integer nextEpoch(int epoch) {
                return number(cache.nextEpoch(epoch));
            }

            @Override
            public List<long[]> epochEntriesInRange(long startOffset, long endOffset) {
                return pairs(cache.epochEntriesInRange(startOffset, endOffset));
            }
        };
    }

    @Override
    protected final CheckpointFile checkpoint(Path file) throws Exception {
        LeaderEpochCheckpointFile checkpoint = kafkaFile(file);
        return new CheckpointFile() {
            @Override
            public void write(List<long[]> entries) {
                checkpoint.write(entries.stream().map(e -> new EpochEntry((int) e[0], e[1])).toList());
            }

            @Override
            public List<long[]> read() {
                return pairs(checkpoint.read());
            }
        };
    }

    private static LeaderEpochCheckpointFile kafkaFile(Path file) throws Exception {
        return new LeaderEpochCheckpointFile(file.toFile(), new LogDirFailureChannel(1));
    }

    private List<long[]> pairs(Collection<EpochEntry> entries) {
        return entries.stream().map(this::numbers).toList();
    }

    static Integer number(OptionalInt n) {
        return n.isPresent() ? n.getAsInt() : null;
    }

    /** In the place of the broker's scheduler: the task is handed on. */
    private record Later(Consumer<Runnable> tasks) implements Scheduler {
        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            tasks.accept(task);
            return null;
        }

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public void resizeThreadPool(int newSize) {
        }
    }
}
