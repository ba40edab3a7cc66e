import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Optional;
import org.apache.kafka.storage.internals.log.AbstractIndex;
import org.apache.kafka.storage.internals.log.OffsetIndex;
import org.apache.kafka.storage.internals.log.OffsetPosition;
import org.apache.kafka.storage.internals.log.TimeIndex;
import org.apache.kafka.storage.internals.log.TimestampOffset;

/** Calls of Kafka's OffsetIndex or TimeIndex (the first argument says which), read as JSON lines, and what came of them. */
public final class IndexTrace {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int SHOWN = 256;
    final boolean offsets;
    final File directory;
    File file;
    long base;
    AbstractIndex index;
    boolean open;
    int files;

    IndexTrace(boolean offsets, File directory) {
        this.offsets = offsets;
        this.directory = directory;
    }

    void close() {
        if (index != null) index.closeHandler();
        open = false;
    }

    void make(int maxIndexSize, boolean writable) throws Exception {
        index = offsets ? new OffsetIndex(file, base, maxIndexSize, writable) : new TimeIndex(file, base, maxIndexSize, writable);
        open = true;
    }

    ArrayNode pair(long a, long b) {
        return JSON.createArrayNode().add(a).add(b);
    }

    JsonNode of(OffsetPosition p) {
        return pair(p.offset(), p.position());
    }

    JsonNode of(TimestampOffset p) {
        return pair(p.timestamp(), p.offset());
    }

    JsonNode call(String op, JsonNode a) throws Exception {
        OffsetIndex o = offsets ? (OffsetIndex) index : null;
        TimeIndex t = offsets ? null : (TimeIndex) index;
        switch (op) {
            case "init":
                close();
                if (file != null) file.delete();
                file = new File(directory, files++ + ".index");
                base = a.path("baseOffset").asLong(100);
                make(a.path("maxIndexSize").asInt(offsets ? 43 : 65), true);
                return null;
            case "append":
                o.append(a.get("offset").asLong(), a.get("position").asInt());
                return null;
            case "maybeAppend":
                t.maybeAppend(a.get("timestamp").asLong(), a.get("offset").asLong(), a.get("skipFullCheck").asBoolean());
                return null;
            case "lookup":
                return offsets ? of(o.lookup(a.get("offset").asLong())) : of(t.lookup(a.get("timestamp").asLong()));
            case "entry":
                return offsets ? of(o.entry(a.get("n").asInt())) : of(t.entry(a.get("n").asInt()));
            case "fetchUpperBoundOffset":
                Optional<OffsetPosition> found =
                    o.fetchUpperBoundOffset(new OffsetPosition(base, a.get("position").asInt()), a.get("size").asInt());
                return found.isPresent() ? of(found.get()) : null;
            case "canAppendOffset":
                return JSON.getNodeFactory().booleanNode(index.canAppendOffset(a.get("offset").asLong()));
            case "relativeOffset":
                return JSON.getNodeFactory().numberNode(index.relativeOffset(a.get("offset").asLong()));
            case "truncateTo":
                index.truncateTo(a.get("offset").asLong());
                return null;
            case "truncate":
                if (offsets) o.truncate(); else t.truncate();
                return null;
            case "resize":
                try {
                    return JSON.getNodeFactory().booleanNode(index.resize(a.get("newSize").asInt()));
                } catch (IllegalArgumentException e) {
                    close();
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
                close();
                return null;
            case "open":
                close();
                make(a.get("maxIndexSize").asInt(), a.get("writable").asBoolean());
                return null;
            case "openNew":
                close();
                file.delete();
                make(a.get("maxIndexSize").asInt(), true);
                return null;
            case "openFile":
                close();
                Files.write(file.toPath(), HexFormat.of().parseHex(a.get("file").asText()));
                make(a.get("maxIndexSize").asInt(), a.get("writable").asBoolean());
                return null;
            default:
                throw new IllegalStateException("no such operation: " + op);
        }
    }

    ObjectNode state() throws Exception {
        ObjectNode s = JSON.createObjectNode();
        s.put("open", open).put("fileLength", file.length());
        if (file.length() <= SHOWN) s.put("file", HexFormat.of().formatHex(Files.readAllBytes(file.toPath())));
        if (!open) return s;
        ArrayNode entries = s.putArray("entries");
        for (int n = 0; n < index.entries(); n++)
            entries.add(offsets ? of(((OffsetIndex) index).entry(n)) : of(((TimeIndex) index).entry(n)));
        s.put("maxEntries", index.maxEntries()).put("length", index.length()).put("isFull", index.isFull());
        if (offsets) s.put("lastOffset", ((OffsetIndex) index).lastOffset());
        else s.set("lastEntry", of(((TimeIndex) index).lastEntry()));
        return s;
    }

    public static void main(String[] args) throws Exception {
        File directory = Files.createTempDirectory("index").toFile();
        IndexTrace trace = new IndexTrace(args[0].equals("offset"), directory);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        int i = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode call = JSON.readTree(line);
            ObjectNode answer = JSON.createObjectNode().put("i", i++).put("op", call.get("op").asText());
            answer.set("args", call.get("args"));
            try {
                JsonNode result = trace.call(call.get("op").asText(), call.get("args"));
                if (!call.get("op").asText().equals("init")) answer.set("result", result);
            } catch (Exception e) {
                String message = String.valueOf(e.getMessage()).replace(directory.getPath(), "$DIR");
                answer.putObject("error").put("class", e.getClass().getName()).put("message", message);
            }
            answer.set("state", trace.state());
            out.println(answer);
        }
        out.flush();
        trace.close();
        for (File f : directory.listFiles()) f.delete();
        directory.delete();
    }
}
