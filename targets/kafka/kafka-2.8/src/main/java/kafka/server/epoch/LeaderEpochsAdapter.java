package kafka.server.epoch;

import java.nio.file.Path;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import kafka.server.LogDirFailureChannel;
import kafka.server.checkpoints.LeaderEpochCheckpointFile;
import kafkaspec.target.LeaderEpochs;
import org.apache.kafka.common.TopicPartition;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** The Scala class. Its truncations write the file before they return: nothing is ever scheduled. */
public final class LeaderEpochsAdapter extends LeaderEpochs {
    private static final TopicPartition PARTITION = new TopicPartition("topic", 0);
    private static final Set<String> LATER_ONES =
        Set.of("epochForOffset", "previousEpoch/nextEpoch", "epochEntriesInRange");

    private long logEnd;

    @Override
    protected Cache open(Path file, Consumer<Runnable> later) {
        LeaderEpochFileCache cache = new LeaderEpochFileCache(PARTITION, () -> logEnd, kafkaFile(file));
        return new Cache() {
            @Override
            public void assign(int epoch, long startOffset) {
                cache.assign(epoch, startOffset);
            }

            @Override
            public void truncateFromEnd(long endOffset) {
                cache.truncateFromEnd(endOffset);
            }

            @Override
            public void truncateFromStart(long startOffset) {
                cache.truncateFromStart(startOffset);
            }

            @Override
            public void clearAndFlush() {
                cache.clearAndFlush();
            }

            @Override
            public Map.Entry<Integer, Long> endOffsetFor(int requestedEpoch, long logEndOffset) {
                logEnd = logEndOffset; // the cache asks the log for it
                Tuple2<Object, Object> end = cache.endOffsetFor(requestedEpoch);
                return new AbstractMap.SimpleImmutableEntry<>((Integer) end._1(), (Long) end._2());
            }

            @Override
            public List<long[]> epochEntries() {
                return pairs(cache.epochEntries());
            }

            @Override
            public Integer latestEpoch() {
                Option<Object> epoch = cache.latestEpoch();
                return epoch.isEmpty() ? null : (Integer) epoch.get();
            }
        };
    }

    @Override
    protected CheckpointFile checkpoint(Path file) {
        LeaderEpochCheckpointFile checkpoint = kafkaFile(file);
        return new CheckpointFile() {
            @Override
            public void write(List<long[]> entries) {
                List<EpochEntry> all = new ArrayList<>();
                entries.forEach(e -> all.add(new EpochEntry((int) e[0], e[1])));
                checkpoint.write(CollectionConverters.asScala(all));
            }

            @Override
            public List<long[]> read() {
                return pairs(checkpoint.read());
            }
        };
    }

    @Override
    public Collection<String> operations() {
        return super.operations().stream().filter(op -> !LATER_ONES.contains(op)).toList();
    }

    private static LeaderEpochCheckpointFile kafkaFile(Path file) {
        return new LeaderEpochCheckpointFile(file.toFile(), new LogDirFailureChannel(1));
    }

    private static List<long[]> pairs(scala.collection.Seq<EpochEntry> entries) {
        List<long[]> out = new ArrayList<>();
        CollectionConverters.asJava(entries).forEach(e -> out.add(new long[] {e.epoch(), e.startOffset()}));
        return out;
    }
}
