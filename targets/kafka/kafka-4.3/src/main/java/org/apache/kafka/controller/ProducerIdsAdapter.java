package org.apache.kafka.controller;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import kafkaspec.target.Adapter;
import kafkaspec.target.PrivateField;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.ProducerIdsRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.UnregisterBrokerRecord;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.image.ProducerIdsDelta;
import org.apache.kafka.image.ProducerIdsImage;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.ProducerIdsBlock;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;
import org.apache.kafka.timeline.TimelineLong;
import org.apache.kafka.timeline.TimelineObject;

/**
 * Subsystem `producer_ids`: {@link ProducerIdControlManager} beside the {@link ClusterControlManager} that it asks, over
 * one {@link SnapshotRegistry}; brokers are registered by records. What a raft snapshot has of producer ids is told by
 * {@link ProducerIdsDelta} and {@link ProducerIdsImage}.
 */
public final class ProducerIdsAdapter implements Adapter {
    private SnapshotRegistry registry;
    private ClusterControlManager cluster;
    private ProducerIdControlManager manager;
    private TimelineObject<ProducerIdsBlock> next;
    private TimelineLong brokerEpoch;
    private TimelineHashMap<Integer, BrokerRegistration> brokers;
    /** All brokers that were ever registered in this history. */
    private final SortedSet<Integer> seen = new TreeSet<>();
    private long offset;

    @Override
    public void init(JsonNode args) throws Exception {
        registry = new SnapshotRegistry(new LogContext());
        FeatureControlManager features = new FeatureControlManager.Builder().setSnapshotRegistry(registry)
            .setQuorumFeatures(new QuorumFeatures(0, QuorumFeatures.defaultSupportedFeatureMap(false), List.of(0)))
            .build();
        cluster = new ClusterControlManager.Builder().setSnapshotRegistry(registry).setFeatureControlManager(features)
            .setBrokerShutdownHandler((brokerId, isCleanShutdown, records) -> { }).build();
        manager = new ProducerIdControlManager.Builder().setSnapshotRegistry(registry).setClusterControlManager(cluster)
            .build();
        next = PrivateField.of(ProducerIdControlManager.class, "nextProducerBlock").read(manager);
        brokerEpoch = PrivateField.of(ProducerIdControlManager.class, "brokerEpoch").read(manager);
        brokers = PrivateField.of(ClusterControlManager.class, "brokerRegistrations").read(cluster);
        seen.clear();
        offset = 0;
        for (JsonNode b : args.path("brokers")) {
            register(b.get(0).intValue(), b.get(1).longValue());
        }
    }

    private void register(int id, long epoch) {
        seen.add(id);
        cluster.replay(new RegisterBrokerRecord().setBrokerId(id).setBrokerEpoch(epoch)
            .setIncarnationId(new Uuid(1, epoch)).setFenced(true), offset++);
    }

    @Override
    public Object apply(String op, JsonNode a) {
        switch (op) {
            case "generateNextProducerId":
                return generate(a);
            case "replay":
                manager.replay(new ProducerIdsRecord().setBrokerId(a.get("brokerId").intValue())
                    .setBrokerEpoch(a.get("brokerEpoch").longValue())
                    .setNextProducerId(a.get("nextProducerId").longValue()));
                return null;
            case "imageRecords": {
                ProducerIdsDelta delta = new ProducerIdsDelta(ProducerIdsImage.EMPTY);
                a.get("nextProducerIds").forEach(
                    n -> delta.replay(new ProducerIdsRecord().setNextProducerId(n.longValue())));
                RecordListWriter writer = new RecordListWriter();
                delta.apply().write(writer);
                writer.close(true);
                return shown(writer.records());
            }
            case "reset":
                registry.reset();
                return null;
            case "registerBroker":
                register(a.get("brokerId").intValue(), a.get("brokerEpoch").longValue());
                return null;
            case "unregisterBroker": {
                int id = a.get("brokerId").intValue();
                cluster.replay(new UnregisterBrokerRecord().setBrokerId(id)
                    .setBrokerEpoch(cluster.brokerRegistrations().get(id).epoch()));
                return null;
            }
            default:
                return RegistryCalls.apply(registry, op, a);
        }
    }

    private Object generate(JsonNode a) {
        ControllerResult<ProducerIdsBlock> result = manager.generateNextProducerId(a.get("brokerId").intValue(),
            a.get("brokerEpoch").longValue());
        if (a.get("replayed").booleanValue()) {
            result.records().forEach(record -> manager.replay((ProducerIdsRecord) record.message()));
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("firstProducerId", result.response().firstProducerId());
        out.put("size", result.response().size());
        out.put("records", shown(result.records()));
        out.put("atomic", result.isAtomic());
        out.put("assignedBrokerId", result.response().assignedBrokerId());
        return out;
    }

    private static List<Object> shown(List<ApiMessageAndVersion> records) {
        List<Object> out = new ArrayList<>();
        for (ApiMessageAndVersion record : records) {
            ProducerIdsRecord said = (ProducerIdsRecord) record.message();
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("version", record.version());
            fields.put("brokerId", said.brokerId());
            fields.put("brokerEpoch", said.brokerEpoch());
            fields.put("nextProducerId", said.nextProducerId());
            out.add(fields);
        }
        return out;
    }

    @Override
    public Object observe() {
        if (manager.nextProducerBlock() != next.get(RegistryCalls.NOW)) {
            throw new AdapterFailure("the next block is not what the object holds");
        }
        List<Object> now = memory(RegistryCalls.NOW);
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("nextProducerId", now.get(0));
        out.put("snapshotEpochs", registry.epochsList());
        out.put("assignedBrokerId", now.get(1));
        out.put("size", now.get(2));
        out.put("brokerEpoch", now.get(3));
        out.put("brokers", now.get(4));
        out.put("at", RegistryCalls.past(registry, this::memory));
        return out;
    }

    private List<Object> memory(long epoch) {
        ProducerIdsBlock block = next.get(epoch);
        Map<String, Long> registered = new TreeMap<>();
        RegistryCalls.lookedUp(brokers, seen, epoch).forEach((id, b) -> registered.put(Integer.toString(id), b.epoch()));
        return List.of(block.firstProducerId(), block.assignedBrokerId(), block.size(), brokerEpoch.get(epoch), registered);
    }
}
