package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafkaspec.target.Adapter;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.ByteUtils;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.common.utils.PrimitiveRef;

/**
 * Record batches of format 2: {@link MemoryRecords} and {@link DefaultRecordBatch} read, {@link MemoryRecordsBuilder}
 * writes, {@link MemoryRecords#filterTo} is the cleaner's, {@link LogValidator} the leader's, {@link ByteUtils} has the
 * varints.
 *
 * <p>Not offered: {@code decode}, which judges a batch by every rule that a writer keeps, and {@code encode}, which
 * writes fields whether or not they are a batch: Kafka has neither. What its reader makes of bytes is {@code read}.
 *
 * <p>What the adapter adds: it holds the batch that was built or loaded last, and gives the leader a copy, which that
 * changes in place; the format's name and a topic partition for the leader; words for codecs and timestamp types.
 * Which bytes a compressor makes is a library's affair: sizes and bytes of what was compressed here are left out.
 */
public final class BatchAdapter implements Adapter {
    private static final List<String> OPERATIONS = List.of(
        "retainEmpty", "retain", "varint", "readVarint", "load", "build", "read", "corrupt", "validate");
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final Header HEADER = new RecordHeader("h", "hv".getBytes(StandardCharsets.ISO_8859_1));
    private static final LogValidator.MetricsRecorder UNCOUNTED = new LogValidator.MetricsRecorder() {
        @Override
        public void recordInvalidMagic() {
        }

        @Override
        public void recordInvalidOffset() {
        }

        @Override
        public void recordInvalidSequence() {
        }

        @Override
        public void recordInvalidChecksums() {
        }

        @Override
        public void recordNoKeyCompactedTopic() {
        }
    };

    private byte[] data = {};
    private boolean compressedHere;

    @Override
    public Collection<String> operations() {
        return OPERATIONS;
    }

    @Override
    public void init(JsonNode args) {
        data = new byte[0];
        compressedHere = false;
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "load":
                data = HEX.parseHex(a.get("data").asText());
                compressedHere = false;
                return null;
            case "varint":
                return varint(a.get("number").asLong(), a.get("bits").asInt());
            case "readVarint":
                return readVarint(bytes(a), a.get("bits").asInt());
            case "retainEmpty":
                return HEX.formatHex(retained(bytes(a), List.of(), RecordBatch.NO_TIMESTAMP));
            case "retain":
                return retain(a);
            case "build":
                return build(a);
            case "read":
                return read(bytes(a));
            case "corrupt":
                return corrupt(ByteBuffer.wrap(Base64.getDecoder().decode(a.get("base64").asText())));
            case "validate":
                return validate(a);
            default:
                throw new UnknownOperation(op);
        }
    }

    @Override
    public Object observe() {
        return compressedHere ? Map.of() : Map.of("data", HEX.formatHex(data));
    }

    private static ByteBuffer bytes(JsonNode a) {
        return ByteBuffer.wrap(HEX.parseHex(a.get("data").asText()));
    }

    // ---- varints
    private static String varint(long number, int bits) {
        ByteBuffer out = ByteBuffer.allocate(10);
        if (bits == 32) {
            ByteUtils.writeVarint((int) number, out);
        } else {
            ByteUtils.writeVarlong(number, out);
        }
        return HEX.formatHex(out.array(), 0, out.position());
    }

    private static List<Object> readVarint(ByteBuffer from, int bits) {
        long number = bits == 32 ? ByteUtils.readVarint(from) : ByteUtils.readVarlong(from);
        return List.of(number, from.position());
    }

    // ---- writing
    private Object build(JsonNode a) {
        Compression compression = compression(a.get("compression").asText());
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(512), (byte) a.get("magic").asInt(), compression,
            timestampType(a.get("timestampType").asText()), a.get("baseOffset").asLong(),
            a.path("logAppendTime").asLong(RecordBatch.NO_TIMESTAMP), a.get("producerId").asLong(),
            (short) a.get("producerEpoch").asInt(), a.get("baseSequence").asInt(), a.get("transactional").asBoolean(),
            false, a.get("partitionLeaderEpoch").asInt(), Integer.MAX_VALUE);
        for (JsonNode record : a.get("records")) {
            Header[] headers = new Header[record.get("headers").asInt()];
            java.util.Arrays.fill(headers, HEADER);
            builder.append(record.get("t").asLong(), latin1(record.get("k")), latin1(record.get("v")), headers);
        }
        data = array(builder.build().buffer());
        compressedHere = compression.type() != CompressionType.NONE;
        Map<String, Object> out = new LinkedHashMap<>();
        if (!compressedHere) {
            out.put("sizeInBytes", data.length);
        }
        out.put("base64", compressedHere ? null : Base64.getEncoder().encodeToString(data));
        out.put("batches", shown(MemoryRecords.readableRecords(ByteBuffer.wrap(data)), !compressedHere));
        return out;
    }

    /** What the cleaner writes of one batch of which it keeps some records, by their numbers, and the batch in any case. */
    private static byte[] retained(ByteBuffer from, Collection<Integer> kept, long deleteHorizonMs) {
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(deleteHorizonMs, 0) {
            private int number;

            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                number = 0;
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, false);
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return kept.contains(number++);
            }
        };
        // written elsewhere, as the cleaner does: what is kept whole is copied there
        MemoryRecords.FilterResult result = MemoryRecords.readableRecords(from)
            .filterTo(filter, ByteBuffer.allocate(2 * from.remaining() + 1024), BufferSupplier.NO_CACHING);
        return array(result.outputBuffer().flip());
    }

    private static Object retain(JsonNode a) throws Throwable {
        List<Integer> kept = new ArrayList<>();
        a.get("kept").forEach(n -> kept.add(n.asInt()));
        byte[] out = retained(bytes(a), kept, a.get("deleteHorizon").asLong());
        List<Map<String, Object>> batches = read(ByteBuffer.wrap(out));
        for (Map<String, Object> batch : batches) {
            if (!batch.get("compression").equals(CompressionType.NONE.name)) {
                batch.remove("size");
            }
        }
        return batches;
    }

    // ---- reading
    private static Object corrupt(ByteBuffer from) {
        List<Long> batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(from).batches()) {
            batch.ensureValid();
            batches.add(batch.baseOffset());
        }
        return Map.of("valid", true, "batches", batches);
    }

    private static List<Map<String, Object>> read(ByteBuffer from) throws Throwable {
        List<Map<String, Object>> batches = new ArrayList<>();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(from).batches()) {
            batch.ensureValid();
            batches.add(read((DefaultRecordBatch) batch));
        }
        return batches;
    }

    private static Map<String, Object> read(DefaultRecordBatch batch) throws Throwable {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("baseOffset", batch.baseOffset());
        out.put("lastOffset", batch.lastOffset());
        out.put("size", batch.sizeInBytes());
        out.put("magic", batch.magic());
        out.put("leaderEpoch", batch.partitionLeaderEpoch());
        out.put("compression", batch.compressionType().name);
        out.put("timestampType", batch.timestampType().name);
        out.put("transactional", batch.isTransactional());
        out.put("control", batch.isControlBatch());
        out.put("deleteHorizon", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        out.put("baseTimestamp", batch.baseTimestamp());
        out.put("maxTimestamp", batch.maxTimestamp());
        out.put("producerId", batch.producerId());
        out.put("producerEpoch", batch.producerEpoch());
        out.put("baseSequence", batch.baseSequence());
        out.put("lastSequence", batch.lastSequence());
        out.put("count", batch.countOrNull());
        if (batch.isCompressed() && batch.countOrNull() != 0) {
            decompressed(batch);
        }
        List<Map<String, Object>> records = new ArrayList<>();
        Object marker = null;
        for (Record record : batch) {
            Map<String, Object> shown = new LinkedHashMap<>();
            shown.put("offset", record.offset());
            shown.put("timestamp", record.timestamp());
            shown.put("sequence", record.sequence());
            shown.put("key", hex(record.key()));
            shown.put("value", hex(record.value()));
            List<List<String>> headers = new ArrayList<>();
            for (Header header : record.headers()) {
                List<String> pair = new ArrayList<>();
                pair.add(header.key());
                pair.add(header.value() == null ? null : HEX.formatHex(header.value()));
                headers.add(pair);
            }
            shown.put("headers", headers);
            records.add(shown);
        }
        if (batch.isControlBatch() && !records.isEmpty()) {
            marker = marker(batch.iterator().next());
        }
        out.put("records", records);
        out.put("marker", marker);
        return out;
    }

    /**
     * The records are decompressed to their end before one of them is read, where Kafka takes turns: so it does not
     * depend on a codec's blocks whether damage shows as its own or as a malformed record. Whatever the codec throws is
     * said as Kafka says an I/O error of its stream.
     */
    private static void decompressed(DefaultRecordBatch batch) {
        try (var stream = batch.recordInputStream(BufferSupplier.NO_CACHING)) {
            byte[] buffer = new byte[1 << 14];
            while (stream.read(buffer) >= 0) {
                continue;
            }
        } catch (Exception | Error e) {
            throw new KafkaException("Failed to decompress record stream", e);
        }
    }

    /** As a producer state manager, or a consumer, reads a control batch's first record. */
    private static List<Object> marker(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        List<Object> out = new ArrayList<>();
        out.add(type.name());
        out.add(type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT
            ? EndTransactionMarker.deserialize(record).coordinatorEpoch() : null);
        return out;
    }

    // ---- the leader
    private Object validate(JsonNode a) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data.clone()));
        CompressionType source = records.batches().iterator().next().compressionType();
        Compression target = compression(a.get("targetCompression").asText());
        LogValidator.ValidationResult result = new LogValidator(
            records, PARTITION, new MockTime(0, a.get("now").asLong(), 0), source, target,
            a.get("compactedTopic").asBoolean(), (byte) a.get("toMagic").asInt(),
            timestampType(a.get("timestampType").asText()), a.get("timestampBeforeMaxMs").asLong(),
            a.get("timestampAfterMaxMs").asLong(), a.get("partitionLeaderEpoch").asInt(),
            AppendOrigin.valueOf(a.get("origin").asText())
        ).validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(a.get("initialOffset").asLong()), UNCOUNTED, BufferSupplier.NO_CACHING);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("logAppendTimeMs", result.logAppendTimeMs());
        out.put("maxTimestampMs", result.maxTimestampMs());
        out.put("messageSizeMaybeChanged", result.messageSizeMaybeChanged());
        boolean sized = target.type() == CompressionType.NONE || !result.messageSizeMaybeChanged() && !compressedHere;
        out.put("batches", shown(result.validatedRecords(), sized));
        return out;
    }

    private static List<Map<String, Object>> shown(MemoryRecords from, boolean sized) {
        List<Map<String, Object>> batches = new ArrayList<>();
        for (MutableRecordBatch batch : from.batches()) {
            batch.ensureValid();
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("baseOffset", batch.baseOffset());
            out.put("lastOffset", batch.lastOffset());
            if (sized) {
                out.put("size", batch.sizeInBytes());
            }
            out.put("maxTimestamp", batch.maxTimestamp());
            out.put("magic", batch.magic());
            out.put("leaderEpoch", batch.partitionLeaderEpoch());
            out.put("producerId", batch.producerId());
            out.put("producerEpoch", batch.producerEpoch());
            out.put("baseSequence", batch.baseSequence());
            out.put("transactional", batch.isTransactional());
            out.put("control", batch.isControlBatch());
            out.put("deleteHorizonMs", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
            out.put("compression", batch.compressionType().name);
            out.put("timestampType", batch.timestampType().name);
            List<Map<String, Object>> records = new ArrayList<>();
            for (Record record : batch) {
                Map<String, Object> shown = new LinkedHashMap<>();
                shown.put("o", record.offset());
                shown.put("t", record.timestamp());
                shown.put("k", latin1(record.key()));
                shown.put("v", latin1(record.value()));
                records.add(shown);
            }
            out.put("records", records);
            batches.add(out);
        }
        return batches;
    }

    // ---- words and bytes
    private static Compression compression(String name) {
        return Compression.of(CompressionType.forName(name)).build();
    }

    private static TimestampType timestampType(String name) {
        return TimestampType.forName(name);
    }

    private static byte[] array(ByteBuffer buffer) {
        byte[] out = new byte[buffer.remaining()];
        buffer.duplicate().get(out);
        return out;
    }

    private static String hex(ByteBuffer buffer) {
        return buffer == null ? null : HEX.formatHex(array(buffer));
    }

    private static byte[] latin1(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    private static String latin1(ByteBuffer buffer) {
        return buffer == null ? null : new String(array(buffer), StandardCharsets.ISO_8859_1);
    }
}
