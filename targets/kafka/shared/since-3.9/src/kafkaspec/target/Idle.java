package kafkaspec.target;

import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.server.util.Scheduler;

/** A scheduler whose time never comes: nothing is flushed, expired or deleted in the background. */
public enum Idle implements Scheduler {
    SCHEDULER;

    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
    }

    @Override
    public void resizeThreadPool(int newSize) {
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        return null;
    }
}
