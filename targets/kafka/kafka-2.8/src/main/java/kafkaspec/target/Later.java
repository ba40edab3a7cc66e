package kafkaspec.target;

import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import kafka.utils.Scheduler;
import org.apache.kafka.common.errors.KafkaStorageException;
import scala.Function0;
import scala.runtime.BoxedUnit;

/**
 * A clock's scheduler: a task is run when its time has come and {@link #run} is called, at once if it has no delay, and
 * once. Tasks of one name are held back until they are asked for. Nobody is told of a task that fails.
 */
public final class Later implements Scheduler {
    private record Task(long due, long number, Function0<BoxedUnit> body) implements Comparable<Task> {
        @Override
        public int compareTo(Task other) {
            return due != other.due ? Long.compare(due, other.due) : Long.compare(number, other.number);
        }

        void run() {
            try {
                body.apply();
            } catch (KafkaStorageException e) {
                // the directory is out of service
            }
        }
    }

    /** What is not waited for. */
    private static final class Never extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }

    private final Clock clock;
    private final String kept;
    private final PriorityQueue<Task> tasks = new PriorityQueue<>();
    private final List<Task> held = new ArrayList<>();
    private long made;

    public Later(Clock clock, String kept) {
        this.clock = clock;
        this.kept = kept;
    }

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
    public ScheduledFuture<?> schedule(String name, Function0<BoxedUnit> body, long delay, long period, TimeUnit unit) {
        Task task = new Task(clock.milliseconds() + unit.toMillis(delay), made++, body);
        if (name.equals(kept)) {
            held.add(task);
        } else {
            tasks.add(task);
            run();
        }
        return new Never();
    }

    /** Run what is due. */
    public void run() {
        while (!tasks.isEmpty() && tasks.peek().due() <= clock.milliseconds()) {
            tasks.poll().run();
        }
    }

    /** Run what was held back. */
    public void runKept() {
        held.forEach(Task::run);
        held.clear();
    }
}
