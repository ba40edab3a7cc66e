package kafkaspec.target;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Opens a partition's directory as a broker does, and closes it. Arguments: the directory, the log's start, whether it
 * was stopped cleanly, the settings index.interval.bytes and segment.index.bytes, and perhaps the time, in ms. On standard
 * output, as JSON: the log's start and end, base offset and size of each segment, epochs with their start offsets, aborted
 * transactions, and of each producer its id, epoch, coordinator epoch, last timestamp, open transaction and last offset.
 */
public final class OpenLog {
    public static void main(String[] arguments) throws Exception {
        File directory = new File(arguments[0]);
        long start = Long.parseLong(arguments[1]);
        boolean clean = Boolean.parseBoolean(arguments[2]);
        LogConfig config = new LogConfig(
            Map.of("index.interval.bytes", arguments[3], "segment.index.bytes", arguments[4]));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        Time time = arguments.length > 5 ? new MockTime(Long.parseLong(arguments[5]), 0) : Time.SYSTEM;
        UnifiedLog log = UnifiedLog.create(directory, config, start, start, scheduler, new BrokerTopicStats(),
            time, 900_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1),
            clean, Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        List<long[]> segments = new ArrayList<>();
        List<long[]> aborted = new ArrayList<>();
        for (LogSegment segment : log.logSegments()) {
            segments.add(new long[] {segment.baseOffset(), segment.size()});
            for (AbortedTxn txn : segment.txnIndex().allAbortedTxns()) {
                aborted.add(new long[] {txn.producerId(), txn.firstOffset(), txn.lastOffset(), txn.lastStableOffset()});
            }
        }
        List<long[]> epochs = new ArrayList<>();
        for (EpochEntry entry : log.leaderEpochCache().epochEntries()) {
            epochs.add(new long[] {entry.epoch(), entry.startOffset()});
        }
        List<long[]> producers = new ArrayList<>();
        for (ProducerStateEntry p : new TreeMap<>(log.producerStateManager().activeProducers()).values()) {
            producers.add(new long[] {p.producerId(), p.producerEpoch(), p.coordinatorEpoch(), p.lastTimestamp(),
                p.currentTxnFirstOffset().orElse(-1), p.lastDataOffset()});
        }
        System.out.println(new ObjectMapper().writeValueAsString(
            Map.of("logStart", log.logStartOffset(), "logEnd", log.logEndOffset(), "segments", segments,
                "aborted", aborted, "epochs", epochs, "producers", producers)));
        log.close();
        scheduler.shutdown();
    }
}
