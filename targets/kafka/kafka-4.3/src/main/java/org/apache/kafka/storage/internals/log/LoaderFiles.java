package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.server.util.MockTime;

/** The files of a log's directory, made of what the spec says of their contents, and the other way round. */
final class LoaderFiles {
    static final TopicPartition PARTITION = new TopicPartition("t", 0);
    static final String EPOCHS = "leader-epoch-checkpoint";
    static final long NOW = 1000L;
    private static final byte[] CORRUPT_SNAPSHOT = {0, 1, 9, 9, 9, 9, 0};

    private final Map<List<Object>, byte[]> batches = new ConcurrentHashMap<>();
    private final byte[] snapshot;

    LoaderFiles(Scratch scratch) throws IOException {
        snapshot = emptySnapshot(scratch);
    }

    private static byte[] emptySnapshot(Scratch scratch) throws IOException {
        Path directory = scratch.directory("s-0");
        ProducerStateManager state = new ProducerStateManager(PARTITION, directory.toFile(), 300_000,
            new ProducerStateManagerConfig(86_400_000, false), new MockTime());
        state.updateMapEndOffset(1);
        state.takeSnapshot();
        return Files.readAllBytes(LogFileUtils.producerSnapshotFile(directory.toFile(), 1).toPath());
    }

    byte[] bytes(String name, JsonNode content) throws IOException {
        if (name.contains(LogFileUtils.LOG_FILE_SUFFIX)) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            long next = 0;
            for (JsonNode b : content.get("batches")) {
                out.write(batch(b.get(0).asLong(), b.get(1).asLong(), b.get(2).asInt(), b.get(3).asBoolean()));
                next = b.get(1).asLong() + 1;
            }
            if (content.get("torn").asBoolean()) {
                out.write(batch(next, next, 0, true), 0, 40);
            }
            return out.toByteArray();
        }
        if (name.equals(EPOCHS)) {
            StringBuilder text = new StringBuilder("0\n" + content.size() + "\n");
            content.forEach(e -> text.append(e.get(0).asInt()).append(' ').append(e.get(1).asLong()).append('\n'));
            return text.toString().getBytes(StandardCharsets.UTF_8);
        }
        boolean corrupt = content.asText().equals("corrupt");
        if (name.contains(LogFileUtils.PRODUCER_SNAPSHOT_FILE_SUFFIX)) {
            return corrupt ? CORRUPT_SNAPSHOT : snapshot;
        }
        return corrupt ? new AbortedTxn(1, -9, -9, 0).buffer.array() : new byte[0]; // it ends below any segment
    }

    byte[] batch(long base, long last, int epoch, boolean whole) {
        return batches.computeIfAbsent(List.of(base, last, epoch, whole), k -> {
            MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(1 << 12), RecordBatch.MAGIC_VALUE_V2,
                Compression.NONE, TimestampType.CREATE_TIME, base, NOW, RecordBatch.NO_PRODUCER_ID,
                RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, epoch);
            for (long offset = base; offset <= last; offset++) {
                builder.appendWithOffset(offset, NOW, null, new byte[] {'v'});
            }
            ByteBuffer built = builder.build().buffer();
            byte[] out = new byte[built.remaining()];
            built.get(out);
            if (!whole) {
                out[out.length - 1] ^= 1;
            }
            return out;
        });
    }

    static Object shown(File file) throws IOException {
        String name = file.getName();
        if (name.contains(LogFileUtils.LOG_FILE_SUFFIX)) {
            byte[] data = Files.readAllBytes(file.toPath());
            List<Object> batches = new ArrayList<>();
            int at = 0;
            while (data.length - at >= DefaultRecordBatch.RECORD_BATCH_OVERHEAD) {
                int size = ByteBuffer.wrap(data).getInt(at + 8) + 12;
                if (at + size > data.length) {
                    break;
                }
                DefaultRecordBatch batch = (DefaultRecordBatch)
                    MemoryRecords.readableRecords(ByteBuffer.wrap(data, at, size).slice()).batches().iterator().next();
                batches.add(List.of(batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(), batch.isValid()));
                at += size;
            }
            return Map.of("batches", batches, "torn", at < data.length);
        }
        if (name.equals(EPOCHS)) {
            List<long[]> entries = new ArrayList<>();
            List<String> lines = Files.readAllLines(file.toPath());
            for (String line : lines.subList(Math.min(2, lines.size()), lines.size())) {
                String[] words = line.split(" ");
                entries.add(new long[] {Long.parseLong(words[0]), Long.parseLong(words[1])});
            }
            return entries;
        }
        boolean corrupt = name.contains(LogFileUtils.TXN_INDEX_FILE_SUFFIX) && file.length() == AbortedTxn.TOTAL_SIZE
            || name.contains(LogFileUtils.PRODUCER_SNAPSHOT_FILE_SUFFIX) && file.length() == CORRUPT_SNAPSHOT.length;
        return corrupt ? "corrupt" : "";
    }
}
