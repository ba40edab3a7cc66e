import java.io.File;
import java.util.Optional;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Opens a partition's directory as a broker does. Arguments: directory, log start, whether it was stopped cleanly. */
public class OpenLog {
    public static void main(String[] a) throws Exception {
        Properties p = new Properties();
        p.put("index.interval.bytes", "300");
        p.put("segment.index.bytes", "1000");
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(new File(a[0]), new LogConfig(p), Long.parseLong(a[1]), Long.parseLong(a[1]), scheduler,
            new BrokerTopicStats(), Time.SYSTEM, 900000, new ProducerStateManagerConfig(86400000, false), 600000,
            new LogDirFailureChannel(1), Boolean.parseBoolean(a[2]), Optional.empty(), new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        StringJoiner out = new StringJoiner(" ");
        out.add("" + log.logStartOffset()).add("" + log.logEndOffset());
        for (LogSegment s : log.logSegments())
            out.add(s.baseOffset() + ":" + s.size() + ":" + s.offsetIndex().entries() + ":" + s.timeIndex().entries()
                + ":" + s.txnIndex().allAbortedTxns().size());
        System.out.println(out);
        log.close();
        scheduler.shutdown();
        System.exit(0);
    }
}
