package kafkaspec.target;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/**
 * A directory for the files of one adapter: in memory where the system has a file system of that kind, so that Kafka's
 * flushes cost nothing. Whoever makes one deletes it by {@link #close}.
 */
public final class Scratch implements AutoCloseable {
    private static final Path MEMORY = Path.of("/dev/shm");

    private final Path root;
    private long made;

    public Scratch(String name) {
        try {
            root = Files.isWritable(MEMORY)
                ? Files.createTempDirectory(MEMORY, "kafkaspec-" + name + "-")
                : Files.createTempDirectory("kafkaspec-" + name + "-");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                close(); // the judge ends a target that does not answer by a signal
            } catch (IOException e) {
                System.err.println(root + ": not removed: " + e);
            }
        }));
    }

    public Path root() {
        return root;
    }

    /** A new, empty directory {@code N/name}, of its own parent. */
    public Path directory(String name) throws IOException {
        return Files.createDirectories(root.resolve(Long.toString(++made)).resolve(name));
    }

    /** A file of that name in the root, made or not. */
    public File file(String name) {
        return root.resolve(name).toFile();
    }

    /** A message without the directory's name, which differs from run to run. */
    public String masked(String message) {
        return message.replace(root.toString(), "$DIR");
    }

    /** The tree is deleted, if it is there. */
    public static void delete(Path tree) throws IOException {
        if (!Files.exists(tree)) {
            return;
        }
        Files.walkFileTree(tree, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes about) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failure) throws IOException {
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }

    @Override
    public void close() throws IOException {
        delete(root);
    }
}
