package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.*;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;

/**
 * {@link LogValidator}, which a leader asks before it appends.
 *
 * <p>What the adapter adds: the source's codec, that of the last batch that is compressed, as the log takes it
 * ({@code UnifiedLog.analyzeAndValidateRecords}); a copy of the bytes, which the validator changes in place; the meters,
 * counted; and of a {@link RecordValidationException} the class of its cause and the places of its records in error, as
 * words, where Kafka's own show three of them at most. Of what is written the fields of each batch are shown, and the
 * bytes of its records as Kafka decompresses them.
 */
abstract class ValidatorCalls implements Adapter {
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private final Meters meters = new Meters();

    /** How often each kind of fault was met by the last call. */
    private static final class Meters implements LogValidator.MetricsRecorder {
        private final Map<String, Integer> counts = new LinkedHashMap<>();

        private void reset() {
            for (String name : List.of(
                "invalidMagic", "invalidOffset", "invalidSequence", "invalidChecksums", "noKeyCompactedTopic")) {
                counts.put(name, 0);
            }
        }

        @Override
        public void recordInvalidMagic() {
            counts.merge("invalidMagic", 1, Integer::sum);
        }

        @Override
        public void recordInvalidOffset() {
            counts.merge("invalidOffset", 1, Integer::sum);
        }

        @Override
        public void recordInvalidSequence() {
            counts.merge("invalidSequence", 1, Integer::sum);
        }

        @Override
        public void recordInvalidChecksums() {
            counts.merge("invalidChecksums", 1, Integer::sum);
        }

        @Override
        public void recordNoKeyCompactedTopic() {
            counts.merge("noKeyCompactedTopic", 1, Integer::sum);
        }
    }

    /** Records in error, with words of ours. */
    private static final class InError extends RuntimeException {
        private InError(RecordValidationException e) {
            super(e.invalidException().getClass().getName() + ": records ["
                + e.recordErrors().stream().map(r -> String.valueOf(r.batchIndex)).collect(Collectors.joining(", "))
                + "]", e);
        }
    }

    @Override
    public void init(JsonNode args) {
        meters.reset();
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        if (!op.equals("validate")) {
            throw new UnknownOperation(op);
        }
        meters.reset();
        try {
            return validate(a);
        } catch (RecordValidationException e) {
            throw new InError(e);
        }
    }

    @Override
    public String named(Throwable refusal) {
        return (refusal instanceof InError ? refusal.getCause() : refusal).getClass().getName();
    }

    @Override
    public Object observe() {
        return new LinkedHashMap<>(meters.counts);
    }

    /** What the validator answered. */
    record Outcome(
        long logAppendTimeMs, MemoryRecords records, long maxTimestampMs, boolean messageSizeMaybeChanged,
        RecordValidationStats stats) {
    }

    /** A new validator of this release, asked once. */
    protected abstract Outcome validated(
        MemoryRecords records, TopicPartition partition, Time time, CompressionType source, Compression target,
        boolean compactedTopic, byte targetMagic, TimestampType timestampType, long timestampBeforeMaxMs,
        long timestampAfterMaxMs, int partitionLeaderEpoch, AppendOrigin origin, PrimitiveRef.LongRef offset,
        LogValidator.MetricsRecorder meters);

    private Object validate(JsonNode a) throws IOException {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(a.get("records").asText())));
        CompressionType source = CompressionType.NONE;
        for (RecordBatch batch : records.batches()) {
            if (batch.compressionType() != CompressionType.NONE) {
                source = batch.compressionType();
            }
        }
        PrimitiveRef.LongRef offset = PrimitiveRef.ofLong(a.get("offset").asLong());
        Outcome result = validated(
            records, PARTITION, new Clock(a.get("now")::asLong), source,
            Compression.of(CompressionType.forName(a.get("targetCompression").asText())).build(),
            a.get("compactedTopic").asBoolean(), (byte) a.get("targetMagic").asInt(),
            TimestampType.forName(a.get("timestampType").asText()), a.get("timestampBeforeMaxMs").asLong(),
            a.get("timestampAfterMaxMs").asLong(), a.get("partitionLeaderEpoch").asInt(),
            AppendOrigin.valueOf(a.get("origin").asText()), offset, meters);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("logAppendTimeMs", result.logAppendTimeMs());
        out.put("maxTimestampMs", result.maxTimestampMs());
        out.put("messageSizeMaybeChanged", result.messageSizeMaybeChanged());
        out.put("nextOffset", offset.value);
        out.put("temporaryMemoryBytes", result.stats().temporaryMemoryBytes());
        out.put("numRecordsConverted", result.stats().numRecordsConverted());
        out.put("data", hex(result.records().buffer()));
        List<Object> batches = new ArrayList<>();
        for (MutableRecordBatch batch : result.records().batches()) {
            batches.add(shown(batch));
        }
        out.put("batches", batches);
        return out;
    }

    // ---- what was written
    private static Map<String, Object> shown(MutableRecordBatch batch) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
        batch.writeTo(bytes);
        bytes.flip();
        boolean old = batch.magic() < RecordBatch.MAGIC_VALUE_V2;
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("offset", bytes.getLong(0));
        out.put("magic", batch.magic());
        out.put("attributes", old ? bytes.get(17) & 0xFF : bytes.getShort(21));
        out.put("maxTimestamp", batch.maxTimestamp());
        out.put("leaderEpoch", batch.partitionLeaderEpoch());
        out.put("baseTimestamp", old ? -1L : bytes.getLong(27));
        out.put("lastOffsetDelta", old ? 0 : bytes.getInt(23));
        out.put("producerId", batch.producerId());
        out.put("producerEpoch", batch.producerEpoch());
        out.put("baseSequence", batch.baseSequence());
        out.put("count", old ? 1 : batch.countOrNull());
        out.put("records", old ? legacy((AbstractLegacyRecordBatch) batch, bytes) : records((DefaultRecordBatch) batch, bytes));
        return out;
    }

    private static String records(DefaultRecordBatch batch, ByteBuffer bytes) throws IOException {
        if (!batch.isCompressed() || bytes.limit() == DefaultRecordBatch.RECORD_BATCH_OVERHEAD) {
            return hex(bytes.position(DefaultRecordBatch.RECORD_BATCH_OVERHEAD));
        }
        try (InputStream stream = batch.recordInputStream(BufferSupplier.NO_CACHING)) {
            return HEX.formatHex(stream.readAllBytes());
        }
    }

    private static String legacy(AbstractLegacyRecordBatch batch, ByteBuffer bytes) throws IOException {
        if (!batch.isCompressed() || batch.value() == null) {
            return hex(bytes.position(batch.magic() == 0 ? 18 : 26));
        }
        Compression compression = Compression.of(batch.compressionType()).build();
        try (InputStream stream = compression.wrapForInput(batch.value(), batch.magic(), BufferSupplier.NO_CACHING)) {
            return HEX.formatHex(stream.readAllBytes());
        }
    }

    private static String hex(ByteBuffer buffer) {
        byte[] out = new byte[buffer.remaining()];
        buffer.duplicate().get(out);
        return HEX.formatHex(out);
    }
}
