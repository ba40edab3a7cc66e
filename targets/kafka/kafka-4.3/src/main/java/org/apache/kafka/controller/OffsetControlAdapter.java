package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import kafkaspec.target.Adapter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.metadata.AbortTransactionRecord;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.controller.metrics.QuorumControllerMetrics;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * Subsystem `offset_control`: {@link OffsetControlManager} with its registry, its metrics, and one
 * {@link TimelineHashMap} on the registry, from a key to the offset of the record that set it.
 *
 * <p>The adapter does what {@code QuorumController} does around it: it replays the records of an append before
 * {@code handleScheduleAppend}, those of a committed batch on a standby before {@code handleCommitBatch}, and a batch
 * without records comes to {@code handleCommitBatchMetrics} alone. A replay that throws ends the call.
 */
public final class OffsetControlAdapter implements Adapter {
    private static final long BEGIN_MS = 1_000_000;

    private MockTime time;
    private SnapshotRegistry registry;
    private TimelineHashMap<String, Long> data;
    /** All keys that were ever set in this history. */
    private final Set<String> seen = new TreeSet<>();
    private QuorumControllerMetrics metrics;
    private OffsetControlManager manager;

    @Override
    public void init(JsonNode args) {
        seen.clear();
        time = new MockTime(0, BEGIN_MS, 0);
        registry = new SnapshotRegistry(new LogContext());
        data = new TimelineHashMap<>(registry, 4);
        metrics = new QuorumControllerMetrics(Optional.empty(), time, 0);
        manager = new OffsetControlManager.Builder().setLogContext(new LogContext()).setSnapshotRegistry(registry)
            .setMetrics(metrics).setTime(time).build();
    }

    @Override
    public Object apply(String op, JsonNode a) {
        switch (op) {
            case "activate":
                manager.activate(a.get("newNextWriteOffset").asLong());
                return null;
            case "deactivate":
                manager.deactivate();
                return null;
            case "appendBatch":
            case "appendActive": {
                List<String> records = records(op, a);
                long first = a.get("firstOffset").asLong();
                replay(records, first);
                manager.handleScheduleAppend(first + records.size() - 1);
                return null;
            }
            case "commitBatch":
            case "commitStandby": {
                List<String> records = records(op, a);
                long first = a.get("firstOffset").asLong();
                replay(records, first);
                manager.handleCommitBatch(batch(a, first, records.size()));
                return null;
            }
            case "handleCommitBatch": {
                long last = a.get("lastOffset").asLong();
                manager.handleCommitBatch(batch(a, last, 1));
                return null;
            }
            case "commitControlBatch": {
                Batch<ApiMessageAndVersion> control = batch(a, a.get("offset").asLong(), 0);
                if (control.records().isEmpty()) {
                    manager.handleCommitBatchMetrics(control);
                } else {
                    throw new AdapterFailure("a control batch has no records");
                }
                return null;
            }
            case "beginLoadSnapshot":
                manager.beginLoadSnapshot(new OffsetAndEpoch(a.get("offset").asLong(), a.get("epoch").asInt()));
                return null;
            case "loadSnapshotData":
                put(a.get("key").asText(), a.get("value").asLong());
                return null;
            case "replayInSnapshot":
                replay(a.get("kind").asText(), manager.currentSnapshotId().offset());
                return null;
            case "endLoadSnapshot":
                manager.endLoadSnapshot(a.get("timestamp").asLong());
                return null;
            case "advance":
                time.setCurrentTimeMs(time.milliseconds() + a.get("ms").asLong());
                return null;
            default:
                throw new UnknownOperation(op);
        }
    }

    /** The markers and keys of a batch, in order. */
    private static List<String> records(String op, JsonNode a) {
        List<String> records = new ArrayList<>();
        if (op.endsWith("Batch")) {
            a.get("records").forEach(record -> records.add(record.asText()));
        } else {
            String kind = a.get("kind").asText();
            String record = kind.equals("data") ? a.get("key").asText() : kind;
            records.addAll(Collections.nCopies(a.get("count").asInt(), record));
        }
        return records;
    }

    private void replay(List<String> records, long firstOffset) {
        long offset = firstOffset;
        for (String record : records) {
            replay(record, offset++);
        }
    }

    private void replay(String record, long offset) {
        switch (record) {
            case "begin" -> manager.replay(new BeginTransactionRecord(), offset);
            case "end" -> manager.replay(new EndTransactionRecord(), offset);
            case "abort" -> manager.replay(new AbortTransactionRecord(), offset);
            default -> put(record, offset);
        }
    }

    private void put(String key, long offset) {
        seen.add(key);
        data.put(key, offset);
    }

    /** A batch of so many records; one of raft's own has none. What they say is replayed already, or not at all. */
    private static Batch<ApiMessageAndVersion> batch(JsonNode a, long baseOffset, int records) {
        int epoch = a.get("epoch").asInt();
        long timestamp = a.path("appendTimestamp").asLong(-1);
        if (records == 0) {
            return Batch.control(baseOffset, epoch, timestamp, 0,
                List.of(ControlRecord.of(new LeaderChangeMessage())));
        }
        ApiMessage message = new NoOpRecord();
        return Batch.data(baseOffset, epoch, timestamp, 0,
            Collections.nCopies(records, new ApiMessageAndVersion(message, (short) 0)));
    }

    @Override
    public Object observe() {
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("active", manager.active());
        state.put("nextWriteOffset", manager.nextWriteOffset());
        state.put("lastCommittedOffset", manager.lastCommittedOffset());
        state.put("lastCommittedEpoch", manager.lastCommittedEpoch());
        state.put("lastStableOffset", manager.lastStableOffset());
        state.put("transactionStartOffset", manager.transactionStartOffset());
        state.put("currentSnapshotName", manager.currentSnapshotName());
        state.put("snapshotEpochs", registry.epochsList());
        state.put("data", data(RegistryCalls.NOW));
        state.put("metricActive", metrics.active());
        state.put("metricLastApplied", metrics.lastAppliedRecordOffset());
        state.put("metricLastCommitted", metrics.lastCommittedRecordOffset());
        state.put("metricLastAppliedTimestamp", metrics.lastAppliedRecordTimestamp());
        state.put("at", RegistryCalls.past(registry, this::data));
        return state;
    }

    private Map<String, Long> data(long epoch) {
        return RegistryCalls.lookedUp(data, seen, epoch);
    }
}
