package org.apache.kafka.queue;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.PrivateField;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.queue.EventQueue.EventInsertionType;

/**
 * A {@link KafkaEventQueue} with its own thread, which the judge steers: an event, once it runs, runs until the judge says
 * how it ends. After each call the adapter waits until the handler's thread can do nothing by itself: it runs an event,
 * or sleeps in the queue's condition and is not signalled, or has ended. So the order of what happens is the judge's.
 *
 * <p>What the adapter adds: the clock, which stands still but for {@code advance}, behind which the queue is woken, as a
 * real clock would; and the reading of the queue's private lists.
 */
public final class EventQueueAdapter implements Adapter {
    private static final long PATIENCE_NS = 60_000_000_000L;
    private static final int TRIES = 200;

    private static final PrivateField LOCK = PrivateField.of(KafkaEventQueue.class, "lock");
    private static final PrivateField HANDLER = PrivateField.of(KafkaEventQueue.class, "eventHandler");
    private static final PrivateField THREAD = PrivateField.of(KafkaEventQueue.class, "eventHandlerThread");
    private static final PrivateField SHUTTING_DOWN = PrivateField.of(KafkaEventQueue.class, "shuttingDown");
    private static final PrivateField INTERRUPTED = PrivateField.of(KafkaEventQueue.class, "interrupted");
    private static final PrivateField CONDITION = PrivateField.of(HANDLER.type(), "cond");
    private static final PrivateField HEAD = PrivateField.of(HANDLER.type(), "head");
    private static final PrivateField DEADLINES = PrivateField.of(HANDLER.type(), "deadlineMap");
    private static final PrivateField TAGS = PrivateField.of(HANDLER.type(), "tagToEventContext");
    private static final PrivateField NEXT = PrivateField.of(HEAD.type(), "next");
    private static final PrivateField PREVIOUS = PrivateField.of(HEAD.type(), "prev");
    private static final PrivateField EVENT = PrivateField.of(HEAD.type(), "event");

    private History history;

    /** What an event's run throws if the judge says so. */
    private static final class OwnException extends Exception {
        private static final long serialVersionUID = 1L;
    }

    private static final class OwnError extends Error {
        private static final long serialVersionUID = 1L;
    }

    /** One queue, until the next `init`. */
    private static final class History {
        private final AtomicLong now;
        private final AtomicLong idleMs = new AtomicLong();
        private final List<List<Object>> calls = new ArrayList<>();
        private final AtomicInteger closed = new AtomicInteger();
        private final List<Thread> closers = new ArrayList<>();
        private final KafkaEventQueue queue;
        private final Thread handler;
        private final ReentrantLock lock;
        private final Object lists;
        private final Condition condition;
        private volatile Judged running;
        private volatile String outcome;
        private volatile boolean abandoned;
        private int added;

        History(long start, boolean cleanupThrows) {
            now = new AtomicLong(start);
            EventQueue.Event cleanup = () -> {
                called(null, "run");
                if (cleanupThrows) {
                    throw new OwnException();
                }
            };
            queue = new KafkaEventQueue(Clock.ofNanoseconds(now::get), new LogContext(), "judged-", cleanup,
                (idle, at) -> idleMs.addAndGet(idle));
            handler = (Thread) THREAD.read(queue);
            lock = (ReentrantLock) LOCK.read(queue);
            lists = HANDLER.read(queue);
            condition = (Condition) CONDITION.read(lists);
            settle();
        }

        private void called(Integer event, String what) {
            synchronized (calls) {
                calls.add(Arrays.asList(event, what, Thread.currentThread() == handler ? "handler" : "caller"));
            }
        }

        private List<List<Object>> taken() {
            synchronized (calls) {
                List<List<Object>> out = List.copyOf(calls);
                calls.clear();
                return out;
            }
        }

        /** An event of the judge's. */
        private final class Judged implements EventQueue.Event {
            private final int id;
            private final String handling;
            private Throwable own;

            Judged(int id, String handling) {
                this.id = id;
                this.handling = handling;
            }

            @Override
            public void run() throws Exception {
                called(id, "run");
                outcome = null;
                running = this;
                boolean mark = false;
                String how;
                while ((how = outcome) == null && !abandoned) {
                    mark |= Thread.interrupted();
                    LockSupport.park(this);
                }
                mark |= Thread.interrupted();
                if (abandoned) {
                    return;
                }
                if (mark && !how.equals("clears")) {
                    handler.interrupt();
                }
                switch (how) {
                    case "throws" -> throw (OwnException) (own = new OwnException());
                    case "error" -> throw (OwnError) (own = new OwnError());
                    case "interrupted" -> throw new InterruptedException();
                    default -> {
                    }
                }
            }

            @Override
            public void handleException(Throwable e) {
                called(id, e == own ? "thrown" : e.getClass().getName());
                if (abandoned) {
                    return;
                }
                switch (handling) {
                    case "throws" -> throw new IllegalStateException();
                    case "error" -> throw new Error();
                    default -> {
                    }
                }
            }
        }

        Judged event(String handling) {
            return new Judged(added++, handling);
        }

        /** The event that runs ends, and the handler's thread goes on. */
        void finish(String how) {
            running = null;
            outcome = how;
            LockSupport.unpark(handler);
        }

        void interrupt(int times) throws InterruptedException {
            boolean wasIdle = running == null && handler.isAlive();
            for (int n = 0; n < times; n++) {
                handler.interrupt();
            }
            if (wasIdle) {
                handler.join(); // nothing was due, or it would not have slept
            }
        }

        /**
         * The clock moves while the handler's thread sleeps or runs an event. A sleep of a few nanoseconds ends by the
         * machine's clock, and the next one begins with a look at this one: between the two nothing may move.
         */
        void advance(long ns) {
            until(() -> {
                lock.lock();
                try {
                    if (handler.isAlive() && running == null && !lock.hasWaiters(condition)) {
                        return false;
                    }
                    now.addAndGet(ns);
                    return true;
                } finally {
                    lock.unlock();
                }
            });
            queue.wakeup();
        }

        void close(int callers) {
            for (int n = 0; n < callers; n++) {
                Thread closer = new Thread(() -> {
                    try {
                        queue.close();
                        closed.incrementAndGet();
                    } catch (InterruptedException e) {
                        throw new AdapterFailure("nobody interrupts who closes", e);
                    }
                });
                closer.setDaemon(true);
                closer.start();
                closers.add(closer);
                until(() -> {
                    lock.lock();
                    try {
                        return (boolean) SHUTTING_DOWN.read(queue);
                    } finally {
                        lock.unlock();
                    }
                });
            }
        }

        /** The handler's thread can do nothing by itself. */
        void settle() {
            until(() -> {
                if (!handler.isAlive()) {
                    return true;
                }
                if (running != null) {
                    return true;
                }
                lock.lock();
                try {
                    return lock.hasWaiters(condition);
                } finally {
                    lock.unlock();
                }
            });
            if (!handler.isAlive()) {
                for (Thread closer : closers) {
                    try {
                        closer.join();
                    } catch (InterruptedException e) {
                        throw new AdapterFailure("nobody interrupts the judge", e);
                    }
                }
            }
        }

        private static void until(Supplier<Boolean> condition) {
            long begin = 0;
            for (int n = 0; !condition.get(); n++) {
                if (n < TRIES) {
                    Thread.yield();
                    continue;
                }
                LockSupport.parkNanos(50_000);
                if (begin == 0) {
                    begin = System.nanoTime();
                } else if (System.nanoTime() - begin > PATIENCE_NS) {
                    throw new AdapterFailure("the handler's thread comes to no rest");
                }
            }
        }

        /** Its threads end. */
        void abandon() throws InterruptedException {
            abandoned = true;
            queue.beginShutdown("judge");
            while (handler.isAlive()) {
                LockSupport.unpark(handler);
                handler.join(1);
            }
            for (Thread closer : closers) {
                closer.join();
            }
        }

        Object observe() {
            Map<String, Object> shown = new LinkedHashMap<>();
            lock.lock();
            try {
                shown.put("size", queue.size());
                shown.put("running", running == null ? null : running.id);
                shown.put("firstDeferredIfIdling", queue.firstDeferredIfIdling().map(e -> ((Judged) e).id).orElse(null));
                Object head = HEAD.read(lists);
                List<Integer> line = new ArrayList<>();
                for (Object at = NEXT.read(head); at != head; at = NEXT.read(at)) {
                    if (PREVIOUS.read(NEXT.read(at)) != at) {
                        throw new AdapterFailure("the line is not linked both ways");
                    }
                    line.add(idOf(at));
                }
                shown.put("line", line);
                List<List<Object>> deadlines = new ArrayList<>();
                ((TreeMap<?, ?>) DEADLINES.read(lists)).forEach((ns, at) -> deadlines.add(List.of(ns, idOf(at))));
                shown.put("deadlines", deadlines);
                Map<Object, Object> tags = new TreeMap<>();
                ((Map<?, ?>) TAGS.read(lists)).forEach((tag, at) -> tags.put(tag, idOf(at)));
                shown.put("tags", tags);
                shown.put("shuttingDown", SHUTTING_DOWN.read(queue));
                shown.put("interrupted", INTERRUPTED.read(queue));
            } finally {
                lock.unlock();
            }
            shown.put("ended", !handler.isAlive());
            shown.put("closed", closed.get());
            shown.put("idleMs", idleMs.get());
            return shown;
        }

        private static int idOf(Object context) {
            return ((Judged) EVENT.read(context)).id;
        }
    }

    @Override
    public void init(JsonNode args) throws Exception {
        close();
        JsonNode cleanup = args.get("cleanup");
        history = new History(args.path("now").asLong(0), cleanup != null && cleanup.asText().equals("throws"));
    }

    @Override
    public Object apply(String op, JsonNode args) throws Throwable {
        History h = history;
        KafkaEventQueue queue = h.queue;
        h.taken(); // of a call that has thrown
        switch (op) {
            case "append" -> queue.append(event(args));
            case "prepend" -> queue.prepend(event(args));
            case "appendWithDeadline" -> queue.appendWithDeadline(args.get("deadlineNs").asLong(), event(args));
            case "scheduleDeferred" -> queue.scheduleDeferred(tag(args), calculator(args), event(args));
            case "enqueue" -> queue.enqueue(EventInsertionType.valueOf(args.get("insertion").asText()), tag(args),
                calculator(args), event(args));
            case "cancelDeferred" -> queue.cancelDeferred(tag(args));
            case "beginShutdown" -> queue.beginShutdown(args.get("source").asText());
            case "close" -> h.close(args.get("callers").asInt());
            case "wakeup" -> queue.wakeup();
            case "advance" -> h.advance(args.get("ns").asLong());
            case "interrupt" -> h.interrupt(args.get("times").asInt());
            case "finish" -> h.finish(args.get("outcome").asText());
            default -> throw new UnknownOperation(op);
        }
        h.settle();
        List<List<Object>> calls = h.taken();
        return op.equals("cancelDeferred") && calls.isEmpty() ? null : calls;
    }

    private EventQueue.Event event(JsonNode args) {
        return history.event(args.get("handleException").asText());
    }

    private static String tag(JsonNode args) {
        return args.get("tag").isNull() ? null : args.get("tag").asText();
    }

    private static UnaryOperator<OptionalLong> calculator(JsonNode args) {
        long ns = args.get("deadlineNs").asLong();
        return switch (args.get("function").asText()) {
            case "none" -> EventQueue.NoDeadlineFunction.INSTANCE;
            case "deadline" -> new EventQueue.DeadlineFunction(ns);
            default -> new EventQueue.EarliestDeadlineFunction(ns);
        };
    }

    @Override
    public Object observe() {
        return history.observe();
    }

    @Override
    public void close() throws Exception {
        if (history != null) {
            history.abandon();
            history = null;
        }
    }
}
