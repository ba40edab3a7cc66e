package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import kafka.common.OffsetsOutOfOrderException;
import kafka.common.UnexpectedAppendOffsetException;
import kafka.log.LocalLog;
import kafka.log.LocalLog$;
import kafka.log.LogLoader;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import scala.Option;

/**
 * Subsystem `log` of 3.9, whose log is Scala. Markers have no transaction version yet: what is appended with one is appended
 * without.
 */
public final class LogAdapter extends LogCalls {
    private final class Local extends LocalLog {
        Local(LogSegments segments, LoadedLogOffsets offsets) {
            super(dir.toFile(), config, segments, offsets.recoveryPoint, offsets.nextOffsetMetadata, new Later(), time,
                partition, failures);
        }

        @Override
        public LogSegment roll(Option<Object> expectedNextOffset) {
            return LocalLog$.MODULE$.maybeHandleIOException(failures, parentDir(), () -> "roll", () -> {
                long expected = expectedNextOffset.isEmpty() ? 0 : (Long) expectedNextOffset.get();
                asScala(() -> refuseRoll(segments(), Math.max(expected, logEndOffset())));
                return super.roll(expectedNextOffset);
            });
        }

        @Override
        public void append(long lastOffset, MemoryRecords records) {
            asScala(() -> refuse("bytes"));
            super.append(lastOffset, records);
        }

        @Override
        public void flush(long offset) {
            asScala(() -> refuseFlush(segments()));
            super.flush(offset);
        }
    }

    private interface Refusable {
        void ask() throws IOException;
    }

    /** Scala does not say what it throws. */
    private static void asScala(Refusable effect) {
        try {
            effect.ask();
        } catch (IOException e) {
            LogCalls.<RuntimeException>thrown(e);
        }
    }

    @Override
    String segmentBytes() {
        return TopicConfig.SEGMENT_BYTES_CONFIG;
    }

    @Override
    QuietLog loaded(boolean clean, LogSegments segments, long logStart, long recoveryPoint, LeaderEpochFileCache epochs,
                    ProducerStateManager producers, Optional<Uuid> topicId) throws IOException {
        LoadedLogOffsets offsets = new LogLoader(dir.toFile(), partition, config, time.scheduler, time, failures, clean,
            segments, logStart, recoveryPoint, Optional.of(epochs), producers, new ConcurrentHashMap<>(), false).load();
        askTimestamps(segments);
        return new QuietLog(offsets.logStartOffset, new Local(segments, offsets), NEVER, epochs, producers, topicId);
    }

    private static <T> T orNull(Option<T> some) {
        return some.isEmpty() ? null : some.get();
    }

    @Override
    LogSegment roll() {
        return log.roll(Option.empty());
    }

    @Override
    LogOffsetMetadata maybeIncrementHighWatermark(LogOffsetMetadata to) {
        return orNull(log.maybeIncrementHighWatermark(to));
    }

    @Override
    void assignEpochStartOffset(int leaderEpoch, long offset) {
        log.maybeAssignEpochStartOffset(leaderEpoch, offset);
    }

    @Override
    OffsetAndEpoch endOffsetForEpoch(int leaderEpoch) {
        return orNull(log.endOffsetForEpoch(leaderEpoch));
    }

    @Override
    int leaderEpoch(OffsetAndEpoch end) {
        return end.leaderEpoch();
    }

    @Override
    void truncateFullyAndStartAt(long offset, Long logStartOffset) {
        log.truncateFullyAndStartAt(offset, Option.apply(logStartOffset));
    }

    @Override
    FetchDataInfo read(long offset, int maxLength, String isolation, boolean minOneMessage) {
        return log.read(offset, maxLength, FetchIsolation.valueOf(isolation), minOneMessage);
    }

    @Override
    FileRecords.TimestampAndOffset fetchOffsetByTimestamp(long timestamp) {
        return orNull(log.fetchOffsetByTimestamp(timestamp, Option.empty()));
    }

    @Override
    Long firstUnstableOffset() {
        return (Long) orNull(log.firstUnstableOffset());
    }

    @Override
    Uuid topicId() {
        return orNull(log.topicId());
    }

    @Override
    Integer lastLeaderEpoch(LogAppendInfo info) {
        return info.lastLeaderEpoch().isPresent() ? (Integer) info.lastLeaderEpoch().getAsInt() : null;
    }

    @Override
    boolean isAborted(CompletedTxn ended) {
        return ended.isAborted;
    }

    @Override
    List<Object> numbers(BatchMetadata b) {
        return List.of(b.firstSeq(), b.lastSeq, b.firstOffset(), b.lastOffset, b.timestamp);
    }

    @Override
    List<Object> numbers(EpochEntry entry) {
        return List.of(entry.epoch, entry.startOffset);
    }

    /** Two classes have moved. */
    @Override
    public String named(Throwable refusal) {
        return refusal instanceof OffsetsOutOfOrderException ? "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException"
            : refusal instanceof UnexpectedAppendOffsetException
                ? "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException" : super.named(refusal);
    }
}
