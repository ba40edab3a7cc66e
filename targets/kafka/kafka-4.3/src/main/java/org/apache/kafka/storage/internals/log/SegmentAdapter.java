package org.apache.kafka.storage.internals.log;

import static kafkaspec.target.Batches.object;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/**
 * One {@link LogSegment} over its real files: the .log, two mapped indexes and the transaction index.
 *
 * <p>What the adapter adds:
 * <ul>
 * <li>the clock, which stands still but for {@code advance};
 * <li>{@code directory}, which {@code init} may name: the segment's files are there, or will be, and stay;
 * <li>batches for {@code append}, built by {@link MemoryRecordsBuilder} from their offsets, timestamps and sizes;
 * <li>the start of a process: {@code reopen} and {@code crash} construct the segment on the files again. Kafka maps an
 * index when it is first asked for, and a close leaves the files of one alone that was not: here both indexes, if their
 * files are there, are asked for at once, as an append or a read would; {@code createIndexes} asks for those that are not;
 * <li>{@code crash} cuts the .log and removes index files while nothing has them open. Index files that stay are cut to
 * their entries before: the slots behind them are zeros, of which the kernel may have written none;
 * <li>{@code damage} flips the lowest bit of the last byte of a batch;
 * <li>{@code resizeIndexes}, as the last segment of a log gets it, where {@code active} says so;
 * <li>the producer state and the leader epochs that {@code recover} works on: the first knows the transactions that were
 * open before the segment, the second none.
 * </ul>
 */
public final class SegmentAdapter implements Adapter {
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final String[] ENDS = {
        LogFileUtils.LOG_FILE_SUFFIX, LogFileUtils.INDEX_FILE_SUFFIX, LogFileUtils.TIME_INDEX_FILE_SUFFIX,
        LogFileUtils.TXN_INDEX_FILE_SUFFIX};
    private static final int OFFSET_INDEX = 1, TIME_INDEX = 2, TRANSACTION_INDEX = 3;

    private final Scratch scratch = new Scratch("segment");
    private final Time clock = new Clock(() -> this.now);
    private final Path beside;
    private final File[] files = new File[ENDS.length];
    private Path directory;
    private long now;
    private long baseOffset;
    private int indexIntervalBytes;
    private int maxIndexBytes;
    private long rollJitterMs;
    private JsonNode openTransactions;
    private String suffix = "";
    private LogSegment segment;

    public SegmentAdapter() throws IOException {
        beside = scratch.directory("t-0");
    }

    @Override
    public void init(JsonNode a) throws Exception {
        if (segment != null) {
            letGo();
        }
        directory = a.hasNonNull("directory") ? Path.of(a.get("directory").asText()) : scratch.root();
        baseOffset = a.path("baseOffset").asLong(0);
        indexIntervalBytes = a.path("indexIntervalBytes").asInt(200);
        maxIndexBytes = a.path("maxIndexBytes").asInt(120);
        rollJitterMs = a.path("rollJitterMs").asLong(0);
        openTransactions = a.path("openTransactions");
        now = a.path("now").asLong(1_000_000);
        name("");
        segment = open();
        segment.offsetIndex();
        segment.timeIndex();
    }

    private void letGo() throws IOException {
        segment.closeHandlers();
        if (directory.equals(scratch.root())) {
            for (File file : files) {
                Files.deleteIfExists(file.toPath());
            }
        }
    }

    private void name(String newSuffix) {
        suffix = newSuffix;
        for (int n = 0; n < ENDS.length; n++) {
            files[n] = directory.resolve(LogFileUtils.filenamePrefixFromOffset(baseOffset) + ENDS[n] + suffix).toFile();
        }
    }

    /** The segment on its files; a transaction index is opened if there is a file, as {@link LogSegment#open} does. */
    private LogSegment open() throws IOException {
        LogSegment opened = new LogSegment(
            FileRecords.open(files[0], files[0].exists(), 0, false),
            LazyIndex.forOffset(files[OFFSET_INDEX], baseOffset, maxIndexBytes),
            LazyIndex.forTime(files[TIME_INDEX], baseOffset, maxIndexBytes),
            new TransactionIndex(baseOffset, files[TRANSACTION_INDEX]),
            baseOffset, indexIntervalBytes, rollJitterMs, clock);
        if (files[OFFSET_INDEX].exists()) {
            opened.offsetIndex();
            opened.largestRecordTimestamp();
        }
        return opened;
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "append": {
                MemoryRecords records = records(a.get("batches"));
                long last = -1;
                for (RecordBatch batch : records.batches()) {
                    last = batch.lastOffset();
                }
                segment.append(last, records);
                return null;
            }
            case "updateTxnIndex":
                segment.updateTxnIndex(
                    new CompletedTxn(
                        a.get("producerId").asLong(), a.get("firstOffset").asLong(), a.get("lastOffset").asLong(),
                        a.get("aborted").asBoolean()),
                    a.get("lastStableOffset").asLong());
                return null;
            case "onBecomeInactiveSegment":
                segment.onBecomeInactiveSegment();
                return null;
            case "flush":
                segment.flush();
                return null;
            case "truncateTo":
                return segment.truncateTo(a.get("offset").asLong());
            case "recover":
                return recover(a.path("active").asBoolean());
            case "sanityCheck":
                segment.sanityCheck(a.get("timeIndexFileNewlyCreated").asBoolean());
                return null;
            case "resizeIndexes":
                segment.resizeIndexes(maxIndexBytes);
                return null;
            case "reopen":
                segment.close();
                segment = open();
                if (a.path("active").asBoolean()) {
                    segment.resizeIndexes(maxIndexBytes);
                }
                return null;
            case "crash":
                crash(a.get("lostBytes").asLong(), a.get("keepIndexes").asBoolean());
                return null;
            case "damage":
                damage(a.get("batch").asInt());
                return null;
            case "createIndexes": // they are made when they are first asked for
                segment.offsetIndex();
                segment.timeIndex();
                return null;
            case "changeFileSuffixes": {
                String old = a.get("old").asText();
                String other = a.get("new").asText();
                segment.changeFileSuffixes(old, other);
                name(suffix.substring(0, suffix.length() - old.length()) + other);
                return null;
            }
            case "advance":
                now += a.get("ms").asLong();
                return null;
            case "shouldRoll":
                return segment.shouldRoll(new RollParams(
                    a.get("maxSegmentMs").asLong(), a.get("maxSegmentBytes").asInt(),
                    a.get("maxTimestampInMessages").asLong(), a.get("maxOffsetInMessages").asLong(),
                    a.get("messagesSize").asInt(), now));
            case "translateOffset": {
                FileRecords.LogOffsetPosition place =
                    segment.translateOffset(a.get("offset").asLong(), a.path("startingFilePosition").asInt(0));
                return place == null ? null : object("offset", place.offset, "position", place.position, "size", place.size);
            }
            case "read": {
                JsonNode most = a.get("maxPosition");
                FetchDataInfo info = segment.read(
                    a.get("startOffset").asLong(), a.get("maxSize").asInt(),
                    most == null || most.isNull() ? Optional.empty() : Optional.of(most.asLong()),
                    a.get("minOneMessage").asBoolean());
                return info == null ? null : object(
                    "offset", info.fetchOffsetMetadata.messageOffset,
                    "position", info.fetchOffsetMetadata.relativePositionInSegment,
                    "bytes", info.records.sizeInBytes(),
                    "firstEntryIncomplete", info.firstEntryIncomplete);
            }
            case "findOffsetByTimestamp": {
                Optional<FileRecords.TimestampAndOffset> found =
                    segment.findOffsetByTimestamp(a.get("timestampMs").asLong(), a.get("startingOffset").asLong());
                return found.isEmpty() ? null : object(
                    "timestamp", found.get().timestamp, "offset", found.get().offset,
                    "leaderEpoch", found.get().leaderEpoch.orElse(null));
            }
            case "readNextOffset":
                return segment.readNextOffset();
            case "names": {
                List<String> there = new ArrayList<>();
                for (int n = 0; n < files.length; n++) {
                    // an empty transaction index is none: Kafka never removes the file
                    if (files[n].exists() && (n != TRANSACTION_INDEX || files[n].length() > 0)) {
                        there.add(files[n].getName());
                    }
                }
                return there;
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private static MemoryRecords records(JsonNode batches) {
        List<ByteBuffer> parts = new ArrayList<>();
        int size = 0;
        for (JsonNode batch : batches) {
            ByteBuffer part = records(batch, batch.get("records"), batch.path("kind").asText("data"));
            parts.add(part);
            size += part.remaining();
        }
        ByteBuffer all = ByteBuffer.allocate(size);
        parts.forEach(all::put);
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    private static ByteBuffer records(JsonNode batch, JsonNode records, String kind) {
        boolean control = kind.equals("abort") || kind.equals("commit");
        long producerId = batch.path("producerId").asLong(-1);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new ByteBufferOutputStream(512), RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME,
            records.get(0).get(0).asLong(), RecordBatch.NO_TIMESTAMP, producerId, (short) (producerId < 0 ? -1 : 0),
            producerId < 0 || control ? -1 : 0, !kind.equals("data"), control, batch.path("leaderEpoch").asInt(-1),
            1 << 20);
        for (JsonNode record : records) {
            if (control) {
                builder.appendEndTxnMarker(record.get(1).asLong(), new EndTransactionMarker(
                    kind.equals("abort") ? ControlRecordType.ABORT : ControlRecordType.COMMIT, 0));
            } else {
                builder.appendWithOffset(
                    record.get(0).asLong(), record.get(1).asLong(), null, new byte[batch.path("valueBytes").asInt(10)]);
            }
        }
        return builder.build().buffer();
    }

    private Object recover(boolean active) throws IOException {
        ProducerStateManager producers = new ProducerStateManager(
            PARTITION, beside.toFile(), 300_000, new ProducerStateManagerConfig(86_400_000, false), clock);
        for (JsonNode open : openTransactions) {
            ProducerAppendInfo info = producers.prepareUpdate(open.get(0).asLong(), AppendOrigin.REPLICATION);
            long first = open.get(1).asLong();
            info.appendDataBatch((short) 0, 0, 0, 0, new LogOffsetMetadata(first), first, true);
            producers.update(info);
        }
        File checkpoint = LeaderEpochCheckpointFile.newFile(beside.toFile());
        LeaderEpochFileCache epochs = new LeaderEpochFileCache(
            PARTITION, new LeaderEpochCheckpointFile(checkpoint, new LogDirFailureChannel(1)), null);
        try {
            int truncated = segment.recover(producers, epochs);
            if (active) {
                segment.resizeIndexes(maxIndexBytes);
            }
            List<List<Object>> found = new ArrayList<>();
            for (EpochEntry entry : epochs.epochEntries()) {
                found.add(List.of(entry.epoch(), entry.startOffset()));
            }
            return object("truncated", truncated, "epochs", found);
        } finally {
            Files.deleteIfExists(checkpoint.toPath());
        }
    }

    private void crash(long lostBytes, boolean keepIndexes) throws IOException {
        if (keepIndexes) {
            segment.offsetIndex().trimToValidSize();
            segment.timeIndex().trimToValidSize();
        }
        segment.closeHandlers();
        try {
            if (!keepIndexes) {
                Files.deleteIfExists(files[OFFSET_INDEX].toPath());
                Files.deleteIfExists(files[TIME_INDEX].toPath());
            }
            try (RandomAccessFile log = new RandomAccessFile(files[0], "rw")) {
                log.setLength(Math.max(0, log.length() - lostBytes));
            }
        } catch (IOException e) {
            throw new AdapterFailure("crash", e);
        }
        segment = open();
    }

    private void damage(int which) {
        int n = which;
        for (FileLogInputStream.FileChannelRecordBatch batch : segment.log().batches()) {
            if (n-- == 0) {
                try (RandomAccessFile log = new RandomAccessFile(files[0], "rw")) {
                    long at = batch.position() + batch.sizeInBytes() - 1;
                    log.seek(at);
                    int old = log.read();
                    log.seek(at);
                    log.write(old ^ 1);
                } catch (IOException e) {
                    throw new AdapterFailure("damage", e);
                }
                return;
            }
        }
        throw new AdapterFailure("no batch " + which);
    }

    @Override
    public Object observe() throws IOException {
        List<List<Object>> offsets = new ArrayList<>();
        List<List<Object>> times = new ArrayList<>();
        Object offsetSlots = null;
        Object timeSlots = null;
        Object largest = null;
        if (files[OFFSET_INDEX].exists()) {
            OffsetIndex offsetIndex = segment.offsetIndex();
            for (int n = 0; n < offsetIndex.entries(); n++) {
                OffsetPosition entry = offsetIndex.entry(n);
                offsets.add(List.of(entry.offset(), entry.position()));
            }
            TimeIndex timeIndex = segment.timeIndex();
            for (int n = 0; n < timeIndex.entries(); n++) {
                TimestampOffset entry = timeIndex.entry(n);
                times.add(List.of(entry.timestamp(), entry.offset()));
            }
            offsetSlots = offsetIndex.maxEntries();
            timeSlots = timeIndex.maxEntries();
            largest = segment.largestRecordTimestamp().isPresent() ? segment.largestRecordTimestamp().getAsLong() : null;
        }
        List<List<Object>> aborted = new ArrayList<>();
        for (AbortedTxn txn : segment.txnIndex().allAbortedTxns()) {
            aborted.add(List.of(txn.producerId(), txn.firstOffset(), txn.lastOffset(), txn.lastStableOffset()));
        }
        return object(
            "size", segment.size(), "offsetIndex", offsets, "timeIndex", times, "offsetSlots", offsetSlots,
            "timeSlots", timeSlots, "abortedTxns", aborted, "largestRecordTimestamp", largest, "suffix", suffix);
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        if (segment != null) {
            segment.closeHandlers();
        }
        scratch.close();
    }
}
