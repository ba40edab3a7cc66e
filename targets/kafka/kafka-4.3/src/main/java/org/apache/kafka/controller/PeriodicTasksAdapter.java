package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.function.Supplier;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.PrivateField;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.queue.EventQueue.EarliestDeadlineFunction;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * A {@link PeriodicTaskControlManager} over a queue of one entry a tag, whose deadlines are those that the controller's
 * queue accessor asks for. What a task does is the judge's.
 */
public final class PeriodicTasksAdapter implements Adapter {
    private static final ApiMessageAndVersion RECORD = new ApiMessageAndVersion(new NoOpRecord(), (short) 0);
    private static final PrivateField TASKS = PrivateField.of(PeriodicTaskControlManager.class, "tasks");
    private static final PrivateField TASK_OF_RUN = PrivateField.of(PeriodicTaskControlManager.PeriodicTaskOperation.class, "task");

    private record Entry(long deadlineNs, Supplier<ControllerResult<Void>> run) {
    }

    private final Map<String, Entry> queue = new TreeMap<>();
    private final List<PeriodicTask> made = new ArrayList<>();
    private PeriodicTaskControlManager manager;
    private long now;
    private JsonNode asked;

    /** As the controller's, over entries in the place of events. */
    private final class Accessor implements PeriodicTaskControlManager.QueueAccessor {
        @Override
        public void scheduleDeferred(String tag, long deadlineNs, Supplier<ControllerResult<Void>> op) {
            Entry before = queue.get(tag);
            OptionalLong existing = before == null ? OptionalLong.empty() : OptionalLong.of(before.deadlineNs);
            queue.put(tag, new Entry(new EarliestDeadlineFunction(deadlineNs).apply(existing).getAsLong(), op));
        }

        @Override
        public void cancelDeferred(String tag) {
            queue.remove(tag);
        }
    }

    @Override
    public void init(JsonNode args) {
        queue.clear();
        made.clear();
        now = args.path("now").asLong(0);
        manager = new PeriodicTaskControlManager.Builder().setLogContext(new LogContext()).setTime(Clock.ofNanoseconds(() -> now)).
            setQueueAccessor(new Accessor()).build();
    }

    @Override
    public Object apply(String op, JsonNode args) throws Throwable {
        switch (op) {
            case "registerTask" -> register(args.get("name").asText(), args.get("periodNs").asLong(),
                args.get("immediateNs").isNull() ? null : args.get("immediateNs").asLong(), args.get("verbose").asBoolean());
            case "unregisterTask" -> manager.unregisterTask(args.get("name").asText());
            case "activate" -> manager.activate();
            case "deactivate" -> manager.deactivate();
            case "advance" -> now += args.get("ns").asLong();
            case "run" -> {
                return run(args);
            }
            default -> throw new UnknownOperation(op);
        }
        return null;
    }

    private void register(String name, long periodNs, Long immediateNs, boolean verbose) {
        int id = made.size();
        EnumSet<PeriodicTaskFlag> flags = verbose ? EnumSet.of(PeriodicTaskFlag.VERBOSE) : EnumSet.noneOf(PeriodicTaskFlag.class);
        Supplier<ControllerResult<Boolean>> does = () -> perform(id);
        PeriodicTask task = immediateNs == null ? new PeriodicTask(name, does, periodNs, flags)
            : new PeriodicTask(name, does, periodNs, flags, immediateNs);
        made.add(task);
        manager.registerTask(task);
    }

    private Object run(JsonNode args) {
        Entry entry = queue.remove(args.get("name").asText());
        asked = args;
        int id = idOf(entry);
        ControllerResult<Void> result = entry.run.get();
        if (result.response() != null) {
            throw new AdapterFailure("a run has an answer");
        }
        return Arrays.asList(id, result.records().size(), result.isAtomic());
    }

    /** What a task does, as the judge has said. */
    private ControllerResult<Boolean> perform(int id) {
        PeriodicTask task = made.get(id);
        String meanwhile = asked.get("meanwhile").asText();
        switch (meanwhile) {
            case "unregister" -> manager.unregisterTask(task.name());
            case "replace" -> {
                manager.unregisterTask(task.name());
                long period = (2 * task.periodNs()) % Long.MAX_VALUE;
                register(task.name(), period < 0 ? period + Long.MAX_VALUE : period, task.immediatePeriodNs(), false);
            }
            case "deactivate" -> manager.deactivate();
            case "reactivate" -> {
                manager.deactivate();
                manager.activate();
            }
            default -> {
            }
        }
        String outcome = asked.get("outcome").asText();
        switch (outcome) {
            case "throws" -> throw new IllegalStateException(String.valueOf(id));
            case "error" -> throw new Error();
            default -> {
            }
        }
        List<ApiMessageAndVersion> records = Collections.nCopies(asked.get("records").asInt(), RECORD);
        Boolean again = outcome.equals("null") ? null : (Boolean) outcome.equals("again");
        return asked.get("atomic").asBoolean() ? ControllerResult.atomicOf(records, again) : ControllerResult.of(records, again);
    }

    private int idOf(Entry entry) {
        return made.indexOf(TASK_OF_RUN.<PeriodicTask>read(entry.run));
    }

    @Override
    public String masked(String message) {
        return message.startsWith("Cannot invoke") ? null : message;
    }

    @Override
    public Object observe() {
        Map<String, Object> tasks = new TreeMap<>();
        TASKS.<Map<String, PeriodicTask>>read(manager).forEach((name, task) -> tasks.put(name, made.indexOf(task)));
        Map<String, Object> scheduled = new TreeMap<>();
        queue.forEach((name, entry) -> scheduled.put(name, List.of(entry.deadlineNs, idOf(entry))));
        return Map.of("active", manager.active(), "tasks", tasks, "scheduled", scheduled);
    }
}
