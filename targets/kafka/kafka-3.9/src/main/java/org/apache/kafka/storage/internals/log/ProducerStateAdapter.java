package org.apache.kafka.storage.internals.log;

import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.record.EndTransactionMarker;

/**
 * Subsystem `producer_state` of 3.9: markers have no transaction version yet, and verifications do not know of clients
 * that bump epochs: what is asked with either is asked without.
 */
public final class ProducerStateAdapter extends ProducerStateCalls {
    private static final boolean NO_EPOCH_BUMP = false;

    @Override
    Optional<CompletedTxn> appendEndTxnMarker(ProducerAppendInfo info, Marker m, EndTransactionMarker marker) {
        return info.appendEndTxnMarker(marker, m.epoch(), m.offset(), m.timestamp());
    }

    @Override
    Ended ended(CompletedTxn done, long lastStableOffset) {
        return new Ended(done.producerId, done.firstOffset, done.lastOffset, done.isAborted, lastStableOffset);
    }

    @Override
    VerificationStateEntry verificationEntry(ProducerStateManager manager, long producerId, int sequence, short epoch,
                                             boolean epochBump) {
        return manager.maybeCreateVerificationStateEntry(producerId, sequence, epoch);
    }

    @Override
    Verification shown(VerificationStateEntry v) {
        return new Verification(v.lowestSequence(), v.epoch(), NO_EPOCH_BUMP, v.timestamp());
    }

    @Override
    ProducerStateEntry entry(long[] x) {
        return new ProducerStateEntry(x[0], (short) x[1], (int) x[6], x[5],
            x[7] < 0 ? OptionalLong.empty() : OptionalLong.of(x[7]),
            x[3] < 0 ? Optional.empty() : Optional.of(new BatchMetadata((int) x[2], x[3], (int) x[4], x[5])));
    }

    @Override
    long[] numbers(BatchMetadata b) {
        return new long[] {b.firstSeq(), b.lastSeq, b.firstOffset(), b.lastOffset, b.timestamp};
    }
}
