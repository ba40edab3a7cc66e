package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.AbstractMap.SimpleImmutableEntry;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import kafkaspec.target.Adapter;
import kafkaspec.target.PrivateField;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.metadata.ClearElrRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * {@link ConfigurationControlManager} with a {@link FeatureControlManager} over a {@link SnapshotRegistry}, and a
 * {@link KafkaConfigSchema} of a few keys. The checks of values, of existence and of the policy are stand-ins, which
 * refuse what is marked and keep what they were asked. The adapter sorts what a hash table gives in any order: the
 * deletions of keys that a legacy request leaves out, and those of brokers when ELR is switched on.
 */
public final class ConfigurationsAdapter implements Adapter, ConfigurationValidator, AlterConfigPolicy {
    private static final String ELR = EligibleLeaderReplicasVersion.FEATURE_NAME;

    private final Set<ConfigResource> missing = new HashSet<>();
    private SnapshotRegistry registry;
    private FeatureControlManager features;
    private ConfigurationControlManager manager;
    private TimelineHashMap<ConfigResource, TimelineHashMap<String, String>> data;
    private List<Object> checked;
    private List<Object> policed;

    private static KafkaConfigSchema schema() {
        ConfigDef topic = new ConfigDef()
            .define("cleanup.policy", ConfigDef.Type.LIST, List.of("delete"), ConfigDef.Importance.LOW, "")
            .define("min.insync.replicas", ConfigDef.Type.INT, 1, ConfigDef.Importance.LOW, "")
            .define("unclean.leader.election.enable", ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.LOW, "")
            .define("retention.ms", ConfigDef.Type.LONG, 604_800_000L, ConfigDef.Importance.LOW, "");
        ConfigDef broker = new ConfigDef()
            .define("log.cleanup.policy", ConfigDef.Type.LIST, List.of("delete"), ConfigDef.Importance.LOW, "")
            .define("cordoned.log.dirs", ConfigDef.Type.LIST, List.of(), ConfigDef.Importance.LOW, "")
            .define("min.insync.replicas", ConfigDef.Type.INT, 1, ConfigDef.Importance.LOW, "");
        return new KafkaConfigSchema(Map.of(ConfigResource.Type.TOPIC, topic, ConfigResource.Type.BROKER, broker), Map.of(
            "cleanup.policy", List.of(new ConfigSynonym("log.cleanup.policy")),
            "min.insync.replicas", List.of(new ConfigSynonym("min.insync.replicas")),
            "unclean.leader.election.enable", List.of(new ConfigSynonym("unclean.leader.election.enable")),
            "retention.ms", List.of(new ConfigSynonym("log.retention.ms"),
                new ConfigSynonym("log.retention.hours", ConfigSynonym.HOURS_TO_MILLISECONDS))));
    }

    /** All resources, keys and brokers that were ever configured in this history. */
    private final Set<ConfigResource> seen = new HashSet<>();
    private final Set<String> seenKeys = new TreeSet<>();
    private final Set<Integer> seenBrokers = new TreeSet<>();

    @Override
    public void init(JsonNode args) throws Exception {
        seen.clear();
        seenKeys.clear();
        seenBrokers.clear();
        checked = null;
        policed = null;
        missing.clear();
        args.path("missing").forEach(r -> missing.add(resource(r)));
        Map<String, Object> statics = new LinkedHashMap<>();
        args.path("static").forEach(s -> statics.put(s.get(0).textValue(), s.get(1).textValue()));
        registry = new SnapshotRegistry(new LogContext());
        features = new FeatureControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(false), List.of(0)))
            .build();
        manager = new ConfigurationControlManager.Builder()
            .setSnapshotRegistry(registry)
            .setFeatureControl(features)
            .setKafkaConfigSchema(schema())
            .setNodeId(args.path("nodeId").asInt(0))
            .setStaticConfig(statics)
            .setValidator(this)
            .setExistenceChecker(r -> {
                if (missing.contains(r)) {
                    throw new UnknownTopicOrPartitionException(r.name() + " does not exist.");
                }
            })
            .setAlterConfigPolicy(Optional.of(this))
            .setSupportedConfigChecker((type, name) -> !name.equals("removed.config"))
            .build();
        data = PrivateField.of(ConfigurationControlManager.class, "configData").read(manager);
        know(args.path("metadataVersion").asInt(30));
    }

    private void know(int level) {
        features.replay(new FeatureLevelRecord().setName(MetadataVersion.FEATURE_NAME).setFeatureLevel((short) level));
    }

    private static ConfigResource resource(JsonNode r) {
        return new ConfigResource(ConfigResource.Type.valueOf(r.get(0).textValue()), r.get(1).textValue());
    }

    private static List<Object> shown(ConfigResource r) {
        return List.of(r.type().name(), r.name());
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "incrementalAlterConfigs":
                return incremental(a);
            case "legacyAlterConfigs":
                return legacy(a);
            case "updateFeatures":
                return updateFeatures(a);
            case "replay": {
                ConfigResource r = resource(a.get("resource"));
                replay(new ConfigRecord().setResourceType(r.type().id()).setResourceName(r.name())
                    .setName(a.get("key").textValue()).setValue(a.get("value").textValue()));
                return null;
            }
            case "deleteTopicConfigs":
                manager.deleteTopicConfigs(a.get("name").textValue());
                return null;
            case "getStaticallyConfiguredMinInsyncReplicas":
                return manager.getStaticallyConfiguredMinInsyncReplicas();
            case "getTopicConfig": {
                ConfigEntry entry = manager.getTopicConfig(a.get("topic").textValue(), a.get("key").textValue());
                return List.of(entry.value(), entry.source().name());
            }
            case "uncleanLeaderElectionEnabledForTopic":
                return manager.uncleanLeaderElectionEnabledForTopic(a.get("topic").textValue());
            case "describeConfigs": {
                List<String> keys = new ArrayList<>();
                a.get("keys").forEach(k -> keys.add(k.textValue()));
                ConfigResource r = resource(a.get("resource"));
                ResultOrError<Map<String, String>> found =
                    manager.describeConfigs(a.get("epoch").longValue(), Map.of(r, keys)).get(r);
                return new TreeMap<>(found.result());
            }
            case "reset":
                registry.reset();
                know(a.get("version").intValue());
                return null;
            default:
                return RegistryCalls.apply(registry, op, a);
        }
    }

    private void replay(ConfigRecord record) {
        ConfigResource r = new ConfigResource(ConfigResource.Type.forId(record.resourceType()), record.resourceName());
        seen.add(r);
        seenKeys.add(record.name());
        manager.replay(record);
        seenBrokers.addAll(manager.brokersWithConfigs());
    }

    private Object incremental(JsonNode a) {
        Map<ConfigResource, Map<String, Map.Entry<OpType, String>>> changed = new LinkedHashMap<>();
        for (JsonNode r : a.get("changed")) {
            Map<String, Map.Entry<OpType, String>> changes = new LinkedHashMap<>();
            for (JsonNode c : r.get(1)) {
                changes.put(c.get(0).textValue(),
                    new SimpleImmutableEntry<>(OpType.valueOf(c.get(1).textValue()), c.get(2).textValue()));
            }
            changed.put(resource(r.get(0)), changes);
        }
        ControllerResult<Map<ConfigResource, ApiError>> result = manager.incrementalAlterConfigs(changed,
            a.get("newlyCreated").booleanValue(), a.get("forwarded").booleanValue());
        return outcome(answers(changed.keySet(), result.response()), result.records(), result, a);
    }

    private Object legacy(JsonNode a) {
        Map<ConfigResource, Map<String, String>> wanted = new LinkedHashMap<>();
        for (JsonNode r : a.get("new")) {
            Map<String, String> configs = new LinkedHashMap<>();
            r.get(1).forEach(c -> configs.put(c.get(0).textValue(), c.get(1).textValue()));
            wanted.put(resource(r.get(0)), configs);
        }
        ControllerResult<Map<ConfigResource, ApiError>> result = manager.legacyAlterConfigs(wanted,
            a.get("newlyCreated").booleanValue(), a.get("forwarded").booleanValue());
        List<ApiMessageAndVersion> sorted = new ArrayList<>();
        List<ApiMessageAndVersion> run = new ArrayList<>();
        ConfigResource of = null;
        for (ApiMessageAndVersion record : result.records()) {
            ConfigResource own = null;
            if (record.message() instanceof ConfigRecord c) {
                ConfigResource r = new ConfigResource(ConfigResource.Type.forId(c.resourceType()), c.resourceName());
                own = wanted.get(r).containsKey(c.name()) ? null : r;
            }
            if (own == null || !own.equals(of)) {
                flush(run, sorted);
            }
            of = own;
            (own == null ? sorted : run).add(record);
        }
        flush(run, sorted);
        return outcome(answers(wanted.keySet(), result.response()), sorted, result, a);
    }

    private static void flush(List<ApiMessageAndVersion> run, List<ApiMessageAndVersion> to) {
        run.sort(Comparator.comparing(r -> ((ConfigRecord) r.message()).name()));
        to.addAll(run);
        run.clear();
    }

    private Object updateFeatures(JsonNode a) {
        short level = a.get("level").shortValue();
        FeatureUpdate.UpgradeType type =
            level > 0 ? FeatureUpdate.UpgradeType.UPGRADE : FeatureUpdate.UpgradeType.SAFE_DOWNGRADE;
        ControllerResult<ApiError> result = manager.updateFeatures(Map.of(ELR, level), Map.of(ELR, type),
            a.get("validateOnly").booleanValue(), 0);
        List<ApiMessageAndVersion> records = new ArrayList<>(result.records());
        int from = 0;
        while (from < records.size() && records.get(from).message() instanceof ConfigRecord c && c.value() != null) {
            from++;
        }
        int to = from;
        while (to < records.size() && records.get(to).message() instanceof ConfigRecord c && c.value() == null) {
            to++;
        }
        records.subList(from, to)
            .sort(Comparator.comparing(r -> Integer.valueOf(((ConfigRecord) r.message()).resourceName())));
        return outcome(List.of(answer(result.response())), records, result, a);
    }

    private static List<Object> answers(Set<ConfigResource> asked, Map<ConfigResource, ApiError> given) {
        if (!asked.equals(given.keySet())) {
            throw new AdapterFailure("asked about " + asked + ", answered about " + given.keySet());
        }
        List<Object> out = new ArrayList<>();
        asked.forEach(r -> out.add(answer(given.get(r))));
        return out;
    }

    private static List<Object> answer(ApiError error) {
        List<Object> out = new ArrayList<>();
        out.add(error.error().name());
        out.add(error.message());
        return out;
    }

    private Object outcome(List<Object> answers, List<ApiMessageAndVersion> records, ControllerResult<?> result, JsonNode a) {
        List<Object> shown = new ArrayList<>();
        for (ApiMessageAndVersion record : records) {
            if (record.version() != 0) {
                throw new AdapterFailure("a record of version " + record.version());
            }
            List<Object> one = new ArrayList<>();
            if (record.message() instanceof ConfigRecord c) {
                one.add("CONFIG_RECORD");
                one.add(List.of(ConfigResource.Type.forId(c.resourceType()).name(), c.resourceName()));
                one.add(c.name());
                one.add(c.value());
            } else if (record.message() instanceof ClearElrRecord c) {
                one.add("CLEAR_ELR_RECORD");
                one.add(null);
                one.add(c.topicName());
                one.add(null);
            } else if (record.message() instanceof FeatureLevelRecord f) {
                one.add("FEATURE_LEVEL_RECORD");
                one.add(null);
                one.add(f.name());
                one.add(Short.toString(f.featureLevel()));
            } else {
                throw new AdapterFailure("a record " + record.message());
            }
            shown.add(one);
        }
        if (a.get("replayed").booleanValue()) {
            for (ApiMessageAndVersion record : result.records()) {
                if (record.message() instanceof ConfigRecord c) {
                    replay(c);
                } else if (record.message() instanceof FeatureLevelRecord f) {
                    features.replay(f);
                }
            }
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("answers", answers);
        out.put("records", shown);
        out.put("atomic", result.isAtomic());
        return out;
    }

    @Override
    public Object observe() {
        Map<String, Object> out = RegistryCalls.shown(registry, this::view);
        out.put("checked", checked);
        out.put("policed", policed);
        out.put("elr", features.isElrFeatureEnabled());
        return out;
    }

    /** What there is at an epoch, looked up: a listing of an epoch may lack some of it (TML-D3). */
    private Object view(long epoch) {
        Map<String, Object> found = new TreeMap<>();
        RegistryCalls.lookedUp(data, seen, epoch).forEach((r, configs) -> found.put(r.type().name() + "\0" + r.name(),
            List.of(shown(r), RegistryCalls.lookedUp(configs, seenKeys, epoch))));
        Set<Integer> brokers = new TreeSet<>();
        for (Integer id : seenBrokers) {
            if (manager.brokersWithConfigs().contains(id, epoch)) {
                brokers.add(id);
            }
        }
        return List.of(new ArrayList<>(found.values()), new ArrayList<>(brokers));
    }

    // ---- the stand-ins
    @Override
    public void validate(ConfigResource resource) {
    }

    @Override
    public void validate(ConfigResource resource, Map<String, String> configs, Map<String, String> existing) {
        checked = List.of(shown(resource), new TreeMap<>(configs), new TreeMap<>(existing));
        if (configs.containsValue("invalid")) {
            throw new ConfigException("Invalid value.");
        }
    }

    @Override
    public void validate(RequestMetadata request) {
        policed = List.of(shown(request.resource()), new TreeMap<>(request.configs()));
        if (request.configs().containsValue("forbidden")) {
            throw new PolicyViolationException("Forbidden.");
        }
    }

    @Override
    public void configure(Map<String, ?> configs) {
    }

    @Override
    public void close() {
    }
}
