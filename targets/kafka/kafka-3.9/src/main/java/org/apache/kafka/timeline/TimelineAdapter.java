package org.apache.kafka.timeline;

import java.util.Collection;

/** Subsystem `timeline` of 3.9: all but {@code idempotentCreateSnapshot}, which is later. */
public final class TimelineAdapter extends TimelineObjectCalls {
    public TimelineAdapter() throws ReflectiveOperationException {
    }

    @Override
    public Collection<String> operations() {
        return offered("object.set", "object.get", "registry.registered");
    }
}
