package kafkaspec.target;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** The specification's clock, in milliseconds, for Kafka's classes: it stands still, and nobody waits by it. */
public record Clock(Supplier<Long> now) implements Time {
    @Override
    public long milliseconds() {
        return now.get();
    }

    @Override
    public long hiResClockMs() {
        return now.get();
    }

    @Override
    public long nanoseconds() {
        return now.get() * 1_000_000;
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
