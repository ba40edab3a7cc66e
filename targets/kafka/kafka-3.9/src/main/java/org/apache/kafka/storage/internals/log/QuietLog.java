package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.Optional;
import kafka.log.LocalLog;
import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import scala.Option;

/** A log of 3.9, which is Scala, without gauges. It has no transaction versions, and its verifications no epoch bump. */
final class QuietLog extends UnifiedLog {
    private static final BrokerTopicStats STATS = new BrokerTopicStats(false);

    QuietLog(long logStartOffset, LocalLog local, int expirationCheckMs, LeaderEpochFileCache epochs,
             ProducerStateManager producers) throws IOException {
        this(logStartOffset, local, expirationCheckMs, epochs, producers, Optional.empty());
    }

    QuietLog(long logStartOffset, LocalLog local, int expirationCheckMs, LeaderEpochFileCache epochs,
             ProducerStateManager producers, Optional<Uuid> topicId) throws IOException {
        super(logStartOffset, local, STATS, expirationCheckMs, Option.apply(epochs), producers,
            Option.apply(topicId.orElse(null)), true, false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    @Override
    public void newMetrics() {
    }

    /** As the leader. */
    LogAppendInfo append(MemoryRecords batch, int leaderEpoch, AppendOrigin origin, VerificationGuard guard,
                         short transactionVersion) {
        return appendAsLeader(
            batch, leaderEpoch, origin, MetadataVersion.latestProduction(), RequestLocal.NoCaching(), guard);
    }

    VerificationGuard startVerification(long producerId, int sequence, short epoch, boolean epochBump) {
        return maybeStartTransactionVerification(producerId, sequence, epoch);
    }
}
