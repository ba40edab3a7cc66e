package org.apache.kafka.timeline;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;

/** What 3.9 and later have besides: a {@link TimelineObject}, and a registry that holds collections weakly. */
abstract class TimelineObjectCalls extends TimelineCalls {
    private final Field registered;
    private TimelineObject<String> object;
    /** Whether something was let go of since the last garbage collection. */
    private boolean dropped;

    TimelineObjectCalls() throws ReflectiveOperationException {
        registered = SnapshotRegistry.class.getDeclaredField("revertables");
        registered.setAccessible(true);
    }

    @Override
    void initFurther(JsonNode args) {
        object = new TimelineObject<>(registry, args.path("object").asText("init"));
        dropped = false;
    }

    @Override
    Object applyFurther(String op, JsonNode args) throws Exception {
        switch (op) {
            case "object.set":
                JsonNode value = args.get("value");
                object.set(value.isNull() ? null : value.asText());
                return null;
            case "object.get":
                return object.get(epoch(args));
            case "registry.registered":
                // what nobody holds is found by the garbage collector alone; the registry then strikes it off its list
                if (dropped) {
                    System.gc();
                    dropped = false;
                }
                registry.scrub();
                return ((List<?>) registered.get(registry)).size();
            default:
                return super.applyFurther(op, args);
        }
    }

    @Override
    public Object apply(String op, JsonNode args) throws Exception {
        dropped |= op.equals("collection.drop");
        return super.apply(op, args);
    }

    @Override
    void observeFurther(Map<String, Object> view) {
        view.put("object", object.get());
    }

    @Override
    void observeFurther(Map<String, Object> view, long epoch) {
        view.put("object", object.get(epoch));
    }
}
