package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;

/** Subsystem `log` of 4.3. */
public final class LogAdapter extends LogCalls {
    private final class Local extends LocalLog {
        Local(LogSegments segments, LoadedLogOffsets offsets) {
            super(dir.toFile(), config, segments, offsets.recoveryPoint(), offsets.nextOffsetMetadata(), new Later(), time,
                partition, failures);
        }

        @Override
        public LogSegment roll(Long expectedNextOffset) {
            return LocalLog.maybeHandleIOException(failures, parentDir(), () -> "roll", () -> {
                refuseRoll(segments(), Math.max(expectedNextOffset, logEndOffset()));
                return super.roll(expectedNextOffset);
            });
        }

        @Override
        public void append(long lastOffset, MemoryRecords records) throws IOException {
            refuse("bytes");
            super.append(lastOffset, records);
        }

        @Override
        public void flush(long offset) throws IOException {
            refuseFlush(segments());
            super.flush(offset);
        }
    }

    @Override
    String segmentBytes() {
        return "internal.segment.bytes";
    }

    @Override
    QuietLog loaded(boolean clean, LogSegments segments, long logStart, long recoveryPoint, LeaderEpochFileCache epochs,
                    ProducerStateManager producers, Optional<Uuid> topicId) throws IOException {
        LoadedLogOffsets offsets = new LogLoader(dir.toFile(), partition, config, time.scheduler, time, failures, clean,
            segments, logStart, recoveryPoint, epochs, producers, new ConcurrentHashMap<>(), false).load();
        askTimestamps(segments);
        return new QuietLog(offsets.logStartOffset(), new Local(segments, offsets), NEVER, epochs, producers, topicId);
    }

    @Override
    LogSegment roll() throws IOException {
        return log.roll();
    }

    @Override
    LogOffsetMetadata maybeIncrementHighWatermark(LogOffsetMetadata to) throws IOException {
        return log.maybeIncrementHighWatermark(to).orElse(null);
    }

    @Override
    void assignEpochStartOffset(int leaderEpoch, long offset) {
        log.assignEpochStartOffset(leaderEpoch, offset);
    }

    @Override
    OffsetAndEpoch endOffsetForEpoch(int leaderEpoch) {
        return log.endOffsetForEpoch(leaderEpoch).orElse(null);
    }

    @Override
    int leaderEpoch(OffsetAndEpoch end) {
        return end.epoch();
    }

    @Override
    void truncateFullyAndStartAt(long offset, Long logStartOffset) {
        log.truncateFullyAndStartAt(offset, Optional.ofNullable(logStartOffset));
    }

    @Override
    FetchDataInfo read(long offset, int maxLength, String isolation, boolean minOneMessage) throws IOException {
        return log.read(offset, maxLength, FetchIsolation.valueOf(isolation), minOneMessage);
    }

    @Override
    FileRecords.TimestampAndOffset fetchOffsetByTimestamp(long timestamp) {
        return log.fetchOffsetByTimestamp(timestamp, Optional.empty()).timestampAndOffsetOpt().orElse(null);
    }

    @Override
    Long firstUnstableOffset() {
        return log.firstUnstableOffset().orElse(null);
    }

    @Override
    Uuid topicId() {
        return log.topicId().orElse(null);
    }

    @Override
    Integer lastLeaderEpoch(LogAppendInfo info) {
        return info.lastLeaderEpoch().orElse(null);
    }

    @Override
    boolean isAborted(CompletedTxn ended) {
        return ended.isAborted();
    }

    @Override
    List<Object> numbers(BatchMetadata b) {
        return List.of(b.firstSeq(), b.lastSeq(), b.firstOffset(), b.lastOffset(), b.timestamp());
    }

    @Override
    List<Object> numbers(EpochEntry entry) {
        return List.of(entry.epoch(), entry.startOffset());
    }
}
