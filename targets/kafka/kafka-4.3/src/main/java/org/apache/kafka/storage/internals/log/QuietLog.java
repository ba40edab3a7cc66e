package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** A log of 4.3, without gauges. */
final class QuietLog extends UnifiedLog {
    private static final BrokerTopicStats STATS = new BrokerTopicStats();

    QuietLog(long logStartOffset, LocalLog local, int expirationCheckMs, LeaderEpochFileCache epochs,
             ProducerStateManager producers) throws IOException {
        this(logStartOffset, local, expirationCheckMs, epochs, producers, Optional.empty());
    }

    QuietLog(long logStartOffset, LocalLog local, int expirationCheckMs, LeaderEpochFileCache epochs,
             ProducerStateManager producers, Optional<Uuid> topicId) throws IOException {
        super(logStartOffset, local, STATS, expirationCheckMs, epochs, producers, topicId, false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    @Override
    public void newMetrics() {
    }

    /** As the leader. */
    LogAppendInfo append(MemoryRecords batch, int leaderEpoch, AppendOrigin origin, VerificationGuard guard,
                         short transactionVersion) {
        return appendAsLeader(batch, leaderEpoch, origin, RequestLocal.noCaching(), guard, transactionVersion);
    }

    VerificationGuard startVerification(long producerId, int sequence, short epoch, boolean epochBump) {
        return maybeStartTransactionVerification(producerId, sequence, epoch, epochBump);
    }
}
