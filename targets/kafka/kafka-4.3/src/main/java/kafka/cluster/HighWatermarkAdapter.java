package kafka.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import kafka.log.LogManager;
import kafka.server.BlockingSend;
import kafka.server.DefaultAlterPartitionManager;
import kafka.server.FailedPartitions;
import kafka.server.InitialFetchState;
import kafka.server.KafkaConfig;
import kafka.server.LocalLeaderEndPoint;
import kafka.server.QuotaFactory;
import kafka.server.RemoteLeaderEndPoint;
import kafka.server.ReplicaAlterLogDirsManager;
import kafka.server.ReplicaAlterLogDirsThread;
import kafka.server.ReplicaFetcherThread;
import kafka.server.ReplicaManager;
import kafka.server.ReplicationQuotaManager;
import kafka.server.builders.LogManagerBuilder;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.Scratch;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.FetchSessionHandler;
import org.apache.kafka.clients.NodeApiVersions;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.message.AlterPartitionRequestData;
import org.apache.kafka.common.message.AlterPartitionResponseData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AlterPartitionRequest;
import org.apache.kafka.common.requests.AlterPartitionResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.ClusterImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.LogDeleteRecordsResult;
import org.apache.kafka.server.PartitionFetchState;
import org.apache.kafka.server.common.ControllerRequestCompletionHandler;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.NodeToControllerChannelManager;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.network.BrokerEndPoint;
import org.apache.kafka.server.partition.AlterPartitionListener;
import org.apache.kafka.server.partition.PartitionState;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.replica.Replica;
import org.apache.kafka.server.replica.ReplicaState;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpoints;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LeaderHwChange;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogReadInfo;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

/**
 * A {@link Partition} over a real log, with the {@link DefaultAlterPartitionManager} that sends its requests, the
 * {@link KRaftMetadataCache} that it asks about brokers, and a {@link ReplicaFetcherThread}, which is not started, over a
 * {@link RemoteLeaderEndPoint}. A move to another log directory is the {@link ReplicaManager}'s, over a
 * {@link LogManager} of three directories, with a {@link ReplicaAlterLogDirsThread} that is not started either.
 *
 * <p>What the adapter adds: the clock; the two channels, to the controller and to the leader, whose answers are the
 * caller's; records, each a batch of its own, so that {@code appendRecordsToLeader} of several is as many appends; of a
 * fetch the offset behind the last record that came; the error of an answer with an error code, thrown. A new leader
 * epoch gives a follower a new fetcher, also where nobody leads, and its first fetch gets no answer: what a fetcher does
 * before it fetches is done then. What the controller says is told to the thread that moves the replica behind that. A
 * request that the controller note a directory takes the place of the one before, and what its callback throws is
 * ignored, as by the AssignmentsManager.
 */
public final class HighWatermarkAdapter implements Adapter {
    private static final int LOCAL = 1;
    private static final TopicPartition PARTITION = new TopicPartition("t", 0);
    private static final Uuid TOPIC = new Uuid(1, 1);
    private static final int BYTES = 1 << 26;
    private static final int DIRECTORIES = 3;
    private static final String DELETION = "kafka-delete-logs";
    private static final ScheduledThreadPoolExecutor NEVER = new ScheduledThreadPoolExecutor(0);
    private static final OffsetCheckpoints NO_CHECKPOINT = (dir, partition) -> Optional.empty();
    private static final AlterPartitionListener NOBODY = new AlterPartitionListener() {
        @Override
        public void markIsrExpand() {
        }

        @Override
        public void markIsrShrink() {
        }

        @Override
        public void markFailed() {
        }
    };

    private final Scratch scratch = new Scratch("high-watermark");
    private final Time clock = new Clock(() -> this.now);
    private final Channel controller = new Channel();
    private final Leader leader = new Leader();
    private final TreeMap<Integer, BrokerRegistration> brokers = new TreeMap<>();
    private final KRaftMetadataCache metadata = new KRaftMetadataCache(LOCAL, () -> KRaftVersion.LATEST_PRODUCTION);
    private final AtOnce scheduler = new AtOnce();
    private final KafkaConfig config;
    private final LogManager logs;
    private final ReplicaManager replicas;
    private long now;
    private long brokerEpoch;
    private int minInsyncReplicas;
    private final List<File> dirs = new ArrayList<>();
    private final Assignments assignments = new Assignments();
    private boolean isWanted;
    private Partition partition;
    private RemoteLeaderEndPoint endPoint;
    private ReplicaFetcherThread fetcher;

    public HighWatermarkAdapter() throws IOException {
        for (int n = 1; n <= DIRECTORIES; n++) {
            File dir = Files.createDirectories(scratch.root().resolve("logs" + n)).toFile();
            dirs.add(dir);
            Files.writeString(dir.toPath().resolve("meta.properties"), "version=1\ncluster.id=c\nnode.id=" + LOCAL
                + "\ndirectory.id=" + directory(n) + "\n");
        }
        Properties properties = new Properties();
        properties.putAll(Map.of("process.roles", "broker", "node.id", Integer.toString(LOCAL), "controller.quorum.voters",
            "9@localhost:9093", "controller.listener.names", "CONTROLLER", "listeners", "PLAINTEXT://localhost:9092",
            "replica.fetch.backoff.ms", "0", "log.dirs",
            String.join(",", dirs.stream().map(File::getPath).toList())));
        config = KafkaConfig.fromProps(properties);
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        BrokerTopicStats stats = new BrokerTopicStats();
        LogConfig defaults = new LogConfig(Map.of("retention.ms", -1, "retention.bytes", -1, "segment.index.bytes", 1200,
            "index.interval.bytes", 1 << 20, "file.delete.delay.ms", 0, "segment.ms", Long.MAX_VALUE));
        logs = new LogManagerBuilder().setLogDirs(dirs).setConfigRepository(this::configured)
            .setInitialDefaultConfig(defaults).setCleanerConfig(new CleanerConfig(false)).setScheduler(scheduler)
            .setBrokerTopicStats(stats).setLogDirFailureChannel(failures).setTime(clock).build();
        logs.startup(CollectionConverters.asScala(java.util.Set.<String>of()), log -> false);
        Metrics metrics = new Metrics();
        replicas = new ReplicaManager(config, metrics, clock, scheduler, logs, Option.empty(),
            QuotaFactory.instantiate(config, metrics, clock, "", ""), metadata, failures, alterPartitions(), stats,
            purgatory(), purgatory(), purgatory(), purgatory(), purgatory(), purgatory(), () -> brokerEpoch, Option.empty(),
            assignments, new DelayedActionQueue()) {
            @Override
            public ReplicaAlterLogDirsManager createReplicaAlterLogDirsManager(ReplicationQuotaManager quota,
                                                                              BrokerTopicStats stats) {
                return movers(this, quota, stats);
            }
        };
    }

    /** Their threads do what they are told to, and never start. */
    private ReplicaAlterLogDirsManager movers(ReplicaManager of, ReplicationQuotaManager quota, BrokerTopicStats stats) {
        return new ReplicaAlterLogDirsManager(config, of, quota, stats, assignments) {
            @Override
            public ReplicaAlterLogDirsThread createFetcherThread(int id, BrokerEndPoint source) {
                return new ReplicaAlterLogDirsThread("mover", new LocalLeaderEndPoint(source, config, of, quota),
                    failedPartitions(), of, quota, stats, 0, assignments) {
                    @Override
                    public void start() {
                    }
                };
            }
        };
    }

    /** The requests that the controller note where this replica is: the last one, until it is answered. */
    private static final class Assignments implements DirectoryEventHandler {
        private Uuid directory;
        private Runnable callback;

        @Override
        public void handleAssignment(org.apache.kafka.server.common.TopicIdPartition of, Uuid directoryId, String reason,
                                     Runnable done) {
            directory = directoryId;
            callback = done;
        }

        @Override
        public void handleFailure(Uuid directoryId) {
            throw new AdapterFailure("a log directory has failed");
        }

        @Override
        public void handleCordoned(java.util.Set<Uuid> directoryIds) {
        }

        void forget() {
            directory = null;
            callback = null;
        }

        void succeed() {
            Runnable done = callback;
            forget();
            try {
                done.run();
            } catch (NullPointerException e) {
                // no replica is moved any more
            }
        }
    }

    private static Uuid directory(int n) {
        return new Uuid(2, n);
    }

    private Properties configured(ConfigResource resource) {
        Properties properties = new Properties();
        properties.put("min.insync.replicas", Integer.toString(minInsyncReplicas));
        return properties;
    }

    private DefaultAlterPartitionManager alterPartitions() {
        return new DefaultAlterPartitionManager(controller, scheduler, clock, LOCAL, () -> brokerEpoch);
    }

    /** Where nobody waits. */
    private static <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory() {
        return new Some<>(new DelayedOperationPurgatory<>("none", new SystemTimer("none"), LOCAL, 1000, false, false));
    }

    /** What is to be done once is done; the logs of earlier histories are deleted when that is asked for. */
    private static final class AtOnce implements Scheduler {
        private Runnable deletion = () -> { };

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (name.equals(DELETION)) {
                deletion = task;
            } else if (periodMs < 0) {
                task.run();
            }
            return NEVER.schedule(() -> { }, Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }

    /** The way to the controller: one request that is not answered. */
    private static final class Channel implements NodeToControllerChannelManager {
        private AlterPartitionRequestData.PartitionData sent;
        private ControllerRequestCompletionHandler waits;

        @Override
        public void start() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public Optional<NodeApiVersions> controllerApiVersions() {
            return Optional.empty();
        }

        @Override
        public void sendRequest(AbstractRequest.Builder<? extends AbstractRequest> request,
                                ControllerRequestCompletionHandler handler) {
            if (waits != null) {
                throw new AdapterFailure("a second request before the first is answered");
            }
            AlterPartitionRequestData data = ((AlterPartitionRequest) request.build()).data();
            sent = data.topics().get(0).partitions().get(0);
            waits = handler;
        }

        @Override
        public long getTimeoutMs() {
            return Long.MAX_VALUE;
        }

        void answer(AlterPartitionResponseData.PartitionData partition) {
            AlterPartitionResponseData data = new AlterPartitionResponseData();
            data.topics().add(new AlterPartitionResponseData.TopicData().setTopicId(TOPIC)
                .setPartitions(List.of(partition.setPartitionIndex(PARTITION.partition()))));
            ControllerRequestCompletionHandler handler = waits;
            waits = null;
            sent = null;
            handler.onComplete(response(ApiKeys.ALTER_PARTITION, new AlterPartitionResponse(data)));
        }
    }

    /** The way to the leader: an answer to a fetch, and where the leader's log begins and ends. */
    private static final class Leader implements BlockingSend {
        private FetchResponseData.PartitionData answer;
        private long start;
        private long end;

        @Override
        public BrokerEndPoint brokerEndPoint() {
            return new BrokerEndPoint(2, "localhost", 9092);
        }

        @Override
        public ClientResponse sendRequest(AbstractRequest.Builder<? extends AbstractRequest> request) {
            if (request instanceof ListOffsetsRequest.Builder) {
                ListOffsetsRequest asked = (ListOffsetsRequest) request.build();
                boolean latest = asked.data().topics().get(0).partitions().get(0).timestamp()
                    == ListOffsetsRequest.LATEST_TIMESTAMP;
                return response(ApiKeys.LIST_OFFSETS, new ListOffsetsResponse(new ListOffsetsResponseData().setTopics(List.of(
                    new ListOffsetsResponseData.ListOffsetsTopicResponse().setName(PARTITION.topic()).setPartitions(List.of(
                        new ListOffsetsResponseData.ListOffsetsPartitionResponse()
                            .setPartitionIndex(PARTITION.partition()).setOffset(latest ? end : start)))))));
            }
            if (answer == null) {
                throw new IllegalStateException("no answer");
            }
            LinkedHashMap<TopicIdPartition, FetchResponseData.PartitionData> data = new LinkedHashMap<>();
            data.put(new TopicIdPartition(TOPIC, PARTITION), answer.setPartitionIndex(PARTITION.partition()));
            return response(ApiKeys.FETCH, FetchResponse.of(Errors.NONE, 0, 0, data, List.of()));
        }

        @Override
        public void initiateClose() {
        }

        @Override
        public void close() {
        }
    }

    private static ClientResponse response(ApiKeys key, AbstractResponse body) {
        return new ClientResponse(new RequestHeader(key, key.latestVersion(), "", 0), null, "", 0, 0, false, null, null, body);
    }

    @Override
    public void init(JsonNode a) throws Exception {
        letGo();
        now = a.path("now").asLong(1_000_000);
        brokerEpoch = a.path("brokerEpoch").asLong(101);
        minInsyncReplicas = a.path("minInsyncReplicas").asInt(1);
        controller.waits = null;
        controller.sent = null;
        brokers.clear();
        DelayedOperations delayed = new DelayedOperations(new Some<>(TOPIC), PARTITION, replicas.delayedProducePurgatory(),
            replicas.delayedFetchPurgatory(), replicas.delayedDeleteRecordsPurgatory(), replicas.delayedShareFetchPurgatory());
        partition = new Partition(PARTITION, a.path("replicaLagTimeMaxMs").asLong(30_000), LOCAL, () -> brokerEpoch, clock,
            NOBODY, delayed, metadata, logs, alterPartitions(), Option.empty());
        replicas.addOnlinePartition(PARTITION, partition);
        int followers = a.path("followers").asInt(0);
        int[] ids = new int[followers + 1];
        ids[0] = LOCAL;
        for (int n = 1; n <= followers; n++) {
            ids[n] = n + 1;
            register(n + 1, 12, false, false);
        }
        tellBrokers();
        if (followers > 0) {
            makeLeader(1, 1, ids, ids, LeaderRecoveryState.RECOVERED);
        }
    }

    private void letGo() {
        if (isWanted && partition.log().isEmpty()) {
            partition.createLogIfNotExists(false, false, NO_CHECKPOINT, new Some<>(TOPIC), Option.empty());
        }
        isWanted = false;
        if (partition != null && partition.log().isDefined()) {
            replicas.replicaAlterLogDirsManager().removeFetcherForPartitions(only(PARTITION));
            if (partition.futureLog().isDefined()) {
                partition.removeFutureLocalReplica(true);
            }
            logs.asyncDelete(PARTITION, false, false, false);
            scheduler.deletion.run();
        }
        assignments.forget();
        endFetcher();
    }

    private static <T> scala.collection.Set<T> only(T member) {
        return CollectionConverters.asScala(java.util.Set.of(member));
    }

    /** The replica manager tells the thread that moves the replica. */
    private void toldMover() {
        replicas.maybeAddLogDirFetchers(only(partition).toSet(), NO_CHECKPOINT, topic -> new Some<>(TOPIC));
    }

    private ReplicaAlterLogDirsThread mover() {
        return OptionConverters.toJava(replicas.replicaAlterLogDirsManager().getFetcher(PARTITION))
            .orElseThrow(() -> new IllegalStateException("the future replica has failed"));
    }

    private void endFetcher() {
        if (fetcher != null) {
            fetcher.fetcherStats().unregister();
            fetcher.fetcherLagStats().unregister();
            fetcher = null;
        }
    }

    private void register(int id, long epoch, boolean fenced, boolean shuttingDown) {
        brokers.put(id, new BrokerRegistration.Builder().setId(id).setEpoch(epoch).setIncarnationId(new Uuid(0, 1))
            .setListeners(List.of()).setFenced(fenced).setInControlledShutdown(shuttingDown).build());
    }

    private void tellBrokers() {
        MetadataImage none = MetadataImage.EMPTY;
        metadata.setImage(new MetadataImage(none.provenance(), none.features(), new ClusterImage(Map.copyOf(brokers), Map.of()),
            none.topics(), none.configs(), none.clientQuotas(), none.producerIds(), none.acls(), none.scram(),
            none.delegationTokens()));
    }

    private boolean makeLeader(int leaderEpoch, int partitionEpoch, int[] ids, int[] isr, LeaderRecoveryState recovery) {
        boolean first = partition.makeLeader(registered(LOCAL, leaderEpoch, partitionEpoch, ids, isr, recovery), false,
            NO_CHECKPOINT, new Some<>(TOPIC), new Some<>(directory(1)));
        if (partition.isLeader()) {
            endFetcher();
        }
        toldMover();
        return first;
    }

    private boolean makeFollower(int of, int leaderEpoch, int partitionEpoch, LeaderRecoveryState recovery) {
        boolean fetches = partition.makeFollower(registered(of, leaderEpoch, partitionEpoch, new int[] {LOCAL, 2},
            new int[] {LOCAL, 2}, recovery), false, NO_CHECKPOINT, new Some<>(TOPIC), new Some<>(directory(1)));
        if (fetches) {
            endFetcher();
            endPoint = new RemoteLeaderEndPoint("", leader, new FetchSessionHandler(new LogContext(), 2), config, replicas,
                QuotaFactory.UNBOUNDED_QUOTA, () -> MetadataVersion.LATEST_PRODUCTION, () -> brokerEpoch);
            fetcher = new ReplicaFetcherThread("fetcher", endPoint, config, new FailedPartitions(), replicas,
                QuotaFactory.UNBOUNDED_QUOTA, "");
            long from = replicas.initialFetchOffset(partition.localLogOrException());
            fetcher.addPartitions(CollectionConverters.asScala(Map.of(PARTITION,
                new InitialFetchState(new Some<>(TOPIC), leader.brokerEndPoint(), leaderEpoch, from))));
            fetched(null);
        }
        toldMover();
        return fetches;
    }

    private static PartitionRegistration registered(int leader, int leaderEpoch, int partitionEpoch, int[] ids, int[] isr,
                                                    LeaderRecoveryState recovery) {
        List<Uuid> directories = new ArrayList<>();
        for (int n = 0; n < ids.length; n++) {
            directories.add(directory(n + 1));
        }
        return new PartitionRegistration(new PartitionRecord().setTopicId(TOPIC).setPartitionId(PARTITION.partition())
            .setLeader(leader).setLeaderEpoch(leaderEpoch).setPartitionEpoch(partitionEpoch).setReplicas(list(ids))
            .setIsr(list(isr)).setDirectories(directories).setLeaderRecoveryState(recovery.value()));
    }

    /** One round of the fetcher, with this answer to its fetch; null for none. */
    private void fetched(FetchResponseData.PartitionData answer) {
        leader.answer = answer;
        fetcher.doWork();
        fetchState();
    }

    private PartitionFetchState fetchState() {
        return OptionConverters.toJava(fetcher.fetchState(PARTITION))
            .orElseThrow(() -> new IllegalStateException("the partition has failed"));
    }

    private static FetchResponseData.PartitionData answer() {
        return new FetchResponseData.PartitionData().setRecords(MemoryRecords.EMPTY);
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        switch (op) {
            case "updateBroker":
                register(a.get("id").asInt(), a.get("epoch").asLong(), a.get("fenced").asBoolean(),
                    a.get("shuttingDown").asBoolean());
                tellBrokers();
                return null;
            case "removeBroker":
                brokers.remove(a.get("id").asInt());
                tellBrokers();
                return null;
            case "advance":
                now += a.get("ms").asLong();
                return null;
            case "makeLeader":
                return makeLeader(a.get("leaderEpoch").asInt(), a.get("partitionEpoch").asInt(), ints(a.get("replicas")),
                    ints(a.get("isr")), recovery(a));
            case "makeFollower":
                return makeFollower(a.get("leader").asInt(), a.get("leaderEpoch").asInt(), a.get("partitionEpoch").asInt(),
                    recovery(a));
            case "appendRecordsToLeader":
                return appended(a.get("count").asInt(), a.get("requiredAcks").asInt());
            case "checkEnoughReplicasReachOffset": {
                Tuple2<Object, Errors> reached = partition.checkEnoughReplicasReachOffset(a.get("requiredOffset").asLong());
                ArrayList<Object> shown = new ArrayList<>();
                shown.add(reached._1());
                shown.add(reached._2() == Errors.NONE ? null : reached._2().name());
                return shown;
            }
            case "fetchRecords":
                return fetch(a, new FetchParams(a.get("replica").asInt(), a.get("brokerEpoch").asLong(), 0, 1, BYTES,
                    FetchIsolation.LOG_END, Optional.empty()), a.get("logStart").asLong());
            case "fetchRecordsOfConsumer":
                return fetch(a, new FetchParams(-1, -1, 0, 1, BYTES, FetchIsolation.HIGH_WATERMARK,
                    a.get("onlyLeader").asBoolean() ? Optional.empty() : Optional.of(new ClientMetadata.DefaultClientMetadata(
                        "", "", null, KafkaPrincipal.ANONYMOUS, ""))), -1);
            case "lastOffsetForLeaderEpoch": {
                EpochEndOffset found = partition.lastOffsetForLeaderEpoch(epoch(a, "currentLeaderEpoch"),
                    a.get("leaderEpoch").asInt(), a.get("onlyLeader").asBoolean());
                if (found.errorCode() != Errors.NONE.code()) {
                    throw Errors.forCode(found.errorCode()).exception();
                }
                return List.of(found.leaderEpoch(), found.endOffset());
            }
            case "latestOffset":
                return partition.fetchOffsetForTimestamp(ListOffsetsRequest.LATEST_TIMESTAMP, a.get("client").asBoolean()
                        ? new Some<>(IsolationLevel.READ_UNCOMMITTED) : Option.empty(), epoch(a, "currentLeaderEpoch"),
                    true, Option.empty()).timestampAndOffsetOpt().get().offset;
            case "maybeShrinkIsr":
                partition.maybeShrinkIsr();
                return null;
            case "alterPartitionSucceeded":
                controller.answer(new AlterPartitionResponseData.PartitionData().setLeaderId(LOCAL)
                    .setLeaderEpoch(a.get("leaderEpoch").asInt()).setPartitionEpoch(a.get("partitionEpoch").asInt())
                    .setIsr(list(ints(a.get("isr")))).setLeaderRecoveryState(LeaderRecoveryState.RECOVERED.value()));
                return null;
            case "alterPartitionFailed":
                controller.answer(new AlterPartitionResponseData.PartitionData()
                    .setErrorCode(Errors.valueOf(a.get("error").asText()).code()));
                return null;
            case "deleteRecordsOnLeader": {
                LogDeleteRecordsResult deleted = partition.deleteRecordsOnLeader(a.get("offset").asLong());
                return List.of(deleted.requestedOffset(), deleted.lowWatermark());
            }
            case "lowWatermarkIfLeader":
                return partition.lowWatermarkIfLeader();
            case "processPartitionData":
                fetched(answer().setRecords(batches(a.get("batches"))).setHighWatermark(a.get("highWatermark").asLong())
                    .setLogStartOffset(a.get("logStart").asLong()));
                return null;
            case "truncateOnFetchResponse":
                fetched(answer().setDivergingEpoch(new FetchResponseData.EpochEndOffset()
                    .setEpoch(a.get("epoch").asInt()).setEndOffset(a.get("endOffset").asLong())));
                return fetchState().fetchOffset();
            case "fetchOffsetAndTruncate":
                leader.start = a.get("leaderStart").asLong();
                leader.end = a.get("leaderEnd").asLong();
                fetched(answer().setErrorCode(Errors.OFFSET_OUT_OF_RANGE.code()));
                return fetchState().fetchOffset();
            case "alterReplicaLogDirs": {
                isWanted |= partition.log().isEmpty();
                Errors error = replicas.alterReplicaLogDirs(CollectionConverters.asScala(
                    Map.of(PARTITION, dirs.get(a.get("directory").asInt() - 1).getPath()))).apply(PARTITION);
                if (error != Errors.NONE) {
                    throw error.exception();
                }
                return null;
            }
            case "assignReplicasToDirsSucceeded":
                assignments.succeed();
                return null;
            case "fetchFromCurrentReplica":
                mover().doWork();
                return null;
            case "nextFetch": {
                FetchRequest.PartitionData next = endPoint.buildFetch(Map.of(PARTITION, fetchState())).result()
                    .orElseThrow(() -> new IllegalStateException("it does not fetch")).partitionData().get(PARTITION);
                ArrayList<Object> shown = new ArrayList<>();
                shown.add(next.currentLeaderEpoch.orElse(null));
                shown.add(next.lastFetchedEpoch.orElse(null));
                shown.add(next.fetchOffset);
                shown.add(next.logStartOffset);
                return shown;
            }
            default:
                throw new UnknownOperation(op);
        }
    }

    private List<Object> appended(int count, int acks) {
        long first = -1;
        long last = -1;
        boolean rose = false;
        for (int n = 0; n < count; n++) {
            long before = partition.localLogOrException().highWatermark();
            LogAppendInfo info = partition.appendRecordsToLeader(batch(0, -1), AppendOrigin.CLIENT, acks,
                RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
            first = n == 0 ? info.firstOffset() : first;
            last = info.lastOffset();
            // Kafka says so too of the same offset in a later segment, as after a move: nobody reads more then
            rose |= info.leaderHwChange() == LeaderHwChange.INCREASED
                && partition.localLogOrException().highWatermark() > before;
        }
        return List.of(first, last, rose);
    }

    private Map<String, Object> fetch(JsonNode a, FetchParams params, long logStart) {
        long offset = a.get("offset").asLong();
        LogReadInfo found = partition.fetchRecords(params, new FetchRequest.PartitionData(TOPIC, offset, logStart, BYTES,
            epoch(a, "currentLeaderEpoch"), epoch(a, "lastFetchedEpoch")), now, BYTES, true, true);
        long end = offset;
        for (RecordBatch batch : found.fetchedData().records.batches()) {
            end = batch.nextOffset();
        }
        List<Object> diverging = found.divergingEpoch().map(e -> List.<Object>of(e.epoch(), e.endOffset())).orElse(null);
        return object("diverging", diverging, "end", diverging == null ? end : null, "highWatermark", found.highWatermark(),
            "logStart", found.logStartOffset(), "logEnd", found.logEndOffset());
    }

    // ---- records
    private MemoryRecords batches(JsonNode batches) {
        ByteBufferOutputStream bytes = new ByteBufferOutputStream(512);
        long end = partition.localLogOrException().logEndOffset();
        for (JsonNode b : batches) {
            for (int n = 0; n < b.get(1).asInt(); n++) {
                bytes.write(batch(end++, b.get(0).asInt()).buffer());
            }
        }
        ByteBuffer all = bytes.buffer();
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    private MemoryRecords batch(long offset, int leaderEpoch) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(128), RecordBatch.CURRENT_MAGIC_VALUE,
            Compression.NONE, TimestampType.CREATE_TIME, offset, RecordBatch.NO_TIMESTAMP, -1, (short) -1, -1, false,
            leaderEpoch);
        builder.append(now, null, new byte[] {'v'});
        return builder.build();
    }

    // ---- what is shown
    @Override
    public Object observe() {
        UnifiedLog log = OptionConverters.toJava(partition.log()).orElse(null);
        PartitionState state = partition.partitionState();
        List<Object> followers = new ArrayList<>();
        CollectionConverters.asJava(partition.remoteReplicas().toSeq()).stream()
            .sorted(Comparator.comparingInt(Replica::brokerId)).forEach(replica -> {
                ReplicaState of = replica.stateSnapshot();
                followers.add(object("id", replica.brokerId(), "logEnd", of.logEndOffset(), "logStart", of.logStartOffset(),
                    "lastFetchLeaderEnd", of.lastFetchLeaderLogEndOffset(), "lastFetchMs", of.lastFetchTimeMs(),
                    "lastCaughtUpMs", of.lastCaughtUpTimeMs(), "brokerEpoch", of.brokerEpoch().orElse(null)));
            });
        List<Object> epochs = log == null ? List.of() : epochs(log);
        Map<String, Object> shown = object("leader", OptionConverters.toJava(partition.leaderReplicaIdOpt()).orElse(null),
            "leaderEpoch", partition.getLeaderEpoch(), "partitionEpoch", partition.getPartitionEpoch(),
            "epochStart", OptionConverters.toJava(partition.leaderEpochStartOffsetOpt()).orElse(null),
            "isr", state.isr().stream().sorted().toList(), "maximalIsr", state.maximalIsr().stream().sorted().toList(),
            "recovering", state.leaderRecoveryState() == LeaderRecoveryState.RECOVERING, "inFlight", inFlight(),
            "isPending", state.isInflight(), "followers", followers, "logStart", log == null ? 0 : log.logStartOffset(),
            "logEnd", log == null ? 0 : log.logEndOffset(), "highWatermark", log == null ? 0 : log.highWatermark(),
            "epochs", epochs);
        shown.put("directory", log == null ? null : directoryOf(log));
        shown.put("future", partition.futureLog().isDefined() ? future(partition.futureLog().get()) : null);
        shown.put("assignment",
            assignments.directory == null ? null : (int) assignments.directory.getLeastSignificantBits());
        return shown;
    }

    private static List<Object> epochs(UnifiedLog log) {
        List<Object> epochs = new ArrayList<>();
        log.leaderEpochCache().epochEntries().forEach(entry -> epochs.add(List.of(entry.epoch(), entry.startOffset())));
        return epochs;
    }

    private int directoryOf(UnifiedLog log) {
        return dirs.stream().map(File::getPath).toList().indexOf(log.parentDir()) + 1;
    }

    private Map<String, Object> future(UnifiedLog log) {
        ReplicaAlterLogDirsThread mover = mover();
        PartitionFetchState fetches = OptionConverters.toJava(mover.fetchState(PARTITION)).orElseThrow();
        return object("directory", directoryOf(log), "leaderEpoch", fetches.currentLeaderEpoch(), "log",
            object("logStart", log.logStartOffset(), "logEnd", log.logEndOffset(), "highWatermark", log.highWatermark(),
                "epochs", epochs(log)),
            "offset", fetches.fetchOffset(), "isTruncating", fetches.isTruncating(), "reassignment",
            mover.promotionStates().get(PARTITION).reassignmentState().toString().toUpperCase(java.util.Locale.ROOT));
    }

    private Map<String, Object> inFlight() {
        AlterPartitionRequestData.PartitionData sent = controller.sent;
        if (sent == null) {
            return null;
        }
        List<Object> isr = new ArrayList<>();
        sent.newIsrWithEpochs().stream().sorted(Comparator.comparingInt(AlterPartitionRequestData.BrokerState::brokerId))
            .forEach(member -> isr.add(List.of(member.brokerId(), member.brokerEpoch())));
        return object("leaderEpoch", sent.leaderEpoch(), "partitionEpoch", sent.partitionEpoch(), "isr", isr,
            "leaderRecoveryState", LeaderRecoveryState.of(sent.leaderRecoveryState()).name());
    }

    // ---- arguments
    private static Optional<Integer> epoch(JsonNode a, String name) {
        return a.get(name).isNull() ? Optional.empty() : Optional.of(a.get(name).asInt());
    }

    private static LeaderRecoveryState recovery(JsonNode a) {
        return LeaderRecoveryState.valueOf(a.get("leaderRecoveryState").asText());
    }

    private static int[] ints(JsonNode array) {
        int[] out = new int[array.size()];
        for (int n = 0; n < out.length; n++) {
            out[n] = array.get(n).asInt();
        }
        return out;
    }

    private static List<Integer> list(int[] ids) {
        List<Integer> out = new ArrayList<>();
        for (int id : ids) {
            out.add(id);
        }
        return out;
    }

    private static Map<String, Object> object(Object... pairs) {
        Map<String, Object> out = new LinkedHashMap<>();
        for (int n = 0; n < pairs.length; n += 2) {
            out.put((String) pairs[n], pairs[n + 1]);
        }
        return out;
    }

    @Override
    public String masked(String message) {
        return null; // Kafka's messages name partitions, epochs and offsets: the class alone is compared
    }

    @Override
    public void close() throws IOException {
        letGo();
        scratch.close();
    }
}
