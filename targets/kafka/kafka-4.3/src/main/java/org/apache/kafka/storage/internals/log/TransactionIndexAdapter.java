package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.server.util.MockScheduler;

/**
 * {@link TransactionIndex}: that of each segment of a {@link LocalLog}, of which the last is written to.
 *
 * <p>Only {@code log.collectAbortedTxns} is answered by the log; all else by the index of its last segment. The .log
 * files are empty and the two other indexes are never asked for. The adapter adds: {@code reopen} and {@code crash} put
 * a segment with a new {@code TransactionIndex} over the same file in the place of the old one, as a start would;
 * {@code crash} has cut the file before. {@code file} and {@code read} are the bytes of a file and an index over a file
 * of given bytes.
 */
public final class TransactionIndexAdapter implements Adapter {
    private static final HexFormat HEX = HexFormat.of();
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);

    private final Scratch scratch = new Scratch("transaction-index");
    private final MockTime time = new MockTime();
    private final LogConfig config = new LogConfig(Map.of());
    private LogSegments segments;
    private LocalLog log;

    @Override
    public void init(JsonNode args) throws IOException {
        clear();
        segments = new LogSegments(PARTITION);
        long start = args.path("startOffset").asLong(0);
        log = new LocalLog(scratch.root().toFile(), config, segments, start, new LogOffsetMetadata(start, start, 0),
            new MockScheduler(time), time, PARTITION, new LogDirFailureChannel(1));
        add(start);
    }

    private void add(long baseOffset) throws IOException {
        File dir = scratch.root().toFile();
        FileRecords records = FileRecords.open(LogFileUtils.logFile(dir, baseOffset));
        segments.add(new LogSegment(records,
            LazyIndex.forOffset(LogFileUtils.offsetIndexFile(dir, baseOffset), baseOffset, 80),
            LazyIndex.forTime(LogFileUtils.timeIndexFile(dir, baseOffset), baseOffset, 120),
            new TransactionIndex(baseOffset, LogFileUtils.transactionIndexFile(dir, baseOffset)), baseOffset, 4096, 0, time));
    }

    /** The active segment's. */
    private TransactionIndex index() {
        return segments.activeSegment().txnIndex();
    }

    private void reopen() throws IOException {
        LogSegment old = segments.activeSegment();
        old.txnIndex().close();
        old.log().closeHandlers();
        segments.remove(old.baseOffset());
        add(old.baseOffset());
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "append":
                index().append(new AbortedTxn(a.get("producerId").asLong(), a.get("firstOffset").asLong(),
                    a.get("lastOffset").asLong(), a.get("lastStableOffset").asLong()));
                return null;
            case "collectAbortedTxns": {
                TxnIndexSearchResult found =
                    index().collectAbortedTxns(a.get("fetchOffset").asLong(), a.get("upperBoundOffset").asLong());
                Map<String, Object> answer = new LinkedHashMap<>();
                answer.put("abortedTransactions", shown(found.abortedTransactions()));
                answer.put("isComplete", found.isComplete());
                return answer;
            }
            case "log.collectAbortedTxns": {
                // the first argument is the fetch offset, by the second the log looks for the segment to begin with
                long fetchOffset = a.get("fetchOffset").asLong();
                return shown(log.collectAbortedTransactions(fetchOffset, fetchOffset, a.get("upperBoundOffset").asLong()));
            }
            case "roll":
                add(a.get("startOffset").asLong());
                return null;
            case "truncateTo":
                index().truncateTo(a.get("offset").asLong());
                return null;
            case "reset":
                index().reset();
                return null;
            case "sanityCheck":
                index().sanityCheck();
                return null;
            case "reopen":
                reopen();
                return null;
            case "crash":
                if (index().file().exists()) {
                    try (RandomAccessFile f = new RandomAccessFile(index().file(), "rw")) {
                        f.setLength(Math.max(0, f.length() - a.get("lostBytes").asLong()));
                    }
                }
                reopen();
                return null;
            case "file": {
                byte[] data = index().file().exists() ? Files.readAllBytes(index().file().toPath()) : new byte[0];
                return HEX.formatHex(data, 0, data.length / AbortedTxn.TOTAL_SIZE * AbortedTxn.TOTAL_SIZE);
            }
            case "read": {
                File other = scratch.file("other");
                Files.write(other.toPath(), HEX.parseHex(a.get("content").asText()));
                TransactionIndex index = new TransactionIndex(0, other);
                try {
                    return shown(index.allAbortedTxns());
                } finally {
                    index.close();
                }
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private static List<long[]> shown(List<AbortedTxn> entries) {
        List<long[]> out = new ArrayList<>(entries.size());
        for (AbortedTxn t : entries) {
            out.add(new long[] {t.producerId(), t.firstOffset(), t.lastOffset(), t.lastStableOffset()});
        }
        return out;
    }

    @Override
    public Object observe() {
        TransactionIndex active = index();
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("all", shown(active.allAbortedTxns()));
        state.put("isEmpty", active.isEmpty());
        state.put("fileSize", active.file().length());
        state.put("exists", active.file().exists());
        List<Object> earlier = new ArrayList<>();
        for (LogSegment segment : segments.values()) {
            TransactionIndex index = segment.txnIndex();
            if (index != active) {
                long rest = index.file().length() % AbortedTxn.TOTAL_SIZE;
                earlier.add(List.of(segment.baseOffset(), shown(index.allAbortedTxns()), rest));
            }
        }
        state.put("earlier", earlier);
        return state;
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    private void clear() throws IOException {
        if (segments != null) {
            for (LogSegment segment : segments.values()) {
                segment.txnIndex().deleteIfExists();
                segment.log().deleteIfExists();
            }
        }
    }

    @Override
    public void close() throws IOException {
        clear();
        scratch.close();
    }
}
