import java.io.File;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import java.util.concurrent.ScheduledFuture;

/** Random calls of Kafka's own leader epoch cache, as a recording. Arguments: seed, calls, "deferred" or "immediate". */
public class LeaderEpochs {
    static final List<Runnable> waiting = new ArrayList<>();
    static boolean deferred;

    static class Later implements Scheduler {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (deferred) waiting.add(task); else task.run();
            return null;
        }
        public void resizeThreadPool(int n) { }
    }

    static Path dir;
    static LeaderEpochFileCache cache;

    static LeaderEpochFileCache open() throws Exception {
        LogDirFailureChannel channel = new LogDirFailureChannel(10);
        File file = LeaderEpochCheckpointFile.newFile(dir.toFile());
        return new LeaderEpochFileCache(new TopicPartition("topic", 0), new LeaderEpochCheckpointFile(file, channel), new Later());
    }

    static String text(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray())
            switch (c) {
                case '\n': b.append("\\n"); break;
                case '\r': b.append("\\r"); break;
                case '"': b.append("\\\""); break;
                case '\\': b.append("\\\\"); break;
                default: b.append(c);
            }
        return b.append("\"").toString();
    }

    static String entries(Collection<EpochEntry> all) {
        StringJoiner j = new StringJoiner(",", "[", "]");
        for (EpochEntry e : all) j.add("[" + e.epoch() + "," + e.startOffset() + "]");
        return j.toString();
    }

    static String number(OptionalInt n) { return n.isPresent() ? "" + n.getAsInt() : "null"; }

    static int i = 0;

    static void line(String op, String args, String outcome) throws Exception {
        String file = Files.readString(dir.resolve("leader-epoch-checkpoint"));
        String latest = cache.latestEpoch().isPresent() ? "" + cache.latestEpoch().get() : "null";
        System.out.println("{\"i\":" + i++ + ",\"op\":" + text(op) + ",\"args\":{" + args + "}," + outcome
            + ",\"state\":{\"entries\":" + entries(cache.epochEntries()) + ",\"latestEpoch\":" + latest
            + ",\"file\":" + text(file) + ",\"scheduled\":" + !waiting.isEmpty() + "}}");
    }

    static String error(Throwable e) {
        String message = String.valueOf(e.getMessage()).replace(dir.toString(), "$DIR");
        return "\"error\":{\"class\":" + text(e.getClass().getName()) + ",\"message\":" + text(message) + "}";
    }

    static final String[] TEXTS = {
        "", "0\n", "0\n0\n", "0\n1\n3 7\n", "0\n2\n0 0\n3 7", "0\r\n1\r\n4  9 \r\n", "0\n2\n3 7\n1 9\n", "0\n2\n1 9\n3 9\n",
        "0\n3\n0 0\n2 8\n5 4\n", "1\n0\n", "x\n", "0\n2\n0 0\n", "0\n0\n0 0\n", "0\nx\n", "0\n-1\n", "0\n1\n0 0 0\n", "0\n1\n 0 0\n",
        "0\n1\nx 0\n", "0\n1\n0 9223372036854775808\n", "0\n1\n2147483648 0\n", "0\n1\n-1 4\n", "0\n1\n1 -4\n", "0\n1\n\n", "0\n1\n+2 +7\n",
        "0\n2\n5 3\n5 3\n", "0\n2\n5 3\n5 8\n", "0\n2\n5 3\n6 3\n", " 0\n0\n", "0\n2\n0 0\nx y\n", "-1\n", "0\n01\n07 003\n"
    };

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[0]));
        int calls = Integer.parseInt(args[1]);
        deferred = args[2].equals("deferred");
        Path root = Files.createTempDirectory("epochs");
        dir = Files.createDirectory(root.resolve("topic-0"));
        cache = open();
        line("init", "\"deferred\":" + deferred, "\"result\":null");
        int epoch = 0;
        long end = 0;
        for (int n = 0; n < calls; n++) {
            int kind = random.nextInt(deferred ? 20 : 18);
            end += random.nextInt(3);
            switch (kind) {
                case 0: case 1: case 2: case 3: case 4: {
                    int e = random.nextInt(4) == 0 ? random.nextInt(epoch + 2) - 1 : epoch + random.nextInt(3);
                    long o = random.nextInt(4) == 0 ? random.nextInt((int) end + 2) - 1 : end;
                    String a = "\"epoch\":" + e + ",\"startOffset\":" + o;
                    epoch = Math.max(epoch, e);
                    try { cache.assign(e, o); line("assign", a, "\"result\":null"); }
                    catch (IllegalArgumentException x) { line("assign", a, error(x)); }
                    break;
                }
                case 5: case 6: {
                    long o = random.nextInt((int) end + 3) - 1;
                    cache.truncateFromEndAsyncFlush(o);
                    if (o >= 0) end = Math.min(end, o);
                    line("truncateFromEndAsyncFlush", "\"endOffset\":" + o, "\"result\":null");
                    break;
                }
                case 7: {
                    long o = random.nextInt((int) end + 3) - 1;
                    cache.truncateFromStartAsyncFlush(o);
                    line("truncateFromStartAsyncFlush", "\"startOffset\":" + o, "\"result\":null");
                    break;
                }
                case 8: case 9: {
                    int e = random.nextInt(epoch + 3) - 1;
                    long most = cache.latestEntry().map(x -> x.startOffset()).orElse(0L) + random.nextInt(4);
                    Map.Entry<Integer, Long> r = cache.endOffsetFor(e, most);
                    line("endOffsetFor", "\"requestedEpoch\":" + e + ",\"logEndOffset\":" + most,
                        "\"result\":{\"epoch\":" + r.getKey() + ",\"endOffset\":" + r.getValue() + "}");
                    break;
                }
                case 10: {
                    long o = random.nextInt((int) end + 3) - 1;
                    line("epochForOffset", "\"offset\":" + o, "\"result\":" + number(cache.epochForOffset(o)));
                    break;
                }
                case 11: {
                    int e = random.nextInt(epoch + 3) - 1;
                    line("previousEpoch/nextEpoch", "\"epoch\":" + e,
                        "\"result\":{\"previous\":" + number(cache.previousEpoch(e)) + ",\"next\":" + number(cache.nextEpoch(e)) + "}");
                    break;
                }
                case 12: {
                    long a = random.nextInt((int) end + 3) - 1, b = random.nextInt((int) end + 3) - 1;
                    line("epochEntriesInRange", "\"startOffset\":" + a + ",\"endOffset\":" + b,
                        "\"result\":" + entries(cache.epochEntriesInRange(a, b)));
                    break;
                }
                case 13: {
                    waiting.clear();
                    cache = open();
                    line("reopen", "", "\"result\":null");
                    break;
                }
                case 14: {
                    long a = random.nextInt((int) end + 1), b = a + random.nextInt((int) (end - a) + 3);
                    waiting.clear();
                    cache = open();
                    cache.truncateFromEndAsyncFlush(b);
                    cache.truncateFromStartAsyncFlush(a);
                    end = b;
                    line("load", "\"logStart\":" + a + ",\"logEnd\":" + b, "\"result\":null");
                    break;
                }
                case 15: case 16: {
                    String t = TEXTS[random.nextInt(TEXTS.length)];
                    Path other = Files.createDirectory(root.resolve("other" + n));
                    Files.writeString(other.resolve("leader-epoch-checkpoint"), t);
                    Path back = dir;
                    String outcome;
                    dir = other;
                    boolean whole = kind == 16 && n % 3 == 0;
                    try {
                        if (whole) {
                            LeaderEpochFileCache fresh = open();
                            waiting.clear();
                            cache = fresh;
                            outcome = "\"result\":null";
                        } else {
                            LogDirFailureChannel channel = new LogDirFailureChannel(10);
                            outcome = "\"result\":" + entries(new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(other.toFile()), channel).read());
                            dir = back;
                        }
                    } catch (Exception x) {
                        outcome = error(x);
                        dir = back;
                    }
                    line(whole ? "openText" : "leaderEpochCheckpoint.read", "\"file\":" + text(t), outcome);
                    if (dir == other) { end = 0; epoch = cache.latestEpoch().orElse(0);
                        end = cache.latestEntry().map(e -> e.startOffset()).orElse(0L); }
                    break;
                }
                case 17: {
                    if (random.nextInt(4) > 0) continue;
                    cache.clearAndFlush();
                    line("clearAndFlush", "", "\"result\":null");
                    break;
                }
                default: {
                    List<Runnable> tasks = new ArrayList<>(waiting);
                    waiting.clear();
                    tasks.forEach(Runnable::run);
                    line("runScheduled", "", "\"result\":null");
                }
            }
            if (random.nextInt(60) == 0) { epoch = 0; end = 0; cache.clearAndFlush(); line("clearAndFlush", "", "\"result\":null"); }
        }
        Utils.delete(root.toFile());
    }
}
