package kafkaspec.target;

import java.nio.ByteBuffer;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;

/** A builder of a batch that is not compressed. */
final class Uncompressed {
    private Uncompressed() {
    }

    static MemoryRecordsBuilder builder(ByteBuffer into, long base, long id, short epoch, int sequence,
                                        boolean transactional, int leaderEpoch) {
        return MemoryRecords.builder(into, RecordBatch.CURRENT_MAGIC_VALUE, CompressionType.NONE, TimestampType.CREATE_TIME,
            base, RecordBatch.NO_TIMESTAMP, id, epoch, sequence, transactional, leaderEpoch);
    }
}
