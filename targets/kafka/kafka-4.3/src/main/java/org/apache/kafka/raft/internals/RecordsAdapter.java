package org.apache.kafka.raft.internals;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiFunction;
import kafkaspec.target.Adapter;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.KRaftVersionRecordJsonConverter;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.LeaderChangeMessageJsonConverter;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotFooterRecordJsonConverter;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecordJsonConverter;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.message.VotersRecordJsonConverter;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.DefaultRecord;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * The reader of a quorum's log, {@link RecordsIterator}, and what it reads with: {@link MetadataRecordSerde} and
 * {@link ControlRecord}. The adapter puts key and value into a record by {@link DefaultRecord}, calls the reader's
 * private methods for one record, and prints it by Kafka's JSON converters.
 */
public final class RecordsAdapter implements Adapter {
    private static final HexFormat HEX = HexFormat.of();
    private static final int ROOM = 1 << 20;
    private final RecordsIterator<ApiMessageAndVersion> reader = new RecordsIterator<>(
        MemoryRecords.EMPTY, MetadataRecordSerde.INSTANCE, BufferSupplier.NO_CACHING, ROOM, true, new LogContext());
    private final Method readRecord = method("readRecord", InputStream.class, int.class, BiFunction.class);
    private final Method decodeData = method("decodeDataRecord", Optional.class, Optional.class);
    private final Method decodeControl = method("decodeControlRecord", Optional.class, Optional.class);

    private static Method method(String name, Class<?>... parameters) {
        try {
            Method found = RecordsIterator.class.getDeclaredMethod(name, parameters);
            found.setAccessible(true);
            return found;
        } catch (NoSuchMethodException e) {
            throw new AdapterFailure(name, e);
        }
    }

    @Override
    public void init(JsonNode args) {
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "data.decode": {
                ApiMessageAndVersion read = (ApiMessageAndVersion) read(a, decodeData, a.get("timestampDelta").asLong());
                return shown(read.message().apiKey(), read.version(),
                    MetadataJsonConverters.writeJson(read.message(), read.version()));
            }
            case "data.rewrite": {
                ByteBuffer value = ByteBuffer.wrap(bytes(a.get("value")));
                return written(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), value.remaining()));
            }
            case "data.encode": {
                JsonNode of = a.get("record");
                short type = (short) of.get("type").asInt();
                short highest = MetadataRecordType.fromId(type).highestSupportedVersion();
                ApiMessage message = MetadataJsonConverters.readJson(of.get("fields"), type, highest);
                return written(new ApiMessageAndVersion(message, (short) of.get("version").asInt()));
            }
            case "control.decode": {
                ControlRecord read = (ControlRecord) read(a, decodeControl, 0);
                return shown(read.type().type(), (short) 0, json(read.message()));
            }
            case "control.encode":
                return control(a.get("record"));
            default:
                throw new UnknownOperation(op);
        }
    }

    /** One record, as the reader reads it from a batch's stream. */
    private Object read(JsonNode a, Method decode, long timestampDelta) throws Throwable {
        List<Header> headers = new ArrayList<>();
        if (a.has("headers")) {
            a.get("headers").forEach(h -> headers.add(new RecordHeader(h.get(0).asText(), bytes(h.get(1)))));
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        DefaultRecord.writeTo(new DataOutputStream(out), 0, timestampDelta, buffer(a.get("key")), buffer(a.get("value")),
            headers.toArray(new Header[0]));
        BiFunction<Optional<ByteBuffer>, Optional<ByteBuffer>, Object> decoder = (key, value) -> {
            try {
                return decode.invoke(reader, key, value);
            } catch (InvocationTargetException e) {
                throw refusal(e);
            } catch (IllegalAccessException e) {
                throw new AdapterFailure(decode.getName(), e);
            }
        };
        try {
            return readRecord.invoke(reader, new ByteArrayInputStream(out.toByteArray()), out.size(), decoder);
        } catch (InvocationTargetException e) {
            throw refusal(e);
        }
    }

    private static RuntimeException refusal(InvocationTargetException e) {
        if (e.getCause() instanceof RuntimeException refusal) {
            return refusal;
        }
        throw new AdapterFailure("no refusal", e.getCause());
    }

    private static String written(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(out));
        if (out.hasRemaining()) {
            throw new AdapterFailure("a record that is smaller than its size: " + record);
        }
        return HEX.formatHex(out.array());
    }

    private static JsonNode json(ApiMessage message) {
        if (message instanceof LeaderChangeMessage of) {
            return LeaderChangeMessageJsonConverter.write(of, (short) 0);
        } else if (message instanceof SnapshotHeaderRecord of) {
            return SnapshotHeaderRecordJsonConverter.write(of, (short) 0);
        } else if (message instanceof SnapshotFooterRecord of) {
            return SnapshotFooterRecordJsonConverter.write(of, (short) 0);
        } else if (message instanceof KRaftVersionRecord of) {
            return KRaftVersionRecordJsonConverter.write(of, (short) 0);
        } else if (message instanceof VotersRecord of) {
            return VotersRecordJsonConverter.write(of, (short) 0);
        }
        throw new AdapterFailure("an unknown control record: " + message);
    }

    /** Key and value of a batch that Kafka makes of such a message. */
    private static Object control(JsonNode of) {
        ByteBuffer room = ByteBuffer.allocate(ROOM);
        JsonNode fields = of.get("fields");
        MemoryRecords batch;
        switch (of.get("type").asInt()) {
            case 2:
                batch = MemoryRecords.withLeaderChangeMessage(0, 0, 0, room, LeaderChangeMessageJsonConverter.read(
                    fields, LeaderChangeMessage.HIGHEST_SUPPORTED_VERSION));
                break;
            case 3:
                batch = MemoryRecords.withSnapshotHeaderRecord(0, 0, 0, room, SnapshotHeaderRecordJsonConverter.read(
                    fields, SnapshotHeaderRecord.HIGHEST_SUPPORTED_VERSION));
                break;
            case 4:
                batch = MemoryRecords.withSnapshotFooterRecord(0, 0, 0, room, SnapshotFooterRecordJsonConverter.read(
                    fields, SnapshotFooterRecord.HIGHEST_SUPPORTED_VERSION));
                break;
            case 5:
                batch = MemoryRecords.withKRaftVersionRecord(0, 0, 0, room, KRaftVersionRecordJsonConverter.read(
                    fields, KRaftVersionRecord.HIGHEST_SUPPORTED_VERSION));
                break;
            case 6:
                batch = MemoryRecords.withVotersRecord(0, 0, 0, room, VotersRecordJsonConverter.read(
                    fields, VotersRecord.HIGHEST_SUPPORTED_VERSION));
                break;
            default:
                throw new UnknownOperation("control.encode of type " + of.get("type"));
        }
        Record record = batch.records().iterator().next();
        return List.of(hex(record.key()), hex(record.value()));
    }

    private static Map<String, Object> shown(int type, short version, JsonNode fields) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("type", type);
        out.put("version", version);
        out.put("fields", fields);
        return out;
    }

    private static String hex(ByteBuffer of) {
        byte[] out = new byte[of.remaining()];
        of.duplicate().get(out);
        return HEX.formatHex(out);
    }

    private static byte[] bytes(JsonNode hex) {
        return HEX.parseHex(hex.asText());
    }

    private static ByteBuffer buffer(JsonNode hex) {
        return hex.isNull() ? null : ByteBuffer.wrap(bytes(hex));
    }

    @Override
    public Object observe() {
        return Map.of();
    }
}
