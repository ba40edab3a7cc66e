package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafkaspec.target.Adapter;
import kafkaspec.target.PrivateField;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.metadata.AbortTransactionRecord;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.ConfigRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.NoOpRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.Writable;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.controller.errors.PeriodicControlTaskException;
import org.apache.kafka.deferred.DeferredEvent;
import org.apache.kafka.deferred.DeferredEventQueue;
import org.apache.kafka.metadata.KafkaConfigSchema;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.queue.KafkaEventQueue;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.raft.errors.NotLeaderException;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.EligibleLeaderReplicasVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.apache.kafka.server.mutable.BoundedListTooLongException;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;
import org.apache.kafka.timeline.TimelineObject;

/**
 * Subsystem `quorum`: one QuorumController over a log that does as the judge says. Records are real metadata records: a
 * name that is set is a configuration of all brokers. What is shown is read on the controller's own thread; private
 * fields are read by reflection: the offsets, the registry, the purgatory, the collections. A fatal fault ends a
 * history: the handler only notes it, where Kafka's would end the process.
 */
public final class QuorumAdapter implements Adapter {
    private static final ConfigResource ALL_BROKERS = new ConfigResource(ConfigResource.Type.BROKER, "");
    private static final ConfigDef DEFINITIONS = new ConfigDef()
        .define(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG, ConfigDef.Type.INT, 1, ConfigDef.Importance.LOW, "");
    private static final KafkaConfigSchema SCHEMA = new KafkaConfigSchema(
        Map.of(ConfigResource.Type.BROKER, DEFINITIONS, ConfigResource.Type.TOPIC, DEFINITIONS),
        Map.of(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG,
            List.of(new ConfigSynonym(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG))));
    private static final String VERSION = MetadataVersion.FEATURE_NAME;
    private static final PrivateField QUEUE = PrivateField.of(QuorumController.class, "queue");
    private static final PrivateField HANDLER = PrivateField.of(KafkaEventQueue.class, "eventHandler");
    private static final PrivateField TAGS = PrivateField.of(HANDLER.type(), "tagToEventContext");
    private static final PrivateField DEADLINE =
        PrivateField.of(PrivateField.of(HANDLER.type(), "head").type(), "deadlineNs");
    private static final long START_NS = 1_000_000_000L;
    private static final String ELR = EligibleLeaderReplicasVersion.FEATURE_NAME;

    private QuorumController controller;
    private ToldRaft raft;
    private MockTime time;
    private volatile int faults;
    private volatile boolean halted;
    private final List<Object> answers = Collections.synchronizedList(new ArrayList<>());
    private final Map<CompletableFuture<?>, Integer> calls = new IdentityHashMap<>();
    private OffsetControlManager offsets;
    private SnapshotRegistry registry;
    private TreeMap<Long, List<DeferredEvent>> purgatory;
    private TimelineHashMap<ConfigResource, TimelineHashMap<String, String>> configs;
    private TimelineHashMap<Integer, Long> brokers;
    private TimelineObject<Optional<MetadataVersion>> version;
    private TimelineHashMap<String, Short> features;
    /** All keys and brokers that records of this history were of. */
    private final Set<String> seenKeys = new TreeSet<>();
    private final Set<Integer> seenBrokers = new TreeSet<>();

    @Override
    public void init(JsonNode args) throws Exception {
        close();
        raft = new ToldRaft();
        time = new MockTime(0, 1_000_000, START_NS);
        faults = 0;
        halted = false;
        calls.clear();
        seenKeys.clear();
        seenKeys.add(TopicConfig.MIN_IN_SYNC_REPLICAS_CONFIG); // the controller's own, with the bootstrap
        seenBrokers.clear();
        MetadataVersion level =
            MetadataVersion.fromFeatureLevel((short) args.path("bootstrapLevel").asInt(30));
        JsonNode idle = args.path("maxIdleIntervalMs");
        controller = new QuorumController.Builder(0, "abcdefghijklmnopqrstuv")
            .setMaxIdleIntervalNs(idle.isNumber()
                ? OptionalLong.of(TimeUnit.MILLISECONDS.toNanos(idle.asLong())) : OptionalLong.empty())
            .setRaftClient(raft)
            .setTime(time)
            .setConfigSchema(SCHEMA)
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(true), List.of(0)))
            .setBootstrapMetadata(BootstrapMetadata.fromVersions(level,
                args.path("elr").asBoolean(false) ? Map.of(ELR, (short) 1) : Map.of(), "the judge"))
            .setMaxRecordsPerBatch(args.path("maxRecordsPerBatch").asInt(1000))
            .setNonFatalFaultHandler((message, cause) -> {
                faults++;
                return new FaultHandlerException(message, cause);
            })
            .setFatalFaultHandler((message, cause) -> {
                halted = true;
                return new FaultHandlerException(message, cause);
            })
            .build();
        offsets = PrivateField.of(QuorumController.class, "offsetControl").read(controller);
        registry = PrivateField.of(QuorumController.class, "snapshotRegistry").read(controller);
        Object deferred = PrivateField.of(QuorumController.class, "deferredEventQueue").read(controller);
        purgatory = PrivateField.of(DeferredEventQueue.class, "pending").read(deferred);
        configs = PrivateField.of(ConfigurationControlManager.class, "configData").read(controller.configurationControl());
        brokers = PrivateField.of(ClusterControlManager.class, "registerBrokerRecordOffsets").read(controller.clusterControl());
        Object manager = PrivateField.of(QuorumController.class, "featureControl").read(controller);
        version = PrivateField.of(FeatureControlManager.class, "metadataVersion").read(manager);
        features = PrivateField.of(FeatureControlManager.class, "finalizedVersions").read(manager);
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        answers.clear();
        switch (op) {
            case "write":
                raft.refusedAt = a.path("refusedAt").asInt(-1);
                write(a, OptionalLong.empty());
                return told();
            case "late":
                write(a, OptionalLong.of(time.nanoseconds() - 1));
                return told();
            case "read":
                return await(() -> read(a.get("key").asText()));
            case "commit": {
                List<ToldRaft.Sent> batches = new ArrayList<>();
                for (int n = a.get("count").asInt(); n > 0; n--) {
                    batches.add(raft.sent.removeFirst());
                }
                raft.handOut(batches);
                return told();
            }
            case "replicate": {
                raft.cutOff();
                List<ToldRaft.Sent> batches = new ArrayList<>();
                for (JsonNode records : a.get("batches")) {
                    ToldRaft.Sent batch = new ToldRaft.Sent(raft.end, a.get("epoch").asInt(), records(records));
                    raft.end = batch.last() + 1;
                    batches.add(batch);
                }
                if (!batches.isEmpty()) {
                    raft.handOut(batches);
                }
                told();
                return null;
            }
            case "control":
                if (await(() -> controller.curClaimEpoch() != -1)) {
                    raft.sent.addLast(raft.control(controller.curClaimEpoch()));
                } else {
                    raft.handOut(List.of(raft.control(0)));
                }
                told();
                return null;
            case "lead":
                return lead(a);
            case "advance":
                raft.refusedAt = a.path("refused").asBoolean(false) ? 0 : -1;
                time.sleep(a.get("ms").asLong());
                return told();
            case "lose":
                change(a.get("epoch").asInt(), a.path("known").asBoolean(true) ? OptionalInt.of(1) : OptionalInt.empty());
                return told();
            case "leadAgain":
                change(a.get("epoch").asInt(), OptionalInt.of(0));
                told();
                return null;
            case "loadSnapshot": {
                long offset = a.get("offset").asLong();
                raft.handOutSnapshot(offset, a.get("epoch").asInt(), records(a.get("records")));
                raft.end = offset;
                told();
                return null;
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private Object lead(JsonNode a) throws Exception {
        int epoch = a.get("epoch").asInt();
        raft.handOut(List.of(raft.control(epoch)));
        CountDownLatch hold = new CountDownLatch(1);
        controller.appendControlEvent("hold", () -> {
            try {
                hold.await();
            } catch (InterruptedException e) {
                throw new AdapterFailure("interrupted", e);
            }
        });
        raft.refusedAt = a.path("refused").asBoolean(false) ? 0 : -1;
        change(epoch, OptionalInt.of(0));
        controller.appendControlEvent("take all", () -> raft.refusedAt = -1);
        for (JsonNode write : a.path("queued")) {
            write(write, OptionalLong.empty());
        }
        hold.countDown();
        return told();
    }

    private void change(int epoch, OptionalInt leader) {
        raft.leader = new LeaderAndEpoch(leader, epoch);
        raft.listener.handleLeaderChange(raft.leader);
    }

    private void write(JsonNode a, OptionalLong deadline) throws Exception {
        int call = calls.size();
        String key = a.path("key").asText("");
        boolean atomic = a.path("atomic").asBoolean(true);
        String fault = a.path("fault").asText("none");
        JsonNode records = a.get("records");
        CompletableFuture<Long> future = controller.appendWriteEvent("write", deadline, () -> {
            switch (fault) {
                case "none":
                    break;
                case "InvalidRequestException":
                    throw new InvalidRequestException("told to throw");
                case "BoundedListTooLongException":
                    throw new BoundedListTooLongException("told to throw");
                case "PeriodicControlTaskException":
                    throw new PeriodicControlTaskException("told to throw", null);
                case "NotLeaderException":
                    throw new NotLeaderException("told to throw");
                default:
                    throw new NullPointerException("told to throw");
            }
            List<ApiMessageAndVersion> made = records(records);
            long response = memory(RegistryCalls.NOW).getOrDefault(key, -1L);
            return atomic ? ControllerResult.atomicOf(made, response) : ControllerResult.of(made, response);
        });
        calls.put(future, call);
        future.whenComplete((value, e) -> {
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("call", call);
            answer.put("outcome", e == null ? "done" : e.getClass().getSimpleName());
            answer.put("value", e == null ? value : -1L);
            answers.add(answer);
        });
    }

    /** After all that is in the queue: who was answered. */
    private List<Object> told() throws Exception {
        await(() -> null);
        raft.refusedAt = -1;
        return halted ? List.of() : List.copyOf(answers);
    }

    private <T> T await(Supplier<T> of) throws Exception {
        try {
            return controller.appendReadEvent("look", OptionalLong.empty(), of).get(30, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new AdapterFailure("the controller's thread: " + e.getCause(), e);
        }
    }

    private Long read(String key) {
        return registry.hasSnapshot(offsets.lastStableOffset())
            ? memory(offsets.lastStableOffset()).getOrDefault(key, -1L)
            : null;
    }

    private Map<String, Long> memory(long epoch) {
        Map<String, Long> out = new TreeMap<>();
        TimelineHashMap<String, String> set = configs.get(ALL_BROKERS, epoch);
        if (set != null) {
            RegistryCalls.lookedUp(set, seenKeys, epoch).forEach((key, value) -> out.put(key, Long.valueOf(value)));
        }
        RegistryCalls.lookedUp(brokers, seenBrokers, epoch).forEach((id, offset) -> out.put("broker " + id, offset));
        RegistryCalls.lookedUp(features, List.of(ELR), epoch).forEach((name, at) -> out.put(name, at.longValue()));
        version.get(epoch).ifPresent(v -> out.put(VERSION, (long) v.featureLevel()));
        return out;
    }

    // ---- records

    private List<ApiMessageAndVersion> records(JsonNode of) {
        List<ApiMessageAndVersion> out = new ArrayList<>();
        for (JsonNode r : of) {
            out.add(record(r.get(0).asText(), r.path(1).asText(""), r.path(2).asInt(0)));
        }
        return out;
    }

    private ApiMessageAndVersion record(String kind, String key, int value) {
        switch (kind) {
            case "set":
                seenKeys.add(key);
                return of(new ConfigRecord().setResourceType(ConfigResource.Type.BROKER.id()).setResourceName("")
                    .setName(key).setValue(Integer.toString(value)));
            case "version":
                return of(new FeatureLevelRecord().setName(VERSION).setFeatureLevel((short) value));
            case "feature":
                return of(new FeatureLevelRecord().setName(ELR).setFeatureLevel((short) value));
            case "register":
                seenBrokers.add(value);
                return of(new RegisterBrokerRecord().setBrokerId(value).setIncarnationId(new Uuid(1, value))
                    .setBrokerEpoch(1).setFenced(true));
            case "noOp":
                return of(new NoOpRecord());
            case "begin":
                return of(new BeginTransactionRecord().setName("told"));
            case "end":
                return of(new EndTransactionRecord());
            case "abort":
                return of(new AbortTransactionRecord().setReason("told"));
            default:
                return of(new UnknownRecord());
        }
    }

    private static ApiMessageAndVersion of(ApiMessage message) {
        return new ApiMessageAndVersion(message, (short) 0);
    }

    private static List<Object> shown(ApiMessage message) {
        if (message instanceof ConfigRecord r) {
            return List.of("set", r.name(), Integer.valueOf(r.value()));
        } else if (message instanceof FeatureLevelRecord r) {
            return List.of(r.name().equals(VERSION) ? "version" : "feature", "", (int) r.featureLevel());
        } else if (message instanceof RegisterBrokerRecord r) {
            return List.of("register", "", r.brokerId());
        } else if (message instanceof NoOpRecord) {
            return List.of("noOp", "", 0);
        } else if (message instanceof BeginTransactionRecord) {
            return List.of("begin", "", 0);
        } else if (message instanceof EndTransactionRecord) {
            return List.of("end", "", 0);
        } else if (message instanceof AbortTransactionRecord) {
            return List.of("abort", "", 0);
        }
        return List.of("unknown", "", 0);
    }

    /** Of a type that no release has. */
    private static final class UnknownRecord implements ApiMessage {
        @Override
        public short apiKey() {
            return 9999;
        }

        @Override
        public short lowestSupportedVersion() {
            return 0;
        }

        @Override
        public short highestSupportedVersion() {
            return 0;
        }

        @Override
        public void addSize(MessageSizeAccumulator size, ObjectSerializationCache cache, short version) {
        }

        @Override
        public void write(Writable writable, ObjectSerializationCache cache, short version) {
        }

        @Override
        public void read(Readable readable, short version) {
        }

        @Override
        public List<RawTaggedField> unknownTaggedFields() {
            return List.of();
        }

        @Override
        public Message duplicate() {
            return new UnknownRecord();
        }
    }

    // ---- what is shown

    @Override
    public Object observe() throws Exception {
        return await(() -> {
            Map<String, Object> out = new LinkedHashMap<>();
            out.put("claimEpoch", halted ? -1 : controller.curClaimEpoch());
            out.put("lastCommittedOffset", halted ? -1 : offsets.lastCommittedOffset());
            out.put("lastCommittedEpoch", halted ? -1 : offsets.lastCommittedEpoch());
            out.put("lastStableOffset", halted ? -1 : offsets.lastStableOffset());
            out.put("nextWriteOffset", halted ? -1 : offsets.nextWriteOffset());
            out.put("transactionStartOffset", halted ? -1 : offsets.transactionStartOffset());
            out.put("snapshotEpochs", halted ? List.of() : registry.epochsList());
            out.put("memory", halted ? Map.of() : memory(RegistryCalls.NOW));
            out.put("stable", halted || !registry.hasSnapshot(offsets.lastStableOffset())
                ? null : memory(offsets.lastStableOffset()));
            List<Object> pending = new ArrayList<>();
            List<Object> log = new ArrayList<>();
            if (!halted) {
                purgatory.forEach((offset, events) -> events.forEach(event -> pending.add(List.of(offset,
                    calls.getOrDefault(((QuorumController.ControllerWriteEvent<?>) event).future(), -1)))));
                raft.sent.forEach(s -> {
                    Map<String, Object> batch = new LinkedHashMap<>();
                    batch.put("base", s.base());
                    batch.put("epoch", s.epoch());
                    batch.put("records", s.records().stream().map(r -> shown(r.message())).toList());
                    log.add(batch);
                });
            }
            out.put("pending", pending);
            out.put("log", log);
            out.put("faults", halted ? 0 : faults);
            Map<String, Object> scheduled = new TreeMap<>();
            if (!halted) {
                TAGS.<Map<String, Object>>read(HANDLER.read(QUEUE.read(controller))).forEach((name, event) ->
                    scheduled.put(name, DEADLINE.<OptionalLong>read(event).getAsLong() - START_NS));
            }
            out.put("scheduled", scheduled);
            out.put("halted", halted);
            return out;
        });
    }

    @Override
    public void close() throws Exception {
        if (controller != null) {
            controller.close();
            controller = null;
        }
    }
}
