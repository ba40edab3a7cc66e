package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import kafkaspec.target.Adapter;
import kafkaspec.target.PrivateField;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.errors.InvalidUpdateVersionException;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.VersionRange;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;
import org.apache.kafka.timeline.TimelineObject;

/**
 * {@link FeatureControlManager} over a {@link SnapshotRegistry}. The other nodes and the raft client are stand-ins: they
 * say what they are told to. What the manager keeps is read from its own collections, of which it shows a part only.
 */
public final class FeaturesAdapter implements Adapter, ClusterFeatureSupportDescriber, KRaftVersionAccessor {
    private final Map<Integer, Map<String, VersionRange>> brokers = new TreeMap<>();
    private final Map<Integer, Map<String, VersionRange>> controllers = new TreeMap<>();
    private SnapshotRegistry registry;
    private FeatureControlManager manager;
    private TimelineHashMap<String, Short> finalized;
    private TimelineObject<Optional<MetadataVersion>> version;
    private KRaftVersion kraft;
    /** All features that were ever finalized in this history. */
    private final Set<String> seen = new TreeSet<>();
    private String refusal;
    private List<Object> told;

    @Override
    public void init(JsonNode args) throws Exception {
        brokers.clear();
        controllers.clear();
        seen.clear();
        refusal = null;
        told = null;
        kraft = KRaftVersion.fromFeatureLevel((short) args.path("kraftVersion").asInt(0));
        Map<String, VersionRange> supported = args.has("supported") ? ranges(args.get("supported"))
            : QuorumFeatures.defaultSupportedFeatureMap(false);
        List<Integer> quorum = new ArrayList<>();
        if (args.has("quorum")) {
            args.get("quorum").forEach(id -> quorum.add(id.intValue()));
        } else {
            quorum.add(0);
        }
        registry = new SnapshotRegistry(new LogContext());
        manager = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(args.path("nodeId").asInt(0), supported, quorum))
            .setClusterFeatureSupportDescriber(this)
            .setKRaftVersionAccessor(this)
            .build();
        finalized = PrivateField.of(FeatureControlManager.class, "finalizedVersions").read(manager);
        version = PrivateField.of(FeatureControlManager.class, "metadataVersion").read(manager);
        JsonNode first = args.get("metadataVersion");
        if (first == null || !first.isNull()) {
            know(first == null ? MetadataVersion.LATEST_PRODUCTION.featureLevel() : first.shortValue());
        }
    }

    /** The record of that metadata.version; one that is not supported is a fault, and changes nothing. */
    private void know(short level) {
        try {
            replay(record(MetadataVersion.FEATURE_NAME, level));
        } catch (RuntimeException e) {
            if (manager.metadataVersion().isPresent()) {
                throw new AdapterFailure("a record that was refused has changed something", e);
            }
        }
    }

    private static FeatureLevelRecord record(String name, short level) {
        return new FeatureLevelRecord().setName(name).setFeatureLevel(level);
    }

    private void replay(FeatureLevelRecord record) {
        seen.add(record.name());
        manager.replay(record);
    }

    private static Map<String, VersionRange> ranges(JsonNode supported) {
        Map<String, VersionRange> out = new LinkedHashMap<>();
        for (JsonNode s : supported) {
            out.put(s.get(0).textValue(), VersionRange.of(s.get(1).shortValue(), s.get(2).shortValue()));
        }
        return out;
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "updateFeatures":
                return update(a);
            case "replay":
                replay(record(a.get("name").textValue(), a.get("level").shortValue()));
                return null;
            case "finalizedFeatures": {
                long epoch = a.get("epoch").longValue();
                Map<String, Short> features = new TreeMap<>();
                var found = manager.finalizedFeatures(epoch);
                found.featureNames().forEach(name -> features.put(name, found.get(name).get()));
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("features", features);
                out.put("epoch", found.epoch());
                return out;
            }
            case "metadataVersionOrThrow":
                return manager.metadataVersionOrThrow().featureLevel();
            case "isElrFeatureEnabled":
                return manager.isElrFeatureEnabled();
            case "isControllerId":
                return manager.isControllerId(a.get("id").intValue());
            case "defaultSupportedFeatureMap": {
                List<Object> out = new ArrayList<>();
                new TreeMap<>(QuorumFeatures.defaultSupportedFeatureMap(a.get("unstable").booleanValue()))
                    .forEach((name, range) -> out.add(List.of(name, range.min(), range.max())));
                return out;
            }
            case "reset":
                registry.reset();
                if (!a.get("version").isNull()) {
                    know(a.get("version").shortValue());
                }
                return null;
            case "brokerRegistered":
                return register(brokers, a);
            case "controllerRegistered":
                return register(controllers, a);
            case "raftRefuses":
                refusal = a.get("message").textValue();
                return null;
            default:
                return RegistryCalls.apply(registry, op, a);
        }
    }

    private static Object register(Map<Integer, Map<String, VersionRange>> nodes, JsonNode a) {
        if (a.get("supported").isNull()) {
            nodes.remove(a.get("id").intValue());
        } else {
            nodes.put(a.get("id").intValue(), ranges(a.get("supported")));
        }
        return null;
    }

    private Object update(JsonNode a) {
        Map<String, Short> updates = new LinkedHashMap<>();
        Map<String, FeatureUpdate.UpgradeType> types = new LinkedHashMap<>();
        for (JsonNode u : a.get("updates")) {
            updates.put(u.get(0).textValue(), u.get(1).shortValue());
            if (!u.get(2).isNull()) {
                types.put(u.get(0).textValue(), FeatureUpdate.UpgradeType.valueOf(u.get(2).textValue()));
            }
        }
        ControllerResult<ApiError> result = manager.updateFeatures(updates, types, a.get("validateOnly").booleanValue(),
            a.get("claimedEpoch").intValue());
        List<Object> records = new ArrayList<>();
        for (ApiMessageAndVersion record : result.records()) {
            if (record.version() != 0) {
                throw new AdapterFailure("a record of version " + record.version());
            }
            List<Object> shown = new ArrayList<>();
            if (record.message() instanceof FeatureLevelRecord level) {
                shown.addAll(List.of("FEATURE_LEVEL_RECORD", level.name(), level.featureLevel()));
            } else {
                shown.add(org.apache.kafka.common.metadata.MetadataRecordType.fromId(record.message().apiKey()).name());
                shown.add(null);
                shown.add(null);
            }
            records.add(shown);
        }
        if (a.get("replayed").booleanValue()) {
            for (ApiMessageAndVersion record : result.records()) {
                if (record.message() instanceof FeatureLevelRecord level) {
                    replay(level);
                }
            }
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("error", result.response().error().name());
        out.put("message", result.response().message());
        out.put("records", records);
        out.put("atomic", result.isAtomic());
        return out;
    }

    @Override
    public Object observe() {
        Map<String, Object> out = RegistryCalls.shown(registry, this::levels);
        out.put("kraftVersion", kraft.featureLevel());
        out.put("told", told);
        out.put("elrEnabled", manager.isElrFeatureEnabled());
        return out;
    }

    /** What there is at an epoch, looked up: a listing of an epoch may lack some of it (TML-D3). */
    private Object levels(long epoch) {
        Map<String, Short> others = RegistryCalls.lookedUp(finalized, seen, epoch);
        if (others.size() != finalized.size(epoch)) {
            others.put("size", (short) finalized.size(epoch));
        }
        List<Object> out = new ArrayList<>();
        out.add(version.get(epoch).map(MetadataVersion::featureLevel).orElse(null));
        out.add(others);
        return out;
    }

    // ---- the stand-ins
    @Override
    public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> brokerSupported() {
        return entries(brokers);
    }

    @Override
    public Iterator<Map.Entry<Integer, Map<String, VersionRange>>> controllerSupported() {
        return entries(controllers);
    }

    private static Iterator<Map.Entry<Integer, Map<String, VersionRange>>> entries(
            Map<Integer, Map<String, VersionRange>> nodes) {
        List<Map.Entry<Integer, Map<String, VersionRange>>> out = new ArrayList<>();
        nodes.forEach((id, ranges) -> out.add(new SimpleImmutableEntry<>(id, ranges)));
        return out.iterator();
    }

    @Override
    public KRaftVersion kraftVersion() {
        return kraft;
    }

    @Override
    public void upgradeKRaftVersion(int epoch, KRaftVersion to, boolean validateOnly) {
        told = List.of(epoch, to.featureLevel(), validateOnly);
        if (refusal != null) {
            throw new InvalidUpdateVersionException(refusal);
        }
        if (!validateOnly) {
            kraft = to;
        }
    }
}
