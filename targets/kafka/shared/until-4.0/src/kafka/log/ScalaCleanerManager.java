package kafka.log;

import java.io.File;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import kafka.common.LogCleaningAbortedException;
import kafka.utils.Pool;
import kafkaspec.target.CleanerManager.Grab;
import kafkaspec.target.CleanerManager.Log;
import kafkaspec.target.CleanerManager.Manager;
import kafkaspec.target.CleanerManager.ToClean;
import kafkaspec.target.Gauges;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** {@link LogCleanerManager} as it was in Scala, up to 4.0. {@code L} is the class of its logs. */
public class ScalaCleanerManager<L> implements Manager {
    private static final String STATES = "org.apache.kafka.storage.internals.log.LogCleaningState$LogCleaning";
    private static final Pattern STATE =
        Pattern.compile("(?:Some\\()?LogCleaning(?:(InProgress|Aborted)\\b|Paused\\((\\d+)\\))\\)?");

    protected final LogCleanerManager manager;
    private final Pool<TopicPartition, L> logs;
    private final Function<Log, L> kafkas;
    private final Time time;
    private final Gauges gauges;

    /** {@code kafkas} gives Kafka's log of an adapter's. */
    public ScalaCleanerManager(LogCleanerManager manager, Pool<TopicPartition, L> logs, Function<Log, L> kafkas, Time time,
                               Gauges gauges) {
        this.manager = manager;
        this.logs = logs;
        this.kafkas = kafkas;
        this.time = time;
        this.gauges = gauges;
    }

    static TopicPartition partition(String name) {
        int dash = name.lastIndexOf('-');
        return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
    }

    /** A message with the states as 4.3.0 prints them. */
    public static String asNow(String message) {
        Matcher state = STATE.matcher(message);
        return state.replaceAll(m -> Matcher.quoteReplacement(m.group(1) == null
            ? "LogCleaningPaused{pausedCount=" + m.group(2) + "}" : STATES + m.group(1) + "@HASH"));
    }

    /** The class of an exception by the name that it has in 4.3.0. */
    public static String nameNow(Throwable thrown) {
        return thrown instanceof LogCleaningAbortedException
            ? "org.apache.kafka.storage.internals.log.LogCleaningAbortedException" : thrown.getClass().getName();
    }

    public static ToClean toClean(LogToClean log) {
        return new ToClean(log.topicPartition().toString(), log.firstDirtyOffset(), log.firstUncleanableOffset(),
            log.cleanBytes(), log.cleanableBytes(), log.totalBytes(), log.cleanableRatio(), log.needCompactionNow());
    }

    private static scala.collection.Iterable<TopicPartition> only(String partition) {
        return CollectionConverters.asScala(List.of(partition(partition)));
    }

    private static <T> Collection<String> partitions(scala.collection.Iterable<Tuple2<TopicPartition, T>> entries) {
        List<String> out = new ArrayList<>();
        CollectionConverters.asJava(entries).forEach(entry -> out.add(entry._1().toString()));
        return out;
    }

    @Override
    public void know(String partition, Log log) {
        logs.put(partition(partition), kafkas.apply(log));
    }

    @Override
    public void forget(String partition) {
        logs.remove(partition(partition));
    }

    @Override
    public String state(String partition) {
        Option<LogCleaningState> state = manager.cleaningState(partition(partition));
        if (state.isEmpty()) {
            return "none";
        }
        return state.get() instanceof LogCleaningPaused paused ? "paused(" + paused.pausedCount() + ")"
            : state.get() == LogCleaningAborted$.MODULE$ ? "aborted" : "inProgress";
    }

    @Override
    public void abortAndPauseCleaning(String partition) {
        manager.abortAndPauseCleaning(partition(partition));
    }

    @Override
    public void abortCleaning(String partition) {
        manager.abortCleaning(partition(partition));
    }

    @Override
    public void resumeCleaning(String partition) {
        manager.resumeCleaning(only(partition));
    }

    @Override
    public void doneCleaning(String partition, File dir, long endOffset) {
        manager.doneCleaning(partition(partition), dir, endOffset);
    }

    @Override
    public void doneDeleting(String partition) {
        manager.doneDeleting(only(partition));
    }

    @Override
    public void checkCleaningAborted(String partition) {
        manager.checkCleaningAborted(partition(partition));
    }

    @Override
    public Collection<String> pauseCleaningForNonCompactedPartitions() {
        return partitions(manager.pauseCleaningForNonCompactedPartitions());
    }

    @Override
    public Collection<String> deletableLogs() {
        return partitions(manager.deletableLogs());
    }

    @Override
    public void markPartitionUncleanable(File dir, String partition) {
        manager.markPartitionUncleanable(dir.toString(), partition(partition));
    }

    /** Later ones have it. */
    @Override
    public void maintainUncleanablePartitions() {
        throw new kafkaspec.target.Adapter.UnknownOperation("maintainUncleanablePartitions");
    }

    @Override
    public Collection<String> uncleanablePartitions(File dir) {
        return CollectionConverters.asJava(manager.uncleanablePartitions(dir.toString())).stream()
            .map(TopicPartition::toString).toList();
    }

    @Override
    public Number uncleanableBytes(File dir) {
        return gauges.value("uncleanable-bytes", dir);
    }

    @Override
    public void updateCheckpoints(File dir, String update, Long offset, String remove) {
        Tuple2<TopicPartition, Object> entry = update == null ? null : new Tuple2<>(partition(update), offset);
        manager.updateCheckpoints(dir, Option.apply(entry), Option.apply(remove == null ? null : partition(remove)));
    }

    @Override
    public void maybeTruncateCheckpoint(File dir, String partition, long offset) {
        manager.maybeTruncateCheckpoint(dir, partition(partition), offset);
    }

    @Override
    public void alterCheckpointDir(String partition, File source, File dest) {
        manager.alterCheckpointDir(partition(partition), source, dest);
    }

    @Override
    public void handleLogDirFailure(File dir) {
        manager.handleLogDirFailure(dir.toString());
    }

    @Override
    public Grab grabFilthiestCompactedLog() {
        PreCleanStats stats = new PreCleanStats();
        Option<LogToClean> found = manager.grabFilthiestCompactedLog(time, stats);
        return new Grab(found.isEmpty() ? null : toClean(found.get()), stats.cleanablePartitions(),
            stats.delayedPartitions(), stats.maxCompactionDelayMs());
    }
}
