package kafkaspec.target;

import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import kafka.utils.Scheduler;
import scala.Function0;
import scala.runtime.BoxedUnit;

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
    public boolean isStarted() {
        return true;
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Function0<BoxedUnit> task, long delay, long period, TimeUnit unit) {
        return null;
    }
}
