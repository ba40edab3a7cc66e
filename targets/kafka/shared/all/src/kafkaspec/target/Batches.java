package kafkaspec.target;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.*; // MemoryRecords and those about it have moved from here
import org.apache.kafka.common.record.internal.*; // to here

/** Batches for a log, which Kafka's builder fills, and what is shown of those that a log gives. */
public final class Batches {
    private Batches() {
    }

    public static ByteBuffer data(long base, long timestamp, JsonNode records, int leaderEpoch, long id, short epoch,
                                  int sequence, boolean transactional) {
        MemoryRecordsBuilder builder =
            Uncompressed.builder(ByteBuffer.allocate(1 << 12), base, id, epoch, sequence, transactional, leaderEpoch);
        for (JsonNode record : records) {
            builder.append(timestamp, bytes(record.get(0)), bytes(record.get(1)));
        }
        return builder.build().buffer();
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    /** What a client sends, by the arguments of {@code appendAsLeader}. */
    public static MemoryRecords produced(JsonNode a) {
        ByteBuffer batch = data(a.path("baseOffset").asLong(0), a.get("timestamp").asLong(), a.get("records"), -1,
            a.path("producerId").asLong(-1), (short) a.path("producerEpoch").asInt(-1), a.path("baseSequence").asInt(-1),
            a.path("transactional").asBoolean(false));
        int size = a.path("trailingBytes").asInt(0);
        ByteBuffer all = ByteBuffer.allocate(batch.remaining() + size);
        all.put(batch.duplicate());
        if (!a.path("trailingZeros").asBoolean(false)) {
            all.put(batch.duplicate().limit(batch.position() + size));
        }
        all.rewind();
        return MemoryRecords.readableRecords(all);
    }

    /** What a leader sends, by the arguments of {@code appendAsFollower}. */
    public static MemoryRecords copied(JsonNode a) {
        return MemoryRecords.readableRecords(data(a.get("baseOffset").asLong(), a.get("timestamp").asLong(), a.get("records"),
            a.get("batchLeaderEpoch").asInt(), -1, (short) -1, -1, false));
    }

    /** What a coordinator sends, by the arguments of {@code appendEndTxnMarker}. */
    public static MemoryRecords ending(JsonNode a) {
        return marker(0, a.get("timestamp").asLong(), -1, a.get("producerId").asLong(), (short) a.get("producerEpoch").asInt(),
            a.get("type").asText().equals("ABORT"), a.get("coordinatorEpoch").asInt());
    }

    public static MemoryRecords marker(long offset, long timestamp, int leaderEpoch, long id, short epoch, boolean abort,
                                       int coordinatorEpoch) {
        return MemoryRecords.withEndTransactionMarker(offset, timestamp, leaderEpoch, id, epoch,
            new EndTransactionMarker(abort ? ControlRecordType.ABORT : ControlRecordType.COMMIT, coordinatorEpoch));
    }

    public static List<Object> shown(Records records) {
        List<Object> batches = new ArrayList<>();
        for (RecordBatch batch : records.batches()) {
            boolean known = batch.hasProducerId();
            batches.add(object("baseOffset", batch.baseOffset(), "lastOffset", batch.lastOffset(),
                "size", batch.sizeInBytes(), "maxTimestamp", batch.maxTimestamp(), "leaderEpoch", batch.partitionLeaderEpoch(),
                "producerId", known ? batch.producerId() : null, "producerEpoch", known ? batch.producerEpoch() : null,
                "baseSequence", known ? batch.baseSequence() : null, "transactional", batch.isTransactional(),
                "control", batch.isControlBatch(),
                "logAppendTime", batch.timestampType() == TimestampType.LOG_APPEND_TIME));
        }
        return batches;
    }

    public static Map<String, Object> object(Object... pairs) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (int n = 0; n < pairs.length; n += 2) {
            out.put((String) pairs[n], pairs[n + 1]);
        }
        return out;
    }
}
