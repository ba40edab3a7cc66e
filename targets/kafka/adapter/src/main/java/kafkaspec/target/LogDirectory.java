package kafkaspec.target;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/** The files of a log: what is shown of them, what stands in the way of a change, and what a crash leaves. */
public final class LogDirectory {
    private LogDirectory() {
    }

    /** Names and sizes, but of the offset and time indexes, and of transaction indexes that are empty. */
    public static Map<String, Object> files(Path dir) {
        Map<String, Object> files = new TreeMap<>();
        for (File file : dir.toFile().listFiles()) {
            String name = file.getName();
            boolean txn = name.contains(".txnindex");
            if (!txn && name.contains("index") || txn && file.length() == 0) {
                continue;
            }
            files.put(name, Map.of("size", file.length()));
        }
        return files;
    }

    /** The offsets of the producer snapshots. */
    public static List<Long> snapshots(Path dir) {
        TreeSet<Long> offsets = new TreeSet<>();
        for (String name : dir.toFile().list()) {
            if (name.endsWith(".snapshot")) {
                offsets.add(Long.parseLong(name.substring(0, name.indexOf('.'))));
            }
        }
        return new ArrayList<>(offsets);
    }

    /** The files that end so. */
    public static List<Path> ending(Path dir, String end) throws IOException {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(dir, "*" + end)) {
            files.forEach(found::add);
        }
        return found;
    }

    /** A directory that is not empty stands where a file would be written; a file that is there is put aside. */
    public static void block(Path path) throws IOException {
        if (Files.exists(path)) {
            Files.move(path, aside(path));
        }
        Files.createDirectories(path.resolve("in the way"));
    }

    public static void unblock(Path path) throws IOException {
        Scratch.delete(path);
        if (Files.exists(aside(path))) {
            Files.move(aside(path), path);
        }
    }

    private static Path aside(Path path) {
        return path.resolveSibling("aside " + path.getFileName());
    }

    /** A copy, whose last segment has lost its last bytes. */
    public static void crashed(Path dir, Path copy, long tornBytes) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(dir)) {
            for (Path file : files) {
                Files.copy(file, copy.resolve(file.getFileName()));
            }
        }
        Path last = null;
        for (Path path : ending(copy, ".log")) {
            last = last == null || path.compareTo(last) > 0 ? path : last;
        }
        try (RandomAccessFile file = new RandomAccessFile(last.toFile(), "rw")) {
            file.setLength(Math.max(0, file.length() - tornBytes));
        }
    }
}
