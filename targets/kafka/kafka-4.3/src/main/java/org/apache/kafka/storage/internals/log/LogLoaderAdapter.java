package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchEvent;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.MockTime;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * {@link LogLoader}, by way of {@link UnifiedLog#create}, over the directory of one partition; and
 * {@link LocalLog#replaceSegments}, which leaves the most of what the loader finds.
 *
 * <p>The adapter adds: {@code put}, {@code drop} and {@code writeCleaned} write and remove files, which Kafka's builder
 * of batches fills; an index file is put empty, and beside a .log that is put it is made empty. After {@code load} the
 * clock goes on by more than {@code file.delete.delay.ms}, so that what was to be deleted is, and the log is let go of
 * as by a kill. {@code replace} runs the whole replacement in another directory whose files are links to these, has the
 * operating system tell its renames in their order, and makes the first so many of them here. {@code crashedLoad} gives
 * the loader a directory that lists its files in the order asked for, and throws where it is to crash.
 */
public final class LogLoaderAdapter implements Adapter {
    private static final TopicPartition PARTITION = LoaderFiles.PARTITION;
    private static final long NOW = LoaderFiles.NOW;

    private final Scratch scratch = new Scratch("log-loader");
    private final Path dir = scratch.root().resolve("t-0");
    private final LogConfig config = new LogConfig(Map.of("segment.index.bytes", 1024, "index.interval.bytes", 0));
    private final WatchService watches;
    private final LoaderFiles contents = new LoaderFiles(scratch);

    public LogLoaderAdapter() throws IOException {
        watches = FileSystems.getDefault().newWatchService();
    }

    @Override
    public void init(JsonNode args) throws IOException {
        Scratch.delete(dir);
        Files.createDirectory(dir);
        Iterator<Map.Entry<String, JsonNode>> files = args.path("files").fields();
        while (files.hasNext()) {
            Map.Entry<String, JsonNode> file = files.next();
            Files.write(dir.resolve(file.getKey()), contents.bytes(file.getKey(), file.getValue()));
        }
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "put": {
                String name = a.get("file").get(0).asText();
                Files.write(dir.resolve(name), contents.bytes(name, a.get("file").get(1)));
                if (name.contains(LogFileUtils.LOG_FILE_SUFFIX)) {
                    for (String index : List.of(LogFileUtils.INDEX_FILE_SUFFIX, LogFileUtils.TIME_INDEX_FILE_SUFFIX)) {
                        Path beside = dir.resolve(name.replace(LogFileUtils.LOG_FILE_SUFFIX, index));
                        if (Files.exists(beside)) {
                            Files.write(beside, new byte[0]);
                        }
                    }
                }
                return null;
            }
            case "drop":
                Files.deleteIfExists(dir.resolve(a.get("name").asText())); // Kafka may have lost it
                return null;
            case "writeCleaned":
                for (JsonNode base : a.get("new")) {
                    File file = dir.toFile();
                    long offset = base.asLong();
                    String end = LogFileUtils.CLEANED_FILE_SUFFIX;
                    Files.write(LogFileUtils.logFile(file, offset, end).toPath(), contents.batch(offset, offset, 0, true));
                    Files.write(LogFileUtils.offsetIndexFile(file, offset, end).toPath(), new byte[0]);
                    Files.write(LogFileUtils.timeIndexFile(file, offset, end).toPath(), new byte[0]);
                }
                return null;
            case "replace": {
                List<String[]> renames = replacement(a.get("old"), a.get("new"));
                int done = Math.min(a.get("steps").asInt(), renames.size());
                for (String[] rename : renames.subList(0, done)) {
                    Files.move(dir.resolve(rename[0]), dir.resolve(rename[1]), StandardCopyOption.REPLACE_EXISTING);
                }
                return done;
            }
            case "crashedLoad": {
                Listed listed = new Listed(dir.toString(), a.get("first").asLong(), a.get("renames").asInt());
                try {
                    create(listed, new MockTime(NOW, 0), false, 0, 0);
                    throw new AdapterFailure("the load came to its end");
                } catch (Crashed e) {
                    return listed.renamed;
                }
            }
            case "load":
                return load(a.get("clean").asBoolean(), a.get("recoveryPoint").asLong(), a.get("logStart").asLong());
            default:
                throw new UnknownOperation(op);
        }
    }

    private Object load(boolean clean, long recoveryPoint, long logStart) throws Exception {
        MockTime time = new MockTime(NOW, 0);
        UnifiedLog log;
        try {
            log = create(dir.toFile(), time, clean, recoveryPoint, logStart);
        } finally {
            time.sleep(config.fileDeleteDelayMs + 1);
        }
        Map<String, Object> answer = Map.of("logStart", log.logStartOffset(), "recoveryPoint", log.recoveryPoint(),
            "logEnd", log.logEndOffset());
        log.removeLogMetrics();
        log.closeHandlers();
        return answer;
    }

    private UnifiedLog create(File directory, MockTime time, boolean clean, long recoveryPoint, long logStart)
        throws IOException {
        return UnifiedLog.create(directory, config, logStart, recoveryPoint, time.scheduler, new BrokerTopicStats(), time,
            300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(1), clean,
            Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    private static final class Crashed extends RuntimeException {
        Crashed() {
            super("crashed", null, false, false);
        }
    }

    /** A directory that lists its files as is told, and crashes the loader after some renames, or before its last pass. */
    private static final class Listed extends File {
        private final String first;
        private final int renames;
        private int listings;
        int renamed;

        Listed(String path, long first, int renames) {
            super(path);
            this.first = LogFileUtils.filenamePrefixFromOffset(first) + ".";
            this.renames = renames;
        }

        @Override
        public File[] listFiles() {
            if (++listings > 3) { // the three passes list the directory once each
                throw new Crashed();
            }
            String[] names = list();
            Arrays.sort(names, Comparator.comparing((String name) -> !name.startsWith(first)).thenComparing(name -> name));
            return Arrays.stream(names).map(name -> new File(this, name) {
                @Override
                public boolean renameTo(File to) {
                    if (renamed == renames) {
                        throw new Crashed();
                    }
                    renamed++;
                    return super.renameTo(to);
                }
            }).toArray(File[]::new);
        }
    }

    /** The renames of Kafka's replacement of segments, all of them, as pairs of names. */
    private List<String[]> replacement(JsonNode old, JsonNode replacing) throws Exception {
        Path other = scratch.directory("t-0");
        try (var files = Files.newDirectoryStream(dir)) {
            for (Path file : files) {
                Files.createLink(other.resolve(file.getFileName()), file);
            }
        }
        MockTime time = new MockTime(NOW, 0);
        LogSegments segments = new LogSegments(PARTITION);
        List<LogSegment> olds = new ArrayList<>();
        List<LogSegment> news = new ArrayList<>();
        for (JsonNode base : old) {
            LogSegment segment = open(other, base.asLong(), time, "");
            segments.add(segment);
            olds.add(segment);
        }
        for (JsonNode base : replacing) {
            news.add(open(other, base.asLong(), time, LogFileUtils.CLEANED_FILE_SUFFIX));
        }
        WatchKey watch =
            other.register(watches, StandardWatchEventKinds.ENTRY_CREATE, StandardWatchEventKinds.ENTRY_DELETE);
        // nothing is deleted: the clock of the scheduler stands still
        LocalLog.replaceSegments(
            segments, news, olds, other.toFile(), PARTITION, config, time.scheduler, new LogDirFailureChannel(1), "", false);
        Files.createFile(other.resolve("end"));
        List<String> names = new ArrayList<>();
        while (names.isEmpty() || !names.get(names.size() - 1).equals("end")) {
            WatchKey signalled = watches.poll(10, TimeUnit.SECONDS);
            if (signalled == null) {
                throw new AdapterFailure("the operating system does not tell what was renamed");
            }
            for (WatchEvent<?> event : signalled.pollEvents()) {
                if (signalled == watch) {
                    names.add(event.context().toString());
                }
            }
            signalled.reset();
        }
        watch.cancel();
        olds.forEach(LogSegment::closeHandlers);
        news.forEach(LogSegment::closeHandlers);
        Scratch.delete(other.getParent());
        List<String[]> renames = new ArrayList<>();
        for (int n = 0; n + 1 < names.size(); n += 2) { // a rename is told as the one name gone, the other come
            renames.add(new String[] {names.get(n), names.get(n + 1)});
        }
        return renames;
    }

    private LogSegment open(Path directory, long base, MockTime time, String suffix) throws IOException {
        return LogSegment.open(directory.toFile(), base, config, time, true, 0, false, suffix);
    }

    @Override
    public Object observe() throws IOException {
        Map<String, Object> files = new TreeMap<>();
        for (File file : dir.toFile().listFiles()) {
            files.put(file.getName(), LoaderFiles.shown(file));
        }
        return Map.of("files", files);
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        watches.close();
        scratch.close();
    }
}
