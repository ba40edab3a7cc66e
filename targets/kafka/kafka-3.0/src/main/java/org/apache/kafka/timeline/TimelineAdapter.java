package org.apache.kafka.timeline;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.List;

/** Subsystem `timeline` of 3.0: no timeline object yet, and a registry that holds its collections strongly. */
public final class TimelineAdapter extends TimelineCalls {
    private final Field registered;

    public TimelineAdapter() throws ReflectiveOperationException {
        registered = SnapshotRegistry.class.getDeclaredField("revertables");
        registered.setAccessible(true);
    }

    @Override
    public Collection<String> operations() {
        return offered("registry.registered");
    }

    /** 3.0 says "snapshot" where later lines say "in-memory snapshot", and does not always name the epochs. */
    @Override
    public String masked(String message) {
        return message.contains("snapshot") && !message.equals("can't modify snapshot") ? null : message;
    }

    @Override
    void initFurther(JsonNode args) {
        // stands for the timeline object that later lines register, so that as many are registered
        registry.register(new Revertable() {
            @Override
            public void executeRevert(long targetEpoch, Delta delta) {
            }

            @Override
            public void reset() {
            }
        });
    }

    @Override
    Object applyFurther(String op, JsonNode args) throws Exception {
        if (op.equals("registry.registered")) {
            return ((List<?>) registered.get(registry)).size();
        }
        return super.applyFurther(op, args);
    }
}
