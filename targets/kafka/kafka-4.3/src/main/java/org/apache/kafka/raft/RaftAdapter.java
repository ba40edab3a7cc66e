package org.apache.kafka.raft;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import kafkaspec.target.Adapter;
import kafkaspec.target.PrivateField;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.feature.SupportedVersionRange;
import org.apache.kafka.common.memory.MemoryPool;
import org.apache.kafka.common.message.AddRaftVoterResponseData;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.message.BeginQuorumEpochResponseData;
import org.apache.kafka.common.message.EndQuorumEpochRequestData;
import org.apache.kafka.common.message.EndQuorumEpochResponseData;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.RemoveRaftVoterResponseData;
import org.apache.kafka.common.message.VoteResponseData;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.common.record.internal.UnalignedMemoryRecords;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.raft.internals.BatchAccumulator;
import org.apache.kafka.raft.internals.KRaftControlRecordStateMachine;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.raft.internals.StringSerde;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.OffsetAndEpoch;
import org.apache.kafka.server.util.MockScheduler;
import org.apache.kafka.snapshot.FileRawSnapshotWriter;
import org.apache.kafka.snapshot.RecordsSnapshotWriter;
import org.apache.kafka.snapshot.SnapshotReader;
import org.apache.kafka.snapshot.SnapshotWriter;
import org.apache.kafka.snapshot.Snapshots;

/**
 * Subsystem `raft`: {@link KafkaRaftClient} with its {@link KafkaRaftLog} and its {@link FileQuorumStateStore} on a
 * scratch directory. There is no network and no thread: a request is handed to the client, its answer is taken, and it
 * is polled three times, so that what it does at its next poll is done. Before an answer to the client's own request is
 * handed over, its {@link RequestManager} is told that such a request is under way. A timer runs out when the mock
 * clock is moved to where the state says that it does. The buffers of batches are smaller than Kafka's.
 *
 * <p>Private fields are read by reflection: who has fetched, votes, snapshots, voters, the accumulator's offset. The
 * listener takes a batch at once, and keeps what it was told.
 */
public final class RaftAdapter implements Adapter {
    private static final ListenerName LISTENER = ListenerName.normalised("CONTROLLER");
    private static final TopicPartition PARTITION = new TopicPartition("__cluster_metadata", 0);
    private static final Uuid TOPIC = Uuid.METADATA_TOPIC_ID;
    private static final String CLUSTER = "the-judge-s-cluster-id";
    private static final int LOCAL = 0;
    private static final int TIMEOUT_MS = 1_000_000;
    private static final short VERSION = 1;
    private static final short FETCH_VERSION = 17;
    private static final SupportedVersionRange SUPPORTED = new SupportedVersionRange((short) 0, (short) 1);
    private static final StringSerde SERDE = new StringSerde();

    private final Scratch scratch = new Scratch("raft");
    private Path directory;
    private boolean dynamic;
    private Object last; // what was seen last, of a replica that could not start again
    private List<Integer> first;
    private MockTime time;
    private KafkaRaftLog log;
    private Channel channel;
    private Queue queue;
    private KafkaRaftClient<String> client;
    private QuorumConfig config;
    private RequestManager requests;
    private KRaftControlRecordStateMachine partition;
    private Heard heard;

    /** Whatever is sent is lost. */
    private static final class Channel implements NetworkChannel {
        private int last;

        @Override
        public int newCorrelationId() {
            return ++last;
        }

        @Override
        public void send(RaftRequest.Outbound request) {
        }

        @Override
        public ListenerName listenerName() {
            return LISTENER;
        }
    }

    private static final class Queue implements RaftMessageQueue {
        private final ArrayDeque<RaftMessage> messages = new ArrayDeque<>();

        @Override
        public RaftMessage poll(long timeoutMs) {
            return messages.poll();
        }

        @Override
        public void add(RaftMessage message) {
            messages.add(message);
        }

        @Override
        public boolean isEmpty() {
            return messages.isEmpty();
        }

        @Override
        public void wakeup() {
        }
    }

    private static final class SmallBuffers implements MemoryPool {
        @Override
        public ByteBuffer tryAllocate(int sizeBytes) {
            return ByteBuffer.allocate(1 << 14);
        }

        @Override
        public void release(ByteBuffer buffer) {
        }

        @Override
        public long size() {
            return Long.MAX_VALUE;
        }

        @Override
        public long availableMemory() {
            return Long.MAX_VALUE;
        }

        @Override
        public boolean isOutOfMemory() {
            return false;
        }
    }

    /** What the listener was told: records that follow those before are one event with them. */
    private static final class Heard implements RaftClient.Listener<String> {
        private List<List<Object>> events = new ArrayList<>();

        @Override
        public void handleCommit(BatchReader<String> reader) {
            try (reader) {
                List<List<Object>> records = new ArrayList<>();
                long offset = -1;
                while (reader.hasNext()) {
                    Batch<String> batch = reader.next();
                    offset = offset < 0 ? batch.baseOffset() : offset;
                    boolean joined = false;
                    for (String value : batch.records()) {
                        records.add(Arrays.asList(batch.epoch(), value, null, joined));
                        joined = true;
                    }
                    for (ControlRecord control : batch.controlRecords()) {
                        List<Integer> voters = control.type() == ControlRecordType.KRAFT_VOTERS
                            ? ids((VotersRecord) control.message()) : null;
                        records.add(Arrays.asList(batch.epoch(), null, voters, joined));
                        joined = true;
                    }
                }
                if (!events.isEmpty() && events.get(events.size() - 1).get(0).equals("commit")) {
                    List<Object> last = events.remove(events.size() - 1);
                    List<Object> all = new ArrayList<>((List<?>) last.get(4));
                    all.addAll(records);
                    events.add(Arrays.asList("commit", null, null, last.get(3), all));
                } else {
                    events.add(Arrays.asList("commit", null, null, offset, records));
                }
            }
        }

        private void snapshot(String kind, SnapshotReader<String> reader) {
            try (reader) {
                OffsetAndEpoch id = reader.snapshotId();
                events.add(Arrays.asList(kind, id.epoch(), null, id.offset(), List.of()));
            }
        }

        @Override
        public void handleLoadSnapshot(SnapshotReader<String> reader) {
            snapshot("snapshot", reader);
        }

        @Override
        public void handleLoadBootstrap(SnapshotReader<String> reader) {
            snapshot("bootstrap", reader);
        }

        @Override
        public void handleLeaderChange(LeaderAndEpoch leader) {
            Integer id = leader.leaderId().isPresent() ? leader.leaderId().getAsInt() : null;
            events.add(Arrays.asList("leader", leader.epoch(), id, null, List.of()));
        }
    }

    // ---- who is who

    private static Uuid directory(int id) {
        return new Uuid(7, id + 1L);
    }

    private static ReplicaKey key(int id) {
        return ReplicaKey.of(id, directory(id));
    }

    private static InetSocketAddress address(int id) {
        return InetSocketAddress.createUnresolved("node-" + id, 9093);
    }

    private static Endpoints endpoints(int id) {
        return Endpoints.fromInetSocketAddresses(Map.of(LISTENER, address(id)));
    }

    private static Endpoints endpoints(Integer id) {
        return id == null ? Endpoints.empty() : endpoints(id.intValue());
    }

    private static Node node(int id) {
        return new Node(id, address(id).getHostString(), address(id).getPort());
    }

    private static VoterSet voters(Collection<Integer> ids) {
        Map<Integer, VoterSet.VoterNode> nodes = new TreeMap<>();
        ids.forEach(id -> nodes.put(id, VoterSet.VoterNode.of(key(id), endpoints(id.intValue()), SUPPORTED)));
        return VoterSet.fromMap(nodes);
    }

    private static List<Integer> ids(VotersRecord record) {
        return record.voters().stream().map(VotersRecord.Voter::voterId).sorted().toList();
    }

    private static List<Integer> numbers(JsonNode array) {
        List<Integer> out = new ArrayList<>();
        array.forEach(n -> out.add(n.asInt()));
        return out;
    }

    private static Integer number(JsonNode n) {
        return n == null || n.isNull() ? null : n.asInt();
    }

    private static Integer known(int id) {
        return id < 0 ? null : id;
    }

    // ---- the client

    @Override
    public void init(JsonNode args) throws Exception {
        end();
        last = null;
        time = new MockTime(0, 1_000_000, 0);
        directory = scratch.directory(PARTITION.toString());
        dynamic = args.path("dynamic").asBoolean(true);
        TreeSet<Integer> all = new TreeSet<>(args.has("voters") ? numbers(args.get("voters")) : List.of(0, 1, 2));
        all.add(LOCAL);
        first = List.copyOf(all);
        if (dynamic) {
            snapshot(directory, new OffsetAndEpoch(0, 0), first);
        }
        start();
    }

    private static void snapshot(Path directory, OffsetAndEpoch id, Collection<Integer> voters) {
        boolean any = !voters.isEmpty();
        try (RecordsSnapshotWriter<String> writer = new RecordsSnapshotWriter.Builder()
                .setKraftVersion(any ? KRaftVersion.KRAFT_VERSION_1 : KRaftVersion.KRAFT_VERSION_0)
                .setVoterSet(any ? Optional.of(voters(voters)) : Optional.empty())
                .setMaxBatchSizeBytes(1 << 14)
                .setRawSnapshotWriter(FileRawSnapshotWriter.create(directory, id))
                .build(SERDE)) {
            writer.freeze();
        }
    }

    private void start() throws Exception {
        log = KafkaRaftLog.createLog(PARTITION, TOPIC, directory.toFile(), time, new MockScheduler(time),
            new MetadataLogConfig(new AbstractConfig(MetadataLogConfig.CONFIG_DEF,
                Map.of("metadata.max.retention.ms", "-1", "metadata.max.retention.bytes", "-1"), false)), LOCAL);
        config = new QuorumConfig(new AbstractConfig(QuorumConfig.CONFIG_DEF, Map.of(
            QuorumConfig.QUORUM_ELECTION_TIMEOUT_MS_CONFIG, TIMEOUT_MS,
            QuorumConfig.QUORUM_FETCH_TIMEOUT_MS_CONFIG, TIMEOUT_MS,
            QuorumConfig.QUORUM_LINGER_MS_CONFIG, 0), false));
        channel = new Channel();
        queue = new Queue();
        Map<Integer, InetSocketAddress> addresses = new TreeMap<>();
        first.forEach(id -> addresses.put(id, address(id)));
        ExpirationService never = new ExpirationService() {
            @Override
            public <T> CompletableFuture<T> failAfter(long timeoutMs) {
                return new CompletableFuture<>();
            }
        };
        client = new KafkaRaftClient<>(OptionalInt.of(LOCAL), directory(LOCAL), SERDE, channel, queue, log,
            new SmallBuffers(), time, never, 0, true, CLUSTER, dynamic ? addresses.values() : List.of(),
            endpoints(LOCAL), SUPPORTED, new LogContext(), new Random(1), config);
        client.initialize(dynamic ? Map.of() : addresses, new FileQuorumStateStore(
            directory.resolve(FileQuorumStateStore.DEFAULT_FILE_NAME).toFile()), new Metrics(time), ignored -> { });
        requests = PrivateField.of(KafkaRaftClient.class, "requestManager").read(client);
        partition = PrivateField.of(KafkaRaftClient.class, "partitionState").read(client);
        heard = new Heard();
        client.register(heard);
        settle();
    }

    private void end() throws Exception {
        if (client != null) {
            client.close();
            log.close();
            client = null;
        }
    }

    @Override
    public void close() throws Exception {
        end();
        scratch.close();
    }

    private void settle() {
        for (int polls = 0; polls < 3 || !queue.isEmpty(); polls++) {
            client.poll();
        }
    }

    @SuppressWarnings("unchecked")
    private <T extends ApiMessage> CompletableFuture<T> ask(short version, ApiMessage request) {
        RaftRequest.Inbound inbound =
            new RaftRequest.Inbound(LISTENER, channel.newCorrelationId(), version, request, time.milliseconds());
        client.handle(inbound);
        settle();
        return inbound.completion.thenApply(response -> (T) response.data());
    }

    /** The answer of an operation that is answered at once. */
    private <T extends ApiMessage> T answer(short version, ApiMessage request) {
        return this.<T>ask(version, request).getNow(null);
    }

    private void respond(int source, ApiMessage response) {
        int id = channel.newCorrelationId();
        requests.onRequestSent(node(source), id, time.milliseconds());
        queue.add(new RaftResponse.Inbound(id, response, node(source)));
        settle();
    }

    // ---- operations

    @Override
    public Collection<String> operations() {
        return List.of("addVoter", "beginQuorumEpoch", "checkQuorumTimeout", "createSnapshot", "electionTimeout",
            "endQuorumEpoch", "endQuorumEpoch.backoffMs", "fetch", "fetchResponse", "fetchSnapshotResponse",
            "fetchTimeout", "prepareAppend", "register", "removeVoter", "resign", "restart", "schedulePreparedAppend",
            "told", "vote", "voteResponse");
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "electionTimeout":
            case "fetchTimeout":
            case "checkQuorumTimeout":
                time.sleep(remainingMs());
                settle();
                return null;
            case "vote": {
                VoteResponseData.PartitionData p = this.<VoteResponseData>answer((short) 2,
                    RaftUtil.singletonVoteRequest(PARTITION, CLUSTER, a.get("epoch").asInt(),
                        key(a.get("candidate").asInt()), key(LOCAL), a.get("lastEpoch").asInt(),
                        a.get("lastOffset").asLong(), a.get("preVote").asBoolean()))
                    .topics().get(0).partitions().get(0);
                return voted(p.errorCode(), p.leaderEpoch(), p.leaderId(), p.voteGranted());
            }
            case "voteResponse": {
                Integer leader = number(a.get("leader"));
                respond(a.get("source").asInt(), RaftUtil.singletonVoteResponse(LISTENER, VERSION, Errors.NONE,
                    PARTITION, Errors.valueOf(a.get("error").asText()), a.get("epoch").asInt(),
                    leader == null ? -1 : leader, a.get("granted").asBoolean(), endpoints(leader)));
                return null;
            }
            case "beginQuorumEpoch": {
                int leader = a.get("leader").asInt();
                BeginQuorumEpochResponseData.PartitionData p = this.<BeginQuorumEpochResponseData>answer(VERSION,
                    RaftUtil.singletonBeginQuorumEpochRequest(PARTITION, CLUSTER, a.get("epoch").asInt(), leader,
                        endpoints(leader), key(LOCAL))).topics().get(0).partitions().get(0);
                return voted(p.errorCode(), p.leaderEpoch(), p.leaderId(), false);
            }
            case "endQuorumEpoch": {
                int leader = a.get("leader").asInt();
                EndQuorumEpochRequestData.LeaderEndpointCollection at =
                    new EndQuorumEpochRequestData.LeaderEndpointCollection();
                at.add(new EndQuorumEpochRequestData.LeaderEndpoint().setName(LISTENER.value())
                    .setHost(address(leader).getHostString()).setPort(address(leader).getPort()));
                EndQuorumEpochResponseData.PartitionData p = this.<EndQuorumEpochResponseData>answer(VERSION,
                    RaftUtil.singletonEndQuorumEpochRequest(PARTITION, CLUSTER, a.get("epoch").asInt(), leader,
                        List.of(key(Integer.MAX_VALUE - 1))).setLeaderEndpoints(at))
                    .topics().get(0).partitions().get(0);
                return voted(p.errorCode(), p.leaderEpoch(), p.leaderId(), false);
            }
            case "endQuorumEpoch.backoffMs":
                return backoffMs(numbers(a.get("successors")), a.get("maxMs").asInt());
            case "fetch":
                return fetch(a);
            case "fetchResponse":
                respond(1, fetched(a.get("answer")));
                return null;
            case "fetchSnapshotResponse":
                fetchedSnapshot(numbers(a.get("voters")));
                return null;
            case "createSnapshot": {
                Optional<SnapshotWriter<String>> writer = client.createSnapshot(
                    new OffsetAndEpoch(a.get("offset").asLong(), a.get("epoch").asInt()), 0);
                if (writer.isPresent()) {
                    try (SnapshotWriter<String> open = writer.get()) {
                        open.freeze();
                    }
                }
                return writer.isPresent();
            }
            case "prepareAppend": {
                List<String> values = new ArrayList<>();
                a.get("values").forEach(value -> values.add(value.asText()));
                long last = client.prepareAppend(a.get("epoch").asInt(), values);
                settle();
                return last;
            }
            case "schedulePreparedAppend":
                client.schedulePreparedAppend();
                settle();
                return null;
            case "resign":
                client.resign(a.get("epoch").asInt());
                settle();
                return null;
            case "addVoter":
                return add(a.get("voter").asInt());
            case "removeVoter": {
                RemoveRaftVoterResponseData answer = answer((short) 0,
                    RaftUtil.removeVoterRequest(CLUSTER, key(a.get("voter").asInt())));
                return answer == null ? "NONE" : Errors.forCode(answer.errorCode()).name();
            }
            case "told": {
                List<List<Object>> told = heard.events;
                heard.events = new ArrayList<>();
                return told;
            }
            case "register":
                client.unregister(heard);
                heard = new Heard();
                client.register(heard);
                settle();
                return null;
            case "restart":
                Object before = observe();
                end();
                try {
                    start();
                } catch (IllegalArgumentException e) {
                    log.close();
                    client = null;
                    last = before;
                    throw e;
                }
                return null;
            default:
                throw new UnknownOperation(op);
        }
    }

    private static List<Object> voted(short error, int epoch, int leader, boolean granted) {
        return Arrays.asList(Errors.forCode(error).name(), epoch, known(leader), granted);
    }

    /** Until the timer of the state runs out; of who has none, nothing. */
    private long remainingMs() {
        QuorumState quorum = client.quorum();
        long now = time.milliseconds();
        if (quorum.isLeader()) {
            return quorum.<String>leaderStateOrThrow().timeUntilCheckQuorumExpires(now);
        } else if (quorum.isFollower()) {
            return quorum.followerStateOrThrow().remainingFetchTimeMs(now);
        } else if (quorum.isResigned()) {
            return quorum.resignedStateOrThrow().remainingElectionTimeMs(now);
        } else if (quorum.isUnattached()) {
            return quorum.isVoter() ? quorum.unattachedStateOrThrow().remainingElectionTimeMs(now) : 0;
        } else {
            return quorum.nomineeStateOrThrow().remainingElectionTimeMs(now);
        }
    }

    private long backoffMs(List<Integer> successors, int maxMs) throws Throwable {
        Field most = QuorumConfig.class.getDeclaredField("electionBackoffMaxMs");
        most.setAccessible(true);
        int usual = most.getInt(config);
        most.setInt(config, maxMs);
        Method backoff = KafkaRaftClient.class.getDeclaredMethod("endEpochElectionBackoff", Collection.class);
        backoff.setAccessible(true);
        try {
            return (long) backoff.invoke(client, successors.stream().map(RaftAdapter::key).toList());
        } catch (InvocationTargetException e) {
            throw e.getCause();
        } finally {
            most.setInt(config, usual);
        }
    }

    private String add(int voter) {
        requests.resetAll();
        CompletableFuture<AddRaftVoterResponseData> answer = ask(VERSION,
            RaftUtil.addVoterRequest(CLUSTER, TIMEOUT_MS, key(voter), endpoints(voter), true));
        if (!answer.isDone()) {
            ApiVersionsResponseData.SupportedFeatureKeyCollection supported =
                new ApiVersionsResponseData.SupportedFeatureKeyCollection();
            supported.add(new ApiVersionsResponseData.SupportedFeatureKey().setName(KRaftVersion.FEATURE_NAME)
                .setMinVersion((short) 0).setMaxVersion((short) 1));
            respond(voter, new ApiVersionsResponseData().setSupportedFeatures(supported));
        }
        return answer.isDone() ? Errors.forCode(answer.getNow(null).errorCode()).name() : "NONE";
    }

    private Object fetch(JsonNode a) {
        int replica = a.get("replica").asInt();
        FetchResponseData.PartitionData p = this.<FetchResponseData>answer(FETCH_VERSION,
            RaftUtil.singletonFetchRequest(PARTITION, TOPIC, f -> f
                .setCurrentLeaderEpoch(a.get("epoch").asInt())
                .setLastFetchedEpoch(a.get("lastEpoch").asInt())
                .setFetchOffset(a.get("offset").asLong())
                .setReplicaDirectoryId(directory(replica)))
                .setMaxBytes(1 << 30)
                .setMaxWaitMs(0)
                .setClusterId(CLUSTER)
                .setReplicaState(new FetchRequestData.ReplicaState().setReplicaId(replica)))
            .responses().get(0).partitions().get(0);
        return Arrays.asList(
            Errors.forCode(p.errorCode()).name(), p.currentLeader().leaderEpoch(), known(p.currentLeader().leaderId()),
            p.highWatermark() < 0 ? null : p.highWatermark(),
            p.divergingEpoch().epoch() < 0 ? null : List.of(p.divergingEpoch().endOffset(), p.divergingEpoch().epoch()),
            p.snapshotId().epoch() < 0 ? null : List.of(p.snapshotId().endOffset(), p.snapshotId().epoch()),
            records((Records) p.records()));
    }

    private FetchResponseData fetched(JsonNode answer) {
        Integer leader = number(answer.get(2));
        JsonNode high = answer.get(3);
        JsonNode diverging = answer.get(4);
        JsonNode snapshot = answer.get(5);
        return RaftUtil.singletonFetchResponse(LISTENER, FETCH_VERSION, PARTITION, TOPIC, Errors.NONE,
            leader == null ? -1 : leader, endpoints(leader), p -> {
                p.setErrorCode(Errors.valueOf(answer.get(0).asText()).code())
                    .setHighWatermark(high == null || high.isNull() ? -1 : high.asLong())
                    .setRecords(batches(answer.get(6)));
                p.currentLeader().setLeaderEpoch(answer.get(1).asInt()).setLeaderId(leader == null ? -1 : leader);
                if (diverging != null && !diverging.isNull()) {
                    p.divergingEpoch().setEndOffset(diverging.get(0).asLong()).setEpoch(diverging.get(1).asInt());
                }
                if (snapshot != null && !snapshot.isNull()) {
                    p.snapshotId().setEndOffset(snapshot.get(0).asLong()).setEpoch(snapshot.get(1).asInt());
                }
            });
    }

    private void fetchedSnapshot(List<Integer> voters) throws Exception {
        OffsetAndEpoch id = client.quorum().followerStateOrThrow().fetchingSnapshot().orElseThrow().snapshotId();
        Path elsewhere = scratch.directory("snapshot");
        snapshot(elsewhere, id, dynamic ? voters : List.of());
        byte[] bytes = Files.readAllBytes(Snapshots.snapshotPath(elsewhere, id));
        int leader = client.quorum().leaderIdOrSentinel();
        respond(leader, RaftUtil.singletonFetchSnapshotResponse(LISTENER, VERSION, PARTITION, leader,
            endpoints(leader), p -> {
                p.currentLeader().setLeaderEpoch(client.quorum().epoch()).setLeaderId(leader);
                p.snapshotId().setEndOffset(id.offset()).setEpoch(id.epoch());
                return p.setSize(bytes.length).setPosition(0)
                    .setUnalignedRecords(new UnalignedMemoryRecords(ByteBuffer.wrap(bytes)));
            }));
    }

    /** The records as a leader would send them, behind the log's end. */
    private MemoryRecords batches(JsonNode records) {
        if (records == null || records.isEmpty()) {
            return MemoryRecords.EMPTY;
        }
        ByteBuffer out = ByteBuffer.allocate(1 << 16);
        MemoryRecordsBuilder batch = null;
        long offset = log.endOffset().offset();
        for (JsonNode record : records) {
            boolean control = record.get(1).isNull();
            if (batch == null || !record.get(3).asBoolean()) {
                if (batch != null) {
                    batch.close();
                }
                batch = new MemoryRecordsBuilder(out, RecordBatch.CURRENT_MAGIC_VALUE, Compression.NONE,
                    TimestampType.CREATE_TIME, offset, time.milliseconds(), RecordBatch.NO_PRODUCER_ID,
                    RecordBatch.NO_PRODUCER_EPOCH, RecordBatch.NO_SEQUENCE, false, control, record.get(0).asInt(),
                    out.capacity());
            }
            if (!control) {
                batch.append(time.milliseconds(), null, record.get(1).asText().getBytes(StandardCharsets.UTF_8));
            } else if (!record.get(2).isNull()) {
                batch.appendVotersMessage(time.milliseconds(), voters(numbers(record.get(2)))
                    .toVotersRecord(ControlRecordUtils.KRAFT_VOTERS_CURRENT_VERSION));
            } else if (record.get(3).asBoolean()) {
                batch.appendKRaftVersionMessage(time.milliseconds(),
                    new KRaftVersionRecord().setKRaftVersion((short) (dynamic ? 1 : 0)));
            } else {
                batch.appendLeaderChangeMessage(time.milliseconds(), new LeaderChangeMessage().setLeaderId(1));
            }
            offset++;
        }
        batch.close();
        out.flip();
        return MemoryRecords.readableRecords(out);
    }

    private static List<List<Object>> records(Records records) {
        List<List<Object>> out = new ArrayList<>();
        for (RecordBatch batch : records.batches()) {
            boolean joined = false;
            for (Record record : batch) {
                String value = null;
                List<Integer> voters = null;
                if (!batch.isControlBatch()) {
                    value = StandardCharsets.UTF_8.decode(record.value()).toString();
                } else if (ControlRecordType.parse(record.key()) == ControlRecordType.KRAFT_VOTERS) {
                    voters = ids(ControlRecordUtils.deserializeVotersRecord(record));
                }
                out.add(Arrays.asList(batch.partitionLeaderEpoch(), value, voters, joined));
                joined = true;
            }
        }
        return out;
    }

    // ---- what is seen

    @Override
    public Object observe() throws Exception {
        if (last != null) {
            return last;
        }
        QuorumState quorum = client.quorum();
        Map<String, Object> s = new LinkedHashMap<>();
        s.put("role", role(quorum));
        s.put("epoch", quorum.epoch());
        s.put("leader", quorum.leaderId().isPresent() ? quorum.leaderId().getAsInt() : null);
        s.put("voted", quorum.votedKey().map(ReplicaKey::id).orElse(null));
        boolean stands = quorum.isProspective() || quorum.isCandidate();
        s.put("granted", stands ? sorted(quorum.nomineeStateOrThrow().epochElection().grantingVoters()) : List.of());
        s.put("rejected", stands ? sorted(quorum.nomineeStateOrThrow().epochElection().rejectingVoters()) : List.of());
        s.put("hasFetched", quorum.isFollower()
            && PrivateField.of(FollowerState.class, "hasFetchedFromLeader").<Boolean>read(quorum.followerStateOrThrow()));
        long start = log.startOffset();
        long end = log.endOffset().offset();
        s.put("logStartOffset", start);
        s.put("logEndOffset", end);
        s.put("lastFetchedEpoch", log.lastFetchedEpoch());
        s.put("records", records(log.read(start, Isolation.UNCOMMITTED, Integer.MAX_VALUE).records));
        List<Object> snapshots = new ArrayList<>();
        for (OffsetAndEpoch id : PrivateField.of(KafkaRaftLog.class, "snapshots").<Map<OffsetAndEpoch, ?>>read(log).keySet()) {
            snapshots.add(List.of(id.offset(), id.epoch()));
        }
        s.put("snapshots", snapshots);
        s.put("fetchingSnapshot", quorum.isFollower() ? quorum.followerStateOrThrow().fetchingSnapshot()
            .map(w -> List.of(w.snapshotId().offset(), w.snapshotId().epoch())).orElse(null) : null);
        OptionalLong high = client.highWatermark();
        s.put("highWatermark", high.isPresent() ? high.getAsLong() : null);
        s.put("logHighWatermark", log.highWatermark().offset());
        s.put("voters", sorted(partition.lastVoterSet().voterIds()));
        leader(quorum, s);
        s.put("told", heard.events);
        return s;
    }

    private static List<Integer> sorted(Set<Integer> ids) {
        return ids.stream().sorted().toList();
    }

    private static String role(QuorumState quorum) {
        return quorum.isLeader() ? "leader" : quorum.isFollower() ? "follower" : quorum.isCandidate() ? "candidate"
            : quorum.isProspective() ? "prospective" : quorum.isResigned() ? "resigned" : "unattached";
    }

    private void leader(QuorumState quorum, Map<String, Object> s) throws ReflectiveOperationException {
        Map<String, Object> ends = new TreeMap<>();
        Set<Integer> caughtUp = new TreeSet<>();
        Set<Integer> fetched = Set.of();
        Long begun = null;
        long prepared = 0;
        if (quorum.isLeader()) {
            LeaderState<String> state = quorum.leaderStateOrThrow();
            begun = state.epochStartOffset();
            List<LeaderState.ReplicaState> all = new ArrayList<>(state.voterStates().values());
            all.addAll(PrivateField.of(LeaderState.class, "observerStates")
                .<Map<ReplicaKey, LeaderState.ReplicaState>>read(state).values());
            for (LeaderState.ReplicaState replica : all) {
                int id = replica.replicaKey().id();
                if (id != LOCAL && replica.endOffset().isPresent()) {
                    ends.put(Integer.toString(id), replica.endOffset().get().offset());
                    if (replica.lastCaughtUpTimestamp() > 0) {
                        caughtUp.add(id);
                    }
                }
            }
            fetched = PrivateField.of(LeaderState.class, "fetchedVoters").read(state);
            prepared = PrivateField.of(BatchAccumulator.class, "nextOffset").<Long>read(state.accumulator())
                - log.endOffset().offset();
        }
        s.put("epochStartOffset", begun);
        s.put("ends", ends);
        s.put("caughtUp", List.copyOf(caughtUp));
        s.put("heard", sorted(fetched));
        s.put("prepared", prepared);
    }
}
