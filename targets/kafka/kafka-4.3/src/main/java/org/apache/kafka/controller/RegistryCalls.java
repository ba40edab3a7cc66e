package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongFunction;
import kafkaspec.target.Adapter.UnknownOperation;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What the adapters of managers over a {@link SnapshotRegistry} have in common. */
final class RegistryCalls {
    static final long NOW = SnapshotRegistry.LATEST_EPOCH;

    private RegistryCalls() {
    }

    /** A call of the registry itself. */
    static Object apply(SnapshotRegistry registry, String op, JsonNode a) throws UnknownOperation {
        switch (op) {
            case "getOrCreateSnapshot":
                registry.idempotentCreateSnapshot(a.get("epoch").longValue());
                return null;
            case "revertToSnapshot":
                registry.revertToSnapshot(a.get("epoch").longValue());
                return null;
            case "deleteSnapshotsUpTo":
                registry.deleteSnapshotsUpTo(a.get("epoch").longValue());
                return null;
            default:
                throw new UnknownOperation(op);
        }
    }

    /** What there is now, and at each snapshot. */
    static Map<String, Object> shown(SnapshotRegistry registry, LongFunction<Object> view) {
        Map<String, Object> at = new LinkedHashMap<>();
        registry.epochsList().forEach(epoch -> at.put(Long.toString(epoch), view.apply(epoch)));
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("latest", view.apply(NOW));
        out.put("at", at);
        return out;
    }
}
