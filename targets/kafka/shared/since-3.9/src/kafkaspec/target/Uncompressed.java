package kafkaspec.target;

import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.*; // MemoryRecords and those about it have moved from here
import org.apache.kafka.common.record.internal.*; // to here

/** A builder of a batch that is not compressed. */
final class Uncompressed {
    private Uncompressed() {
    }

    static MemoryRecordsBuilder builder(ByteBuffer into, long base, long id, short epoch, int sequence,
                                        boolean transactional, int leaderEpoch) {
        return MemoryRecords.builder(into, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE, TimestampType.CREATE_TIME, base,
            RecordBatch.NO_TIMESTAMP, id, epoch, sequence, transactional, leaderEpoch);
    }
}
