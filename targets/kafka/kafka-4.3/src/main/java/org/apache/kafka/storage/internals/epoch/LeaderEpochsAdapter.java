package org.apache.kafka.storage.internals.epoch;

import org.apache.kafka.storage.internals.log.EpochEntry;

/** Subsystem `leader_epochs` of 4.3. */
public final class LeaderEpochsAdapter extends LeaderEpochCalls {
    @Override
    Integer latestEpoch(LeaderEpochFileCache cache) {
        return cache.latestEpoch().orElse(null);
    }

    @Override
    long[] numbers(EpochEntry entry) {
        return new long[] {entry.epoch(), entry.startOffset()};
    }
}
