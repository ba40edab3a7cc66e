package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;

/**
 * What the adapters of {@link OffsetIndex} and {@link TimeIndex} have in common: one index over one file.
 *
 * <p>The adapter adds the start of a process: {@code open}, {@code openNew} and {@code openFile} let go of the mapping
 * ({@code closeHandler}, which changes no byte of the file), put the file there or away, and construct the index.
 * After {@code resize} has thrown, it lets go of the mapping too: in a broker that ends the loading of the log, and
 * nobody has the index any longer. {@code fill} is a new index and so many appends.
 */
abstract class IndexAdapter<I extends AbstractIndex> implements Adapter {
    private static final int SHOWN = 256; // the bytes of a file are shown up to this size
    private static final HexFormat HEX = HexFormat.of();

    private final Scratch scratch;
    private final int entrySize;
    private final int usualSize;
    private final File file;
    private long baseOffset;
    private boolean open;
    private I index;

    IndexAdapter(String name, int entrySize, int usualSize) {
        this.scratch = new Scratch(name);
        this.file = scratch.file("00000000000000000000.index");
        this.entrySize = entrySize;
        this.usualSize = usualSize;
    }

    abstract I make(File file, long baseOffset, int maxIndexSize, boolean writable) throws IOException;

    /** The operations that only this index has. */
    abstract Object own(I index, String op, JsonNode args) throws Exception;

    abstract Object entry(I index, int n);

    abstract void truncate(I index);

    abstract void appendNth(I index, long baseOffset, int n);

    abstract void showLast(I index, Map<String, Object> state);

    @Override
    public void init(JsonNode args) throws Exception {
        letGo();
        Files.deleteIfExists(file.toPath());
        baseOffset = args.path("baseOffset").asLong(100);
        start(args.path("maxIndexSize").asInt(usualSize), true);
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "entry":
                return entry(index, a.get("n").asInt());
            case "truncateTo":
                index.truncateTo(a.get("offset").asLong());
                return null;
            case "truncate":
                truncate(index);
                return null;
            case "resize":
                try {
                    return index.resize(a.get("newSize").asInt());
                } catch (IllegalArgumentException e) {
                    letGo();
                    throw e;
                }
            case "trimToValidSize":
                index.trimToValidSize();
                return null;
            case "reset":
                index.reset();
                return null;
            case "sanityCheck":
                index.sanityCheck();
                return null;
            case "close":
                index.close();
                open = false;
                return null;
            case "closeHandler":
                letGo();
                return null;
            case "open":
                letGo();
                start(a.get("maxIndexSize").asInt(), a.get("writable").asBoolean());
                return null;
            case "openNew":
                letGo();
                Files.deleteIfExists(file.toPath());
                start(a.get("maxIndexSize").asInt(), true);
                return null;
            case "openFile":
                letGo();
                Files.write(file.toPath(), HEX.parseHex(a.get("file").asText()));
                start(a.get("maxIndexSize").asInt(), a.get("writable").asBoolean());
                return null;
            case "fill":
                letGo();
                Files.deleteIfExists(file.toPath());
                int count = a.get("count").asInt();
                start(count * entrySize, true);
                for (int n = 1; n <= count; n++) {
                    appendNth(index, baseOffset, n);
                }
                return null;
            default:
                return own(index, op, a);
        }
    }

    private void letGo() {
        if (index != null) {
            index.closeHandler();
        }
        open = false;
    }

    private void start(int maxIndexSize, boolean writable) throws IOException {
        index = make(file, baseOffset, maxIndexSize, writable);
        open = true;
    }

    @Override
    public Object observe() throws IOException {
        Map<String, Object> state = new LinkedHashMap<>();
        long length = file.length();
        state.put("open", open);
        state.put("fileLength", length);
        if (length <= SHOWN) {
            state.put("file", HEX.formatHex(Files.readAllBytes(file.toPath())));
        }
        if (open) {
            state.put("entries", entries());
            state.put("maxEntries", index.maxEntries());
            state.put("length", index.length());
            state.put("isFull", index.isFull());
            showLast(index, state);
        }
        return state;
    }

    /** The entries; the exception, where the class counts more of them than it has mapped. */
    private Object entries() {
        List<Object> entries = new ArrayList<>(index.entries());
        try {
            for (int n = 0; n < index.entries(); n++) {
                entries.add(entry(index, n));
            }
        } catch (RuntimeException e) {
            return e.toString();
        }
        return entries;
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        letGo();
        scratch.close();
    }
}
