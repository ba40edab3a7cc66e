package kafkaspec.target;

import java.io.IOException;
import kafka.log.*; // LogSegment has moved from here
import kafkaspec.target.CleanerManager.Segment;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.*; // to here

/**
 * A segment that is not active and has no file: it only says how large it is and which timestamps it has, which is all
 * that the cleaner's manager asks of one.
 */
public final class ToldSegment extends LogSegment {
    private final Segment segment;

    public ToldSegment(Segment segment, Time time) {
        super(null, null, null, null, segment.baseOffset(), 4096, 0, time);
        this.segment = segment;
    }

    /** What any segment of such a log looks like. */
    public static Segment shown(LogSegment s) throws IOException {
        // an empty one would map its time index to say that it has no timestamp
        long largest = s instanceof ToldSegment told ? told.segment.largestTimestamp()
            : s.size() == 0 ? -1 : s.maxTimestampSoFar();
        return new Segment(s.baseOffset(), s.size(), largest, -1);
    }

    @Override
    public int size() {
        return segment.size();
    }

    @Override
    public long largestTimestamp() {
        return segment.largestTimestamp();
    }

    @Override
    public long getFirstBatchTimestamp() {
        return segment.firstBatchTimestamp() < 0 ? Long.MAX_VALUE : segment.firstBatchTimestamp(); // as Kafka's
    }

    @Override
    public void deleteIfExists() {
    }
}
