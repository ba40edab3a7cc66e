package org.apache.kafka.storage.internals.epoch;

import org.apache.kafka.storage.internals.log.EpochEntry;

/** Subsystem `leader_epochs` of 3.9. */
public final class LeaderEpochsAdapter extends LeaderEpochCalls {
    @Override
    Integer latestEpoch(LeaderEpochFileCache cache) {
        return number(cache.latestEpoch());
    }

    @Override
    long[] numbers(EpochEntry entry) {
        return new long[] {entry.epoch, entry.startOffset};
    }
}
