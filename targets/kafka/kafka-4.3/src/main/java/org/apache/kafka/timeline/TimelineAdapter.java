package org.apache.kafka.timeline;

import com.fasterxml.jackson.databind.JsonNode;

/** Subsystem `timeline` of 4.3: the whole of it. */
public final class TimelineAdapter extends TimelineObjectCalls {
    public TimelineAdapter() throws ReflectiveOperationException {
    }

    @Override
    Object applyFurther(String op, JsonNode args) throws Exception {
        if (op.equals("idempotentCreateSnapshot")) {
            registry.idempotentCreateSnapshot(epoch(args));
            return null;
        }
        return super.applyFurther(op, args);
    }
}
