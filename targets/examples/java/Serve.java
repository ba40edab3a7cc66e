import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Answers the judge, line by line. Standard output is the protocol's; what a subsystem prints goes to standard error. */
final class Serve {
    /** One subsystem. Numbers in arguments are Long (or Double), the rest String, Boolean, List, Map or null. */
    interface Subsystem {
        List<String> operations();

        void init(Map<String, Object> configuration);

        Object apply(String op, Map<String, Object> arguments) throws Exception;

        Object observe();
    }

    /** An operation that the subsystem does not offer. */
    static final class UnknownOperation extends RuntimeException {}

    private final String name;
    private final String version;
    private final Map<String, Subsystem> subsystems;
    private Subsystem current;

    private Serve(String name, String version, Map<String, Subsystem> subsystems) {
        this.name = name;
        this.version = version;
        this.subsystems = subsystems;
    }

    /** Ends with the input. */
    static void run(String name, String version, Map<String, Subsystem> subsystems) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        Serve serve = new Serve(name, version, subsystems);
        InputStream in = System.in;
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        StringBuilder answers = new StringBuilder();
        byte[] waiting = new byte[1 << 16];
        for (int n; (n = in.read(waiting)) > 0;) { // all that is there is answered, then written
            long began = System.nanoTime();
            for (int i = 0, begin = 0; i <= n; i++) {
                if (i == n || waiting[i] == '\n') {
                    line.write(waiting, begin, i - begin);
                    begin = i + 1;
                    if (i < n) {
                        Json.write(serve.answer(line.toString(StandardCharsets.UTF_8)), answers);
                        answers.append('\n');
                        line.reset();
                        if (System.nanoTime() - began >= 1_000_000_000L) { // no answer is held back for longer
                            write(answers, out);
                            began = System.nanoTime();
                        }
                    }
                }
            }
            write(answers, out);
        }
    }

    private static void write(StringBuilder answers, OutputStream out) throws IOException {
        out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
        out.flush();
        answers.setLength(0);
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> answer(String line) {
        Map<String, Object> request = (Map<String, Object>) Json.read(line);
        String op = (String) request.get("op");
        Map<String, Object> arguments = (Map<String, Object>) request.getOrDefault("args", Map.of());
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("i", request.get("i"));
        switch (op) {
            case "hello" -> {
                Map<String, Object> offered = new LinkedHashMap<>();
                subsystems.forEach((s, subsystem) -> offered.put(s, Map.of("operations", subsystem.operations())));
                answer.put("result", Map.of("protocol", 1, "name", name, "version", version, "subsystems", offered));
            }
            case "init" -> {
                current = subsystems.get(request.get("subsystem"));
                if (current == null) {
                    answer.put("unknown", request.get("subsystem"));
                } else {
                    current.init(arguments);
                    answer.put("result", null);
                }
            }
            case "observe" -> answer.put("state", current.observe());
            default -> {
                try {
                    answer.put("result", current.apply(op, arguments));
                } catch (UnknownOperation e) {
                    answer.put("unknown", op);
                } catch (Exception e) {
                    Map<String, Object> error = new LinkedHashMap<>(Map.of("class", e.getClass().getName()));
                    if (e.getMessage() != null) {
                        error.put("message", e.getMessage());
                    }
                    answer.put("error", error);
                }
            }
        }
        return answer;
    }
}
