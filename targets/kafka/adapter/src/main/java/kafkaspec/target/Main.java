package kafkaspec.target;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;

/**
 * Answers the judge, a line for a line: `hello`, `init`, `observe`, and the operations of the subsystem that `init`
 * named. Standard output carries the protocol alone; whatever else prints goes to standard error.
 *
 * <p>Which classes serve which subsystem stands in the resource {@code target.properties}: {@code name} and
 * {@code version} of what is judged, and a line {@code subsystem.NAME=CLASS} each.
 */
public final class Main {
    static final int PROTOCOL = 1;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String SUBSYSTEM = "subsystem.";
    /** How long an answer may be held back, in nanoseconds: one that does not come is taken for a hang. */
    private static final long HELD_NS = 1_000_000_000L;

    private final Properties about = new Properties();
    private final Map<String, Adapter> adapters = new LinkedHashMap<>();
    private Adapter current;

    public static void main(String[] arguments) throws Exception {
        OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16);
        System.setOut(System.err);
        Main main = new Main();
        try (InputStream resource = Main.class.getResourceAsStream("/target.properties")) {
            main.about.load(resource);
        }
        int status = 0;
        try {
            main.serve(new FileInputStream(FileDescriptor.in), out);
        } catch (Adapter.AdapterFailure | LinkageError | IOException e) {
            out.flush();
            e.printStackTrace();
            status = 3;
        }
        for (Adapter adapter : main.adapters.values()) {
            adapter.close();
        }
        System.err.flush();
        Runtime.getRuntime().halt(status); // Kafka's background threads have nothing left to say
    }

    /**
     * Lines are looked for in what was read at once: to read byte by byte costs as much as a short answer. Many lines may
     * come at once: answers are held back only while there are more to read, and not for long.
     */
    private void serve(InputStream in, OutputStream out) throws Exception {
        byte[] read = new byte[1 << 16];
        int line = 0; // where the next line begins
        int seen = 0; // up to here it has no end
        int end = 0;
        long written = System.nanoTime();
        for (;;) {
            while (seen < end && read[seen] != '\n') {
                seen++;
            }
            if (seen < end) {
                answer(JSON.readTree(read, line, seen - line), out);
                line = ++seen;
                if (System.nanoTime() - written >= HELD_NS) {
                    out.flush();
                    written = System.nanoTime();
                }
                continue;
            }
            end -= line;
            System.arraycopy(read, line, read, 0, end);
            line = 0;
            seen = end;
            if (end == read.length) {
                read = Arrays.copyOf(read, 2 * end);
            }
            if (in.available() == 0) {
                out.flush();
                written = System.nanoTime();
            }
            int more = in.read(read, end, read.length - end);
            if (more < 0) {
                out.flush();
                return;
            }
            end += more;
        }
    }

    private void answer(JsonNode request, OutputStream out) throws Exception {
        try (JsonGenerator json = JSON.getFactory().createGenerator(out)) {
            json.disable(JsonGenerator.Feature.AUTO_CLOSE_TARGET);
            json.disable(JsonGenerator.Feature.FLUSH_PASSED_TO_STREAM);
            json.writeStartObject();
            json.writeFieldName("i");
            json.writeTree(request.get("i"));
            String op = request.get("op").asText();
            JsonNode args = request.has("args") ? request.get("args") : JSON.createObjectNode();
            switch (op) {
                case "hello" -> result(json, hello());
                case "init" -> {
                    String subsystem = request.get("subsystem").asText();
                    current = adapter(subsystem);
                    if (current == null) {
                        json.writeStringField("unknown", subsystem);
                    } else {
                        current.init(args);
                        result(json, null);
                    }
                }
                case "observe" -> {
                    json.writeFieldName("state");
                    JSON.writeValue(json, current.observe());
                }
                default -> operation(json, op, args);
            }
            json.writeEndObject();
        }
        out.write('\n');
    }

    private void operation(JsonGenerator json, String op, JsonNode args) throws IOException {
        Object answer;
        try {
            refuseOthers(op, args);
            answer = current.apply(op, args);
        } catch (Adapter.UnknownOperation e) {
            json.writeStringField("unknown", e.getMessage());
            return;
        } catch (Adapter.AdapterFailure | LinkageError e) {
            throw e;
        } catch (Throwable e) {
            json.writeObjectFieldStart("error");
            json.writeStringField("class", current.named(e));
            String message = e.getMessage() == null ? null : current.masked(e.getMessage());
            if (message != null) {
                json.writeStringField("message", message);
            }
            json.writeEndObject();
            return;
        }
        result(json, answer);
    }

    /** Refuses what the answer to `hello` left out. */
    private void refuseOthers(String op, JsonNode args) {
        current.values().getOrDefault(op, Map.of()).forEach((argument, values) -> {
            JsonNode given = args.get(argument);
            if (given != null && !values.contains(given.isNull() ? null : given.asText())) {
                throw new Adapter.UnknownOperation(op + " " + argument + "=" + given);
            }
        });
    }

    private static void result(JsonGenerator json, Object value) throws IOException {
        json.writeFieldName("result");
        JSON.writeValue(json, value);
    }

    private Map<String, Object> hello() throws Exception {
        Map<String, Object> offered = new LinkedHashMap<>();
        for (String name : new TreeSet<>(about.stringPropertyNames())) {
            if (name.startsWith(SUBSYSTEM)) {
                String subsystem = name.substring(SUBSYSTEM.length());
                Adapter adapter = adapter(subsystem);
                if (adapter != null) {
                    Map<String, Object> offers = new LinkedHashMap<>();
                    if (adapter.operations() != null) {
                        offers.put("operations", adapter.operations());
                    }
                    if (!adapter.values().isEmpty()) {
                        offers.put("values", adapter.values());
                    }
                    offered.put(subsystem, offers);
                }
            }
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("protocol", PROTOCOL);
        out.put("name", about.getProperty("name"));
        out.put("version", about.getProperty("version"));
        out.put("subsystems", offered);
        return out;
    }

    private Adapter adapter(String subsystem) throws Exception {
        Adapter known = adapters.get(subsystem);
        String name = about.getProperty(SUBSYSTEM + subsystem);
        if (known == null && name != null) {
            try {
                known = (Adapter) Class.forName(name).getDeclaredConstructor().newInstance();
            } catch (ClassNotFoundException e) {
                System.err.println("not offered: " + subsystem + " (no class " + name + ")");
                return null;
            }
            adapters.put(subsystem, known);
        }
        return known;
    }
}
