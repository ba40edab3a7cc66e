package org.apache.kafka.timeline;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafkaspec.target.Adapter;
import org.apache.kafka.common.utils.LogContext;

/**
 * Subsystem `timeline`: one {@link SnapshotRegistry} with a map, a set, a long, an integer and what later releases add.
 * What all release lines have is here; what a line has besides is in its own class, by {@link #applyFurther}.
 *
 * <p>Every answer comes from Kafka's objects. The adapter holds them (the registry may hold them weakly), sorts what an
 * iteration gave, and keeps what an open iterator has given so far. The present is observed by the methods without an
 * epoch, the past by those with one.
 */
abstract class TimelineCalls implements Adapter {
    private static final int DEFAULT_SIZE = 4;
    private static final List<String> OPERATIONS = List.of(
        "map.put", "map.remove", "map.clear", "map.get", "map.size", "map.containsValue", "map.values.contains",
        "map.equals", "map.keySet.iteratorRemove", "map.keySetAtRemove",
        "set.add", "set.remove", "set.addAll", "set.removeAll", "set.clear", "set.contains", "set.size",
        "long.set", "long.get", "int.increment", "int.decrement", "int.get",
        "getOrCreateSnapshot", "revertToSnapshot", "deleteSnapshot", "deleteSnapshotsUpTo", "reset",
        "iterator.open", "iterator.next", "iterator.finish", "iterator.acrossChanges",
        "collection.create", "collection.add", "collection.elements", "collection.drop", "capacity");

    protected SnapshotRegistry registry;
    private TimelineHashMap<Integer, Integer> map;
    private TimelineHashSet<Integer> set;
    private TimelineLong number;
    private TimelineInteger integer;
    /** The further sets that somebody holds, by name. */
    private final Map<String, TimelineHashSet<Integer>> further = new HashMap<>();
    /** The open iterator, and what came out of it. */
    private Iterator<?> iterator;
    private List<Object> given;

    @Override
    public void init(JsonNode args) {
        registry = new SnapshotRegistry(new LogContext());
        map = new TimelineHashMap<>(registry, args.path("mapExpectedSize").asInt(DEFAULT_SIZE));
        set = new TimelineHashSet<>(registry, args.path("setExpectedSize").asInt(DEFAULT_SIZE));
        number = new TimelineLong(registry);
        integer = new TimelineInteger(registry);
        further.clear();
        iterator = null;
        if (args.path("long").asLong() != 0 || args.path("int").asInt() != 0) {
            throw new AdapterFailure("a timeline long and a timeline integer begin at 0: " + args);
        }
        initFurther(args);
    }

    /** What this release line registers besides. */
    abstract void initFurther(JsonNode args);

    /** The operations that not every release line has. */
    Object applyFurther(String op, JsonNode args) throws Exception {
        throw new UnknownOperation(op);
    }

    /** Adds to a view of the present what this release line has besides. */
    void observeFurther(Map<String, Object> view) {
    }

    /** Adds to the view of an epoch what this release line has besides. */
    void observeFurther(Map<String, Object> view, long epoch) {
    }

    /** What every release line offers, and these. */
    static Collection<String> offered(String... further) {
        List<String> all = new ArrayList<>(OPERATIONS);
        Collections.addAll(all, further);
        return all;
    }

    @Override
    public Object apply(String op, JsonNode args) throws Exception {
        switch (op) {
            case "map.put":
                return map.put(integer(args, "key"), integer(args, "value"));
            case "map.remove":
                return map.remove(integer(args, "key"));
            case "map.clear":
                map.clear();
                return null;
            case "map.get":
                return map.get(integer(args, "key"), epoch(args));
            case "map.size":
                return map.size(epoch(args));
            case "map.containsValue":
                return map.containsValue(integer(args, "value"));
            case "map.values.contains":
                return map.values(epoch(args)).contains(integer(args, "value"));
            case "map.equals":
                return map.equals(ordinaryMap(args.get("other")));
            case "map.keySet.iteratorRemove":
                return removedByIterator(map.keySet().iterator(), integer(args, "key"));
            case "map.keySetAtRemove":
                return map.keySet(epoch(args)).remove(integer(args, "key"));
            case "set.add":
                return set.add(integer(args, "value"));
            case "set.remove":
                return set.remove(integer(args, "value"));
            case "set.addAll":
                return set.addAll(integers(args, "values"));
            case "set.removeAll":
                return set.removeAll(integers(args, "values"));
            case "set.clear":
                set.clear();
                return null;
            case "set.contains":
                return set.contains(integer(args, "value"), epoch(args));
            case "set.size":
                return set.size(epoch(args));
            case "long.set":
                number.set(args.get("value").asLong());
                return null;
            case "long.get":
                return number.get(epoch(args));
            case "int.increment":
                integer.increment();
                return null;
            case "int.decrement":
                integer.decrement();
                return null;
            case "int.get":
                return integer.get(epoch(args));
            case "getOrCreateSnapshot":
                return registry.getOrCreateSnapshot(epoch(args)).epoch();
            case "revertToSnapshot":
                registry.revertToSnapshot(epoch(args));
                return null;
            case "deleteSnapshot":
                registry.deleteSnapshot(epoch(args));
                return null;
            case "deleteSnapshotsUpTo":
                registry.deleteSnapshotsUpTo(epoch(args));
                return null;
            case "reset":
                registry.reset();
                return null;
            case "iterator.open":
                Iterator<?> opened = args.get("collection").asText().equals("map")
                    ? map.entrySet(epoch(args)).iterator()
                    : set.iterator(epoch(args));
                iterator = opened;
                given = new ArrayList<>();
                return null;
            case "iterator.next":
                return take(args.get("count").asInt());
            case "iterator.finish":
                take(Integer.MAX_VALUE);
                iterator = null;
                return sorted(given);
            case "iterator.acrossChanges":
                return acrossChanges(epoch(args), integers(args, "values"));
            case "collection.create":
                further.put(args.get("name").asText(), new TimelineHashSet<>(registry, DEFAULT_SIZE));
                return null;
            case "collection.add":
                return held(args).add(integer(args, "value"));
            case "collection.elements":
                return elements(held(args).iterator(epoch(args)));
            case "collection.drop":
                held(args);
                further.remove(args.get("name").asText());
                return null;
            case "capacity":
                return BaseHashTable.expectedSizeToCapacity(args.get("expectedSize").asInt());
            default:
                return applyFurther(op, args);
        }
    }

    @Override
    public Object observe() {
        List<Long> epochs = registry.epochsList();
        Map<String, Object> at = new LinkedHashMap<>();
        for (long epoch : epochs) {
            Map<String, Object> view = view(map.entrySet(epoch).iterator(), map.size(epoch), set.iterator(epoch),
                set.size(epoch), number.get(epoch), integer.get(epoch));
            observeFurther(view, epoch);
            at.put(Long.toString(epoch), view);
        }
        Map<String, Object> latest = view(map.entrySet().iterator(), map.size(), set.iterator(), set.size(),
            number.get(), integer.get());
        observeFurther(latest);
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("epochs", epochs);
        state.put("latestEpoch", registry.latestEpoch());
        state.put("latest", latest);
        state.put("at", at);
        return state;
    }

    private static Map<String, Object> view(Iterator<Map.Entry<Integer, Integer>> entries, int mapSize,
            Iterator<Integer> elements, int setSize, long number, int integer) {
        Map<String, Object> shown = new HashMap<>();
        while (entries.hasNext()) {
            Map.Entry<Integer, Integer> entry = entries.next();
            shown.put(entry.getKey().toString(), entry.getValue());
        }
        Map<String, Object> view = new LinkedHashMap<>();
        view.put("map", shown);
        view.put("mapSize", mapSize);
        view.put("set", elements(elements));
        view.put("setSize", setSize);
        view.put("long", number);
        view.put("int", integer);
        return view;
    }

    private static Object removedByIterator(Iterator<Integer> keys, Integer key) {
        while (keys.hasNext()) {
            if (keys.next().equals(key)) {
                keys.remove();
                return true;
            }
        }
        return false;
    }

    /** Up to {@code count} more elements of the open iterator: how many came. */
    private int take(int count) {
        if (iterator == null) {
            throw gone("iterator");
        }
        int came = 0;
        while (came < count && iterator.hasNext()) {
            Object next = iterator.next();
            given.add(next instanceof Map.Entry<?, ?> entry ? List.of(entry.getKey(), entry.getValue()) : next);
            came++;
        }
        return came;
    }

    private Object acrossChanges(long epoch, List<Integer> values) {
        Iterator<Integer> opened = set.iterator(epoch);
        iterator = opened;
        given = new ArrayList<>();
        take(1);
        set.addAll(values);
        set.retainAll(values);
        take(Integer.MAX_VALUE);
        iterator = null;
        return sorted(given);
    }

    private TimelineHashSet<Integer> held(JsonNode args) {
        TimelineHashSet<Integer> found = further.get(args.get("name").asText());
        if (found == null) {
            throw gone("collection " + args.get("name"));
        }
        return found;
    }

    /** Calls come in advance: after Kafka answered otherwise than the judge expects, some have nothing to act on. */
    private static RuntimeException gone(String what) {
        return new IllegalStateException("not Kafka's answer: there is no such " + what);
    }

    private static List<Integer> elements(Iterator<Integer> iterator) {
        List<Integer> out = new ArrayList<>();
        iterator.forEachRemaining(out::add);
        Collections.sort(out);
        return out;
    }

    /** Integers by size; pairs of integers by the first, then the second. */
    private static Object sorted(List<Object> elements) {
        Object[] out = elements.toArray();
        Arrays.sort(out, (a, b) -> {
            if (a instanceof Integer x && b instanceof Integer y) {
                return x.compareTo(y);
            }
            List<?> x = (List<?>) a;
            List<?> y = (List<?>) b;
            int byKey = ((Integer) x.get(0)).compareTo((Integer) y.get(0));
            return byKey != 0 ? byKey : ((Integer) x.get(1)).compareTo((Integer) y.get(1));
        });
        return out;
    }

    static long epoch(JsonNode args) {
        return args.path("epoch").asLong(SnapshotRegistry.LATEST_EPOCH);
    }

    private static Integer integer(JsonNode args, String name) {
        JsonNode value = args.get(name);
        return value.isNull() ? null : Integer.valueOf(value.asInt());
    }

    private static List<Integer> integers(JsonNode args, String name) {
        List<Integer> out = new ArrayList<>();
        args.get(name).forEach(value -> out.add(value.asInt()));
        return out;
    }

    /** An ordinary map, from JSON: its keys are integers in decimal. */
    private static Map<Integer, Integer> ordinaryMap(JsonNode object) {
        Map<Integer, Integer> out = new HashMap<>();
        object.fields().forEachRemaining(e -> out.put(Integer.valueOf(e.getKey()), e.getValue().asInt()));
        return out;
    }
}
