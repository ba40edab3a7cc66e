package org.apache.kafka.controller;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.BatchReader;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.RaftClient;
import org.apache.kafka.raft.errors.NotLeaderException;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.SnapshotWriter;

/**
 * The log on one node, as the judge tells it: it gives offsets, keeps what is written, and hands out what is said to be
 * committed. Like KafkaRaftClient it refuses an append without records, and one when it leads no more.
 */
final class ToldRaft implements RaftClient<ApiMessageAndVersion> {
    /** A batch that was not handed out; a control batch has no records. */
    record Sent(long base, int epoch, List<ApiMessageAndVersion> records) {
        long last() {
            return base + Math.max(records.size(), 1) - 1;
        }
    }

    Listener<ApiMessageAndVersion> listener;
    final Deque<Sent> sent = new ArrayDeque<>();
    final List<Integer> resigned = new ArrayList<>();
    volatile long end;
    volatile int refusedAt = -1;
    volatile LeaderAndEpoch leader = new LeaderAndEpoch(OptionalInt.empty(), 0);
    private Sent prepared;

    @Override
    public long prepareAppend(int epoch, List<ApiMessageAndVersion> records) {
        if (refusedAt == 0) {
            throw new NotLeaderException("told to refuse");
        }
        refusedAt--;
        if (records.isEmpty()) {
            throw new IllegalArgumentException("Append failed because there are no records");
        }
        prepared = new Sent(end, epoch, List.copyOf(records));
        return prepared.last();
    }

    @Override
    public void schedulePreparedAppend() {
        sent.addLast(prepared);
        end = prepared.last() + 1;
        prepared = null;
    }

    /** What was written and not handed out is gone. */
    void cutOff() {
        if (!sent.isEmpty()) {
            end = sent.getFirst().base();
            sent.clear();
        }
    }

    Sent control(int epoch) {
        Sent batch = new Sent(end, epoch, List.of());
        end++;
        return batch;
    }

    void handOut(Collection<Sent> batches) {
        List<Batch<ApiMessageAndVersion>> of = new ArrayList<>();
        for (Sent s : batches) {
            of.add(s.records().isEmpty()
                ? Batch.control(s.base(), s.epoch(), 0, 1, List.of(ControlRecord.of(new LeaderChangeMessage())))
                : Batch.data(s.base(), s.epoch(), 0, 1, s.records()));
        }
        listener.handleCommit(new Reader(of));
    }

    private static final class Reader implements BatchReader<ApiMessageAndVersion> {
        private final List<Batch<ApiMessageAndVersion>> batches;
        private final Iterator<Batch<ApiMessageAndVersion>> rest;

        Reader(List<Batch<ApiMessageAndVersion>> batches) {
            this.batches = batches;
            this.rest = batches.iterator();
        }

        @Override
        public long baseOffset() {
            return batches.get(0).baseOffset();
        }

        @Override
        public OptionalLong lastOffset() {
            return OptionalLong.of(batches.get(batches.size() - 1).lastOffset());
        }

        @Override
        public boolean hasNext() {
            return rest.hasNext();
        }

        @Override
        public Batch<ApiMessageAndVersion> next() {
            return rest.next();
        }

        @Override
        public void close() {
        }
    }

    void handOutSnapshot(long endOffset, int epoch, List<ApiMessageAndVersion> records) {
        List<Batch<ApiMessageAndVersion>> batches =
            records.isEmpty() ? List.of() : List.of(Batch.data(0, epoch, 0, 1, records));
        Iterator<Batch<ApiMessageAndVersion>> rest = batches.iterator();
        listener.handleLoadSnapshot(new SnapshotReader<>() {
            @Override
            public OffsetAndEpoch snapshotId() {
                return new OffsetAndEpoch(endOffset, epoch);
            }

            @Override
            public long lastContainedLogOffset() {
                return endOffset - 1;
            }

            @Override
            public int lastContainedLogEpoch() {
                return epoch;
            }

            @Override
            public long lastContainedLogTimestamp() {
                return 0;
            }

            @Override
            public boolean hasNext() {
                return rest.hasNext();
            }

            @Override
            public Batch<ApiMessageAndVersion> next() {
                return rest.next();
            }

            @Override
            public void close() {
            }
        });
    }

    @Override
    public void register(Listener<ApiMessageAndVersion> listener) {
        this.listener = listener;
    }

    @Override
    public void unregister(Listener<ApiMessageAndVersion> listener) {
    }

    @Override
    public OptionalLong highWatermark() {
        return OptionalLong.empty();
    }

    @Override
    public LeaderAndEpoch leaderAndEpoch() {
        return leader;
    }

    @Override
    public OptionalInt nodeId() {
        return OptionalInt.of(0);
    }

    @Override
    public Optional<Node> voterNode(int id, ListenerName listenerName) {
        return Optional.empty();
    }

    @Override
    public CompletableFuture<Void> shutdown(int timeoutMs) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public void resign(int epoch) {
        resigned.add(epoch);
    }

    @Override
    public Optional<SnapshotWriter<ApiMessageAndVersion>> createSnapshot(OffsetAndEpoch id, long timestamp) {
        return Optional.empty();
    }

    @Override
    public Optional<OffsetAndEpoch> latestSnapshotId() {
        return Optional.empty();
    }

    @Override
    public long logEndOffset() {
        return end;
    }

    @Override
    public KRaftVersion kraftVersion() {
        return KRaftVersion.KRAFT_VERSION_0;
    }

    @Override
    public void upgradeKRaftVersion(int epoch, KRaftVersion version, boolean validateOnly) {
    }

    @Override
    public void close() {
    }
}
