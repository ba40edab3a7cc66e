package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/** Kafka's own LogSegment: makes the calls that it reads, a JSON line each, and writes them down with what came of them. */
public class Segments {
    static final ObjectMapper JSON = new ObjectMapper();
    static long now;

    static class Clock implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1000000; }
        public void sleep(long ms) { now += ms; }
        public void waitObject(Object o, Supplier<Boolean> condition, long deadlineMs) { }
    }

    static File dir;
    static long base;
    static int interval, maxIndex;
    static long jitter;
    static JsonNode openTransactions;
    static String suffix;
    static LogSegment segment;

    static File file(String end) { return new File(dir, LogFileUtils.filenamePrefixFromOffset(base) + end + suffix); }

    static LogSegment open() throws Exception {
        return new LogSegment(
            FileRecords.open(file(".log"), true, 0, false),
            LazyIndex.forOffset(file(".index"), base, maxIndex),
            LazyIndex.forTime(file(".timeindex"), base, maxIndex),
            new TransactionIndex(base, file(".txnindex")), base, interval, jitter, new Clock());
    }

    static long number(JsonNode args, String name, long otherwise) {
        return args.hasNonNull(name) ? args.get(name).asLong() : otherwise;
    }

    static MemoryRecords records(JsonNode batches) {
        ByteBuffer all = ByteBuffer.allocate(1 << 16);
        for (JsonNode b : batches) {
            String kind = b.get("kind").asText();
            boolean control = kind.equals("abort") || kind.equals("commit");
            long producerId = b.get("producerId").asLong();
            JsonNode first = b.get("records").get(0);
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1 << 12), (byte) 2, Compression.NONE, TimestampType.CREATE_TIME,
                first.get(0).asLong(), -1L, producerId, (short) (producerId < 0 ? -1 : 0),
                producerId < 0 || control ? -1 : 0, !kind.equals("data"), control, b.get("leaderEpoch").asInt(), 1 << 20);
            for (JsonNode r : b.get("records"))
                if (control)
                    builder.appendEndTxnMarker(r.get(1).asLong(), new EndTransactionMarker(
                        kind.equals("abort") ? ControlRecordType.ABORT : ControlRecordType.COMMIT, 0));
                else
                    builder.appendWithOffset(
                        r.get(0).asLong(), r.get(1).asLong(), null, new byte[b.get("valueBytes").asInt()]);
            all.put(builder.build().buffer());
        }
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    static int count = 0;

    static Object call(String op, JsonNode a) throws Exception {
        switch (op) {
            case "init":
                if (segment != null) segment.closeHandlers();
                dir = a.hasNonNull("directory") ? new File(a.get("directory").asText())
                    : Files.createTempDirectory("segment").toFile();
                dir.deleteOnExit();
                base = number(a, "baseOffset", 0);
                interval = (int) number(a, "indexIntervalBytes", 200);
                maxIndex = (int) number(a, "maxIndexBytes", 120);
                jitter = number(a, "rollJitterMs", 0);
                openTransactions = a.path("openTransactions");
                now = 1000000;
                suffix = "";
                segment = open();
                segment.offsetIndex();
                segment.timeIndex();
                return null;
            case "append": {
                MemoryRecords records = records(a.get("batches"));
                long last = -1;
                for (RecordBatch b : records.batches()) last = b.lastOffset();
                segment.append(last, records);
                return null;
            }
            case "updateTxnIndex":
                segment.updateTxnIndex(new CompletedTxn(a.get("producerId").asLong(), a.get("firstOffset").asLong(),
                    a.get("lastOffset").asLong(), a.get("aborted").asBoolean()), a.get("lastStableOffset").asLong());
                return null;
            case "onBecomeInactiveSegment": segment.onBecomeInactiveSegment(); return null;
            case "flush": segment.flush(); return null;
            case "truncateTo": return segment.truncateTo(a.get("offset").asLong());
            case "recover": {
                TopicPartition tp = new TopicPartition("t", 0);
                File beside = Files.createTempDirectory("state").toFile();
                ProducerStateManager producers = new ProducerStateManager(tp, beside, 300000,
                    new ProducerStateManagerConfig(86400000, false), new Clock());
                for (JsonNode t : openTransactions) {
                    ProducerAppendInfo info = producers.prepareUpdate(t.get(0).asLong(), AppendOrigin.REPLICATION);
                    long first = t.get(1).asLong();
                    info.appendDataBatch((short) 0, 0, 0, 0, new LogOffsetMetadata(first), first, true);
                    producers.update(info);
                }
                LeaderEpochFileCache epochs = new LeaderEpochFileCache(tp, new LeaderEpochCheckpointFile(
                    LeaderEpochCheckpointFile.newFile(beside), new LogDirFailureChannel(1)), null);
                int truncated = segment.recover(producers, epochs);
                if (a.get("active").asBoolean()) segment.resizeIndexes(maxIndex);
                ObjectNode out = JSON.createObjectNode();
                out.put("truncated", truncated);
                ArrayNode all = out.putArray("epochs");
                for (EpochEntry e : epochs.epochEntries()) all.addArray().add(e.epoch()).add(e.startOffset());
                Utils.delete(beside);
                return out;
            }
            case "sanityCheck": segment.sanityCheck(a.get("timeIndexFileNewlyCreated").asBoolean()); return null;
            case "resizeIndexes": segment.resizeIndexes(maxIndex); return null;
            case "reopen":
                segment.close();
                segment = open();
                if (a.get("active").asBoolean()) segment.resizeIndexes(maxIndex);
                return null;
            case "close": segment.close(); segment = open(); return null;
            case "crash": {
                if (a.get("keepIndexes").asBoolean()) {
                    segment.offsetIndex().trimToValidSize();
                    segment.timeIndex().trimToValidSize();
                }
                segment.closeHandlers();
                if (!a.get("keepIndexes").asBoolean()) {
                    Files.deleteIfExists(file(".index").toPath());
                    Files.deleteIfExists(file(".timeindex").toPath());
                }
                try (RandomAccessFile log = new RandomAccessFile(file(".log"), "rw")) {
                    log.setLength(Math.max(0, log.length() - a.get("lostBytes").asLong()));
                }
                segment = open();
                return null;
            }
            case "damage": {
                int n = a.get("batch").asInt();
                for (FileLogInputStream.FileChannelRecordBatch b : segment.log().batches())
                    if (n-- == 0)
                        try (RandomAccessFile log = new RandomAccessFile(file(".log"), "rw")) {
                            long at = b.position() + b.sizeInBytes() - 1;
                            log.seek(at);
                            int old = log.read();
                            log.seek(at);
                            log.write(old ^ 1);
                        }
                return null;
            }
            case "createIndexes":
                segment.closeHandlers();
                segment = open();
                segment.offsetIndex();
                segment.timeIndex();
                return null;
            case "changeFileSuffixes":
                segment.changeFileSuffixes(a.get("old").asText(), a.get("new").asText());
                suffix = suffix.substring(0, suffix.length() - a.get("old").asText().length()) + a.get("new").asText();
                return null;
            case "advance": now += a.get("ms").asLong(); return null;
            case "shouldRoll":
                return segment.shouldRoll(new RollParams(a.get("maxSegmentMs").asLong(), a.get("maxSegmentBytes").asInt(),
                    a.get("maxTimestampInMessages").asLong(), a.get("maxOffsetInMessages").asLong(),
                    a.get("messagesSize").asInt(), now));
            case "translateOffset": {
                FileRecords.LogOffsetPosition p =
                    segment.translateOffset(a.get("offset").asLong(), a.get("startingFilePosition").asInt());
                if (p == null) return null;
                return JSON.createObjectNode().put("offset", p.offset).put("position", p.position).put("size", p.size);
            }
            case "read": {
                Optional<Long> most = a.hasNonNull("maxPosition") ? Optional.of(a.get("maxPosition").asLong()) : Optional.empty();
                FetchDataInfo info = segment.read(a.get("startOffset").asLong(), a.get("maxSize").asInt(), most,
                    a.get("minOneMessage").asBoolean());
                if (info == null) return null;
                return JSON.createObjectNode().put("offset", info.fetchOffsetMetadata.messageOffset)
                    .put("position", info.fetchOffsetMetadata.relativePositionInSegment)
                    .put("bytes", info.records.sizeInBytes()).put("firstEntryIncomplete", info.firstEntryIncomplete);
            }
            case "findOffsetByTimestamp": {
                Optional<FileRecords.TimestampAndOffset> f =
                    segment.findOffsetByTimestamp(a.get("timestampMs").asLong(), a.get("startingOffset").asLong());
                if (f.isEmpty()) return null;
                return JSON.createObjectNode().put("timestamp", f.get().timestamp).put("offset", f.get().offset)
                    .put("leaderEpoch", f.get().leaderEpoch.orElse(null));
            }
            case "readNextOffset": return segment.readNextOffset();
            case "names": {
                List<String> there = new ArrayList<>();
                for (String end : new String[] {".log", ".index", ".timeindex", ".txnindex"})
                    if (file(end).exists() && (!end.equals(".txnindex") || file(end).length() > 0))
                        there.add(file(end).getName());
                return there;
            }
        }
        throw new IllegalStateException(op);
    }

    static ObjectNode state() throws Exception {
        ObjectNode s = JSON.createObjectNode();
        s.put("size", segment.size());
        ArrayNode offsets = s.putArray("offsetIndex"), times = s.putArray("timeIndex");
        if (file(".index").exists()) {
            for (int n = 0; n < segment.offsetIndex().entries(); n++)
                offsets.addArray().add(segment.offsetIndex().entry(n).offset()).add(segment.offsetIndex().entry(n).position());
            for (int n = 0; n < segment.timeIndex().entries(); n++)
                times.addArray().add(segment.timeIndex().entry(n).timestamp()).add(segment.timeIndex().entry(n).offset());
            s.put("offsetSlots", segment.offsetIndex().maxEntries());
            s.put("timeSlots", segment.timeIndex().maxEntries());
            if (segment.largestRecordTimestamp().isPresent())
                s.put("largestRecordTimestamp", segment.largestRecordTimestamp().getAsLong());
            else s.putNull("largestRecordTimestamp");
        } else {
            s.putNull("offsetSlots").putNull("timeSlots").putNull("largestRecordTimestamp");
        }
        ArrayNode aborted = s.putArray("abortedTxns");
        for (AbortedTxn t : segment.txnIndex().allAbortedTxns())
            aborted.addArray().add(t.producerId()).add(t.firstOffset()).add(t.lastOffset()).add(t.lastStableOffset());
        s.put("suffix", suffix);
        return s;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int i = 0;
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode call = JSON.readTree(line);
            ObjectNode record = JSON.createObjectNode();
            record.put("i", i++).put("op", call.get("op").asText()).set("args", call.get("args"));
            try {
                record.set("result", JSON.valueToTree(call(call.get("op").asText(), call.get("args"))));
            } catch (Exception e) {
                String message = String.valueOf(e.getMessage()).replace(dir.getPath(), "$DIR");
                record.putObject("error").put("class", e.getClass().getName()).put("message", message);
            }
            record.set("state", state());
            out.println(record);
        }
        out.flush();
    }
}
