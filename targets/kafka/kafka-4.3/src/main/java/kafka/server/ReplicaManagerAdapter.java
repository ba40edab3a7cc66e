package kafka.server;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.builders.LogManagerBuilder;
import kafkaspec.target.Adapter;
import kafkaspec.target.Clock;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.OperationNotAttemptedException;
import org.apache.kafka.common.message.DeleteRecordsResponseData.DeleteRecordsPartitionResult;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.ClusterImage;
import org.apache.kafka.image.FeaturesImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.TopicsDelta;
import org.apache.kafka.image.TopicsImage;
import org.apache.kafka.metadata.BrokerRegistration;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.server.DelayedActionQueue;
import org.apache.kafka.server.HostedPartition;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.purgatory.DelayedOperation;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;
import scala.runtime.BoxedUnit;

/**
 * A {@link ReplicaManager} over real logs in two directories, with a {@link KRaftMetadataCache}, {@link TopicsDelta}s
 * made of the controller's records, and purgatories without threads.
 *
 * <p>What the adapter adds: the clock, and the timers of the purgatories, which go by it; the controller's answers to
 * requests for other in-sync replicas, of which there is one a partition at a time; records, of one byte; and the action
 * queue, which is emptied behind an append as a request handler does. Brokers have no addresses, so that nobody fetches
 * from them.
 */
public final class ReplicaManagerAdapter implements Adapter {
    private static final int LOCAL = 1;
    private static final long EPOCH = 101;
    private static final long FIRST_LIFE = 12;
    private static final int BYTES = 1 << 26;
    private static final Uuid CLUSTER = new Uuid(3, 1);
    private static final ScheduledThreadPoolExecutor NEVER = new ScheduledThreadPoolExecutor(0);
    private static final Clients READER = new Clients();

    private final Scratch scratch = new Scratch("replica-manager");
    private final Time clock = new Clock(() -> this.now);
    private final List<JudgeTimer> timers = new ArrayList<>();
    private final TreeSet<String> topics = new TreeSet<>();
    private final TreeMap<Integer, BrokerRegistration> brokers = new TreeMap<>();
    private final List<File> directories = new ArrayList<>();
    private final TreeSet<Integer> failed = new TreeSet<>();
    private KRaftMetadataCache metadata;
    private TopicsImage image = TopicsImage.EMPTY;
    private Controller controller;
    private Periodic scheduler;
    private LogManager logs;
    private ReplicaManager replicas;
    private long now;
    private int minInsyncReplicas;
    private int requests;
    private Answers answers = new Answers();

    /** Whoever reads from the nearest replica. */
    private static final class Clients {
        private final ClientMetadata metadata = new ClientMetadata.DefaultClientMetadata("", "", null, KafkaPrincipal.ANONYMOUS, "");
    }

    /** What was answered in this call, by the numbers of the requests. */
    private static final class Answers {
        private final TreeMap<Integer, Object> produced = new TreeMap<>();
        private final TreeMap<Integer, Object> fetched = new TreeMap<>();
        private final TreeMap<Integer, Object> deleted = new TreeMap<>();

        static void put(TreeMap<Integer, Object> into, int id, Object answer) {
            if (into.put(id, List.of(id, answer)) != null) {
                throw new AdapterFailure("request " + id + " has two answers");
            }
        }

        Object shown() {
            return object("produced", List.copyOf(produced.values()), "fetched", List.copyOf(fetched.values()), "deleted",
                List.copyOf(deleted.values()));
        }
    }

    /** What is due runs in the order of its time, when the judge's clock has passed it. */
    private final class JudgeTimer implements Timer {
        private final List<TimerTaskEntry> entries = new ArrayList<>();

        @Override
        public void add(TimerTask task) {
            entries.add(new TimerTaskEntry(task, now + task.delayMs));
            expire();
        }

        @Override
        public boolean advanceClock(long timeoutMs) {
            return false;
        }

        @Override
        public int size() {
            entries.removeIf(TimerTaskEntry::cancelled);
            return entries.size();
        }

        void expire() {
            entries.removeIf(TimerTaskEntry::cancelled);
            List<TimerTaskEntry> due = new ArrayList<>(entries.stream().filter(e -> e.expirationMs <= now).toList());
            due.sort(Comparator.comparingLong(e -> e.expirationMs));
            entries.removeAll(due);
            due.forEach(e -> e.timerTask.run());
        }

        @Override
        public void close() {
        }
    }

    /** What is to be done once is done; what again and again is kept until it is asked for. */
    private static final class Periodic implements Scheduler {
        private final Map<String, Runnable> tasks = new HashMap<>();

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs > 0 || name.equals("kafka-delete-logs")) {
                tasks.put(name, task);
            } else {
                task.run();
            }
            return NEVER.schedule(() -> { }, Long.MAX_VALUE, TimeUnit.NANOSECONDS);
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }

    /** The way to the controller: a request of a partition that is not answered. */
    private static final class Controller implements AlterPartitionManager {
        private record Request(LeaderAndIsr asked, CompletableFuture<LeaderAndIsr> answer) {
        }

        private final Map<org.apache.kafka.server.common.TopicIdPartition, Request> unanswered = new HashMap<>();

        @Override
        public void start() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public CompletableFuture<LeaderAndIsr> submit(org.apache.kafka.server.common.TopicIdPartition partition,
                                                      LeaderAndIsr asked) {
            CompletableFuture<LeaderAndIsr> answer = new CompletableFuture<>();
            if (unanswered.putIfAbsent(partition, new Request(asked, answer)) != null) {
                answer.completeExceptionally(new OperationNotAttemptedException("one is not answered"));
            }
            return answer;
        }

        void succeed(Uuid topic) {
            Request request = unanswered.remove(new org.apache.kafka.server.common.TopicIdPartition(topic, 0));
            LeaderAndIsr asked = request.asked;
            request.answer.complete(asked.withPartitionEpoch(asked.partitionEpoch() + 1));
        }
    }

    @Override
    public void init(JsonNode a) throws Exception {
        letGo();
        now = a.path("now").asLong(1_000_000);
        minInsyncReplicas = a.path("minInsyncReplicas").asInt(1);
        Path root = scratch.directory("broker");
        File[] made = {directory(root, "metadata"), directory(root, "0"), directory(root, "1")};
        directories.addAll(List.of(made).subList(1, 3));
        Properties properties = new Properties();
        properties.putAll(Map.of("process.roles", "broker", "node.id", Integer.toString(LOCAL), "controller.quorum.voters",
            "9@localhost:9093", "controller.listener.names", "CONTROLLER", "listeners", "PLAINTEXT://localhost:9092",
            "replica.fetch.wait.max.ms", "1",
            "metadata.log.dir", made[0].getPath(), "log.dirs", made[1] + "," + made[2], "replica.lag.time.max.ms",
            Long.toString(a.path("replicaLagTimeMaxMs").asLong(30_000))));
        KafkaConfig config = KafkaConfig.fromProps(properties);
        LogDirFailureChannel failures = new LogDirFailureChannel(3);
        BrokerTopicStats stats = new BrokerTopicStats();
        controller = new Controller();
        scheduler = new Periodic();
        metadata = new KRaftMetadataCache(LOCAL, () -> KRaftVersion.LATEST_PRODUCTION);
        LogConfig defaults = new LogConfig(Map.of("retention.ms", -1, "retention.bytes", -1, "segment.index.bytes", 1200,
            "index.interval.bytes", 1 << 20, "file.delete.delay.ms", 0, "segment.ms", Long.MAX_VALUE));
        logs = new LogManagerBuilder().setLogDirs(directories).setConfigRepository(this::configured)
            .setInitialDefaultConfig(defaults).setCleanerConfig(new CleanerConfig(false)).setScheduler(scheduler)
            .setBrokerTopicStats(stats).setLogDirFailureChannel(failures).setTime(clock).build();
        logs.startup(CollectionConverters.asScala(java.util.Set.<String>of()), log -> false);
        Metrics metrics = new Metrics();
        replicas = new ReplicaManager(config, metrics, clock, scheduler, logs, Option.empty(),
            QuotaFactory.instantiate(config, metrics, clock, "", ""), metadata, failures, controller, stats,
            purgatory("Produce"), purgatory("Fetch"), purgatory("DeleteRecords"), purgatory("RemoteFetch"),
            purgatory("RemoteListOffsets"), purgatory("ShareFetch"), () -> EPOCH, Option.empty(), DirectoryEventHandler.NOOP,
            new DelayedActionQueue());
        replicas.startup();
        register(2, false);
        register(3, false);
        tell();
    }

    private static File directory(Path root, String name) throws IOException {
        Path made = Files.createDirectories(root.resolve(name));
        Files.writeString(made.resolve("meta.properties"), "version=1\ncluster.id=" + CLUSTER + "\nnode.id=" + LOCAL
            + "\ndirectory.id=" + new Uuid(4, name.hashCode()) + "\n");
        return made.toFile();
    }

    private static Uuid directoryId(int n) {
        return new Uuid(4, Integer.toString(n).hashCode());
    }

    private Properties configured(ConfigResource resource) {
        Properties properties = new Properties();
        properties.put("min.insync.replicas", Integer.toString(minInsyncReplicas));
        return properties;
    }

    private <T extends DelayedOperation> Option<DelayedOperationPurgatory<T>> purgatory(String name) {
        JudgeTimer timer = new JudgeTimer();
        timers.add(timer);
        return new Some<>(new DelayedOperationPurgatory<>(name, timer, LOCAL, 1000, false, true));
    }

    private void letGo() throws IOException {
        if (replicas != null) {
            replicas.shutdown(false);
            endLogs();
            Scratch.delete(directories.get(0).toPath().getParent());
        }
        replicas = null;
        timers.clear();
        topics.clear();
        brokers.clear();
        directories.clear();
        failed.clear();
        image = TopicsImage.EMPTY;
        requests = 0;
    }

    private void endLogs() {
        try {
            logs.shutdown(EPOCH);
        } catch (Exception e) { // LogManager unlocks a directory that failed a second time: ClosedChannelException
            if (failed.isEmpty()) {
                throw new AdapterFailure("the logs do not end", e);
            }
        }
    }

    private void register(int id, boolean fenced) {
        brokers.put(id, new BrokerRegistration.Builder().setId(id).setEpoch(FIRST_LIFE).setIncarnationId(new Uuid(0, 1))
            .setListeners(List.of()).setFenced(fenced).setInControlledShutdown(false).build());
    }

    private MetadataImage tell() {
        MetadataImage none = MetadataImage.EMPTY;
        MetadataImage all = new MetadataImage(none.provenance(),
            new FeaturesImage(Map.of(), MetadataVersion.LATEST_PRODUCTION), new ClusterImage(Map.copyOf(brokers), Map.of()), image,
            none.configs(), none.clientQuotas(), none.producerIds(), none.acls(), none.scram(), none.delegationTokens());
        metadata.setImage(all);
        return all;
    }

    /** As the broker's metadata publisher does: the cache first. */
    private void publish(TopicsDelta delta) {
        image = delta.apply();
        replicas.applyDelta(delta, tell());
    }

    private static Uuid uuid(String topic, int id) {
        return new Uuid(topic.hashCode() + (1L << 40), id);
    }

    private static TopicPartition partition(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static TopicIdPartition partition(JsonNode entry) {
        String topic = entry.get(0).asText();
        int id = entry.get(1).asInt();
        return new TopicIdPartition(id == 0 ? Uuid.ZERO_UUID : uuid(topic, id), partition(topic));
    }

    @Override
    public Object apply(String op, JsonNode a) throws Throwable {
        answers = new Answers();
        switch (op) {
            case "updateBroker":
                register(a.get("id").asInt(), a.get("fenced").asBoolean());
                tell();
                return null;
            case "advance":
                now += a.get("ms").asLong();
                timers.forEach(JudgeTimer::expire);
                return answers.shown();
            case "applyDelta":
                applyDelta(a.get("record"));
                return answers.shown();
            case "deleteTopic": {
                TopicsDelta delta = new TopicsDelta(image);
                delta.replay(new RemoveTopicRecord().setTopicId(image.getTopic(a.get("topic").asText()).id()));
                publish(delta);
                scheduler.tasks.get("kafka-delete-logs").run();
                return answers.shown();
            }
            case "appendRecords":
                append(a);
                return answers.shown();
            case "fetchMessages":
                fetch(a);
                return answers.shown();
            case "deleteRecords":
                delete(a);
                return answers.shown();
            case "maybeShrinkIsr":
                scheduler.tasks.get("isr-expiration").run();
                return null;
            case "alterPartitionSucceeded":
                controller.succeed(image.getTopic(a.get("topic").asText()).id());
                return answers.shown();
            case "handleLogDirFailure":
                failed.add(a.get("directory").asInt());
                replicas.handleLogDirFailure(directories.get(a.get("directory").asInt()).getAbsolutePath(), true);
                return null;
            case "checkpointHighWatermarks":
                replicas.checkpointHighWatermarks();
                return checkpoints();
            default:
                throw new UnknownOperation(op);
        }
    }

    private void applyDelta(JsonNode record) {
        String topic = record.get(0).asText();
        Uuid id = uuid(topic, record.get(1).asInt());
        topics.add(topic);
        List<Integer> ids = list(record.get(5));
        List<Uuid> directories = new ArrayList<>();
        ids.forEach(broker -> directories.add(broker == LOCAL ? directoryId(record.get(7).asInt()) : new Uuid(5, broker)));
        TopicsDelta delta = new TopicsDelta(image);
        TopicImage known = image.getTopic(topic);
        boolean another = known != null && !known.id().equals(id);
        if (another) {
            delta.replay(new RemoveTopicRecord().setTopicId(known.id()));
        }
        if (known == null || another) {
            delta.replay(new TopicRecord().setName(topic).setTopicId(id));
        }
        delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(0).setLeader(record.get(2).asInt())
            .setLeaderEpoch(record.get(3).asInt()).setPartitionEpoch(record.get(4).asInt())
            .setReplicas(ids).setIsr(list(record.get(6))).setDirectories(directories)
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED.value()));
        publish(delta);
        scheduler.tasks.get("kafka-delete-logs").run();
    }

    private void append(JsonNode a) {
        int id = requests++;
        List<TopicIdPartition> order = new ArrayList<>();
        Map<TopicIdPartition, MemoryRecords> records = new LinkedHashMap<>();
        for (JsonNode entry : a.get("entries")) {
            order.add(partition(entry));
            records.put(partition(entry), record());
        }
        replicas.appendRecords(a.get("timeoutMs").asLong(), (short) a.get("requiredAcks").asInt(),
            a.get("internalTopicsAllowed").asBoolean(), AppendOrigin.CLIENT, CollectionConverters.asScala(records), response -> {
                List<Object> shown = new ArrayList<>();
                for (TopicIdPartition p : order) {
                    PartitionResponse of = response.get(p);
                    shown.add(row(p.topic(), name(of.error), of.baseOffset, of.logStartOffset));
                }
                Answers.put(answers.produced, id, shown);
                return BoxedUnit.UNIT;
            }, replicas.appendRecords$default$7(), RequestLocal.noCaching(), replicas.appendRecords$default$9(), (short) 0);
        replicas.tryCompleteActions();
    }

    private MemoryRecords record() {
        MemoryRecordsBuilder builder = MemoryRecords.builder(ByteBuffer.allocate(128), RecordBatch.CURRENT_MAGIC_VALUE,
            Compression.NONE, TimestampType.CREATE_TIME, 0, RecordBatch.NO_TIMESTAMP, -1, (short) -1, -1, false, -1);
        builder.append(now, null, new byte[] {'v'});
        return builder.build();
    }

    private void fetch(JsonNode a) {
        int id = requests++;
        int replica = a.get("replica").asInt();
        boolean nearest = replica < 0 && !a.get("onlyLeader").asBoolean();
        FetchParams params = new FetchParams(replica, a.get("brokerEpoch").asLong(), a.get("maxWaitMs").asLong(),
            a.get("minBytes").asInt(), BYTES, replica < 0 ? FetchIsolation.HIGH_WATERMARK : FetchIsolation.LOG_END,
            nearest ? Optional.of(READER.metadata) : Optional.empty());
        List<Tuple2<TopicIdPartition, FetchRequest.PartitionData>> parts = new ArrayList<>();
        Map<String, Long> offsets = new HashMap<>();
        for (JsonNode entry : a.get("entries")) {
            TopicIdPartition p = partition(entry);
            offsets.put(p.topic(), entry.get(4).asLong());
            parts.add(new Tuple2<>(p, new FetchRequest.PartitionData(p.topicId(), entry.get(4).asLong(), entry.get(5).asLong(),
                BYTES, epoch(entry.get(2)), epoch(entry.get(3)))));
        }
        replicas.fetchMessages(params, CollectionConverters.asScala(parts), QuotaFactory.UNBOUNDED_QUOTA, response -> {
            List<Object> shown = new ArrayList<>();
            for (Tuple2<TopicIdPartition, FetchPartitionData> part : CollectionConverters.asJava(response)) {
                FetchPartitionData of = part._2();
                long end = offsets.get(part._1().topic());
                for (RecordBatch batch : of.records.batches()) {
                    end = batch.nextOffset();
                }
                List<Object> diverging = of.divergingEpoch.map(e -> List.<Object>of(e.epoch(), e.endOffset())).orElse(null);
                boolean read = of.error == Errors.NONE && diverging == null;
                shown.add(row(part._1().topic(), name(of.error), diverging, read ? end : null, of.highWatermark,
                    of.logStartOffset));
            }
            Answers.put(answers.fetched, id, shown);
            return BoxedUnit.UNIT;
        });
    }

    private void delete(JsonNode a) {
        int id = requests++;
        Map<TopicPartition, Object> offsets = new LinkedHashMap<>();
        a.get("entries").forEach(entry -> offsets.put(partition(entry.get(0).asText()), entry.get(1).asLong()));
        replicas.deleteRecords(a.get("timeoutMs").asLong(), CollectionConverters.asScala(offsets), response -> {
            List<Object> shown = new ArrayList<>();
            for (TopicPartition p : offsets.keySet()) {
                DeleteRecordsPartitionResult of = response.apply(p);
                shown.add(row(p.topic(), name(Errors.forCode(of.errorCode())), of.lowWatermark()));
            }
            Answers.put(answers.deleted, id, shown);
            return BoxedUnit.UNIT;
        }, a.get("internalTopicsAllowed").asBoolean());
    }

    private List<Object> checkpoints() throws IOException {
        List<Object> shown = new ArrayList<>();
        for (int n = 0; n < directories.size(); n++) {
            if (failed.contains(n)) {
                continue;
            }
            File file = new File(directories.get(n), ReplicaManager.HighWatermarkFilename());
            List<Object> lines = new ArrayList<>();
            if (file.exists()) {
                new TreeMap<>(byTopic(new OffsetCheckpointFile(file, null).read())).forEach((t, o) -> lines.add(List.of(t, o)));
            }
            shown.add(List.of(n, lines));
        }
        return shown;
    }

    private static Map<String, Long> byTopic(Map<TopicPartition, Long> offsets) {
        Map<String, Long> out = new HashMap<>();
        offsets.forEach((p, offset) -> out.put(p.topic(), offset));
        return out;
    }

    // ---- what is shown
    @Override
    public Object observe() {
        List<Object> online = new ArrayList<>();
        List<Object> offline = new ArrayList<>();
        for (String topic : topics) {
            HostedPartition<Partition> hosted = replicas.getPartition(partition(topic));
            if (hosted instanceof HostedPartition.Online<Partition> here) {
                online.add(shown(topic, here.partition()));
            } else if (hosted instanceof HostedPartition.Offline) {
                offline.add(topic);
            }
        }
        return object("online", online, "offline", offline, "delayedProduce", replicas.delayedProducePurgatory().numDelayed(),
            "delayedFetch", replicas.delayedFetchPurgatory().numDelayed(),
            "delayedDelete", replicas.delayedDeleteRecordsPurgatory().numDelayed());
    }

    private static Object shown(String topic, Partition of) {
        UnifiedLog log = of.localLogOrException();
        return object("topic", topic, "topicId", OptionConverters.toJava(of.topicId()).orElseThrow().getLeastSignificantBits(),
            "leader", OptionConverters.toJava(of.leaderReplicaIdOpt()).orElse(null), "leaderEpoch", of.getLeaderEpoch(),
            "partitionEpoch", of.getPartitionEpoch(), "isr", sorted(of.partitionState().isr()),
            "maximalIsr", sorted(of.partitionState().maximalIsr()), "logStart", log.logStartOffset(),
            "logEnd", log.logEndOffset(), "highWatermark", log.highWatermark());
    }

    private static List<Integer> sorted(Collection<Integer> ids) {
        return ids.stream().sorted().toList();
    }

    private static String name(Errors error) {
        return error == Errors.NONE ? null : error.name();
    }

    private static Optional<Integer> epoch(JsonNode epoch) {
        return epoch.isNull() ? Optional.empty() : Optional.of(epoch.asInt());
    }

    private static List<Integer> list(JsonNode array) {
        List<Integer> out = new ArrayList<>();
        array.forEach(id -> out.add(id.asInt()));
        return out;
    }

    private static List<Object> row(Object... of) {
        return new ArrayList<>(java.util.Arrays.asList(of));
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
        return null; // nothing is refused here but in an answer, by its error code
    }

    @Override
    public void close() throws IOException {
        letGo();
        scratch.close();
    }
}
