package org.apache.kafka.storage.internals.log;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;

/** Subsystem `producer_state` of 4.3: the whole of it. */
public final class ProducerStateAdapter extends ProducerStateCalls {
    /** A client does not come so far with a control batch: of its append the last step alone. */
    @Override
    protected Ended endTransaction(Marker m) throws Exception {
        if (!m.origin().equals(AppendOrigin.CLIENT.name())) {
            return super.endTransaction(m);
        }
        MemoryRecords batch = MemoryRecords.withEndTransactionMarker(
            m.offset(), m.timestamp(), LEADER_EPOCH, m.producerId(), m.epoch(), kafkaMarker(m));
        Map<Long, ProducerAppendInfo> infos = new HashMap<>();
        Optional<CompletedTxn> done = UnifiedLog.updateProducers(fresh(), batch.batches().iterator().next(), infos,
            Optional.empty(), AppendOrigin.CLIENT, m.transactionVersion());
        return taken(infos.get(m.producerId()), done, m.offset());
    }

    @Override
    Optional<CompletedTxn> appendEndTxnMarker(ProducerAppendInfo info, Marker m, EndTransactionMarker marker) {
        return info.appendEndTxnMarker(marker, m.epoch(), m.offset(), m.timestamp(), m.transactionVersion());
    }

    @Override
    Ended ended(CompletedTxn done, long lastStableOffset) {
        return new Ended(done.producerId(), done.firstOffset(), done.lastOffset(), done.isAborted(), lastStableOffset);
    }

    @Override
    VerificationStateEntry verificationEntry(ProducerStateManager manager, long producerId, int sequence, short epoch,
                                             boolean epochBump) {
        return manager.maybeCreateVerificationStateEntry(producerId, sequence, epoch, epochBump);
    }

    @Override
    Verification shown(VerificationStateEntry v) {
        return new Verification(v.lowestSequence(), v.epoch(), v.supportsEpochBump(), v.timestamp());
    }

    @Override
    ProducerStateEntry entry(long[] x) {
        ProducerStateEntry e = new ProducerStateEntry(x[0], (short) x[1], (int) x[6], x[5],
            x[7] < 0 ? OptionalLong.empty() : OptionalLong.of(x[7]));
        if (x[3] >= 0) {
            e.addBatch((short) x[1], (int) x[2], x[3], (int) x[4], x[5]);
        }
        return e;
    }

    @Override
    long[] numbers(BatchMetadata b) {
        return new long[] {b.firstSeq(), b.lastSeq(), b.firstOffset(), b.lastOffset(), b.timestamp()};
    }
}
