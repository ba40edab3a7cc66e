package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongFunction;
import kafkaspec.target.Adapter.UnknownOperation;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

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
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("latest", view.apply(NOW));
        out.put("at", past(registry, view));
        return out;
    }

    /** What there was at each snapshot. */
    static Map<String, Object> past(SnapshotRegistry registry, LongFunction<Object> view) {
        Map<String, Object> at = new LinkedHashMap<>();
        registry.epochsList().forEach(epoch -> at.put(Long.toString(epoch), view.apply(epoch)));
        return at;
    }

    /**
     * The entries of a map at an epoch, looked up key by key: what the map lists of an epoch may lack some (TML-D3).
     * `seen` are all the keys that it ever had in the history.
     */
    static <K, V> Map<K, V> lookedUp(TimelineHashMap<K, V> map, Collection<K> seen, long epoch) {
        Map<K, V> out = new LinkedHashMap<>();
        for (K key : seen) {
            V value = map.get(key, epoch);
            if (value != null) {
                out.put(key, value);
            }
        }
        return out;
    }
}
