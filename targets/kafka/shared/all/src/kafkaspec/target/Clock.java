package kafkaspec.target;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** The specification's clock, for Kafka's classes: it stands still, and nobody waits by it. */
public record Clock(Supplier<Long> now, long perMs) implements Time {
    private static final long NS_PER_MS = 1_000_000;

    /** One in milliseconds. */
    public Clock(Supplier<Long> now) {
        this(now, 1);
    }

    /** One in nanoseconds. */
    public static Clock ofNanoseconds(Supplier<Long> now) {
        return new Clock(now, NS_PER_MS);
    }

    @Override
    public long milliseconds() {
        return now.get() / perMs;
    }

    @Override
    public long hiResClockMs() {
        return milliseconds();
    }

    @Override
    public long nanoseconds() {
        return now.get() * (NS_PER_MS / perMs);
    }

    @Override
    public void sleep(long ms) {
        throw new Adapter.AdapterFailure("nobody sleeps here");
    }

    @Override
    public void waitObject(Object on, Supplier<Boolean> condition, long deadlineMs) {
        throw new Adapter.AdapterFailure("nobody waits here");
    }
}
