import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON without a library: as much as the protocol needs. Yours is better; this one asks for nothing. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Map, List, String, Long, Double, Boolean or null. */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        if (json.next() != 0) {
            throw new IllegalArgumentException("behind the value: " + text.substring(json.at));
        }
        return value;
    }

    /** The next character that is no blank; 0 at the end. */
    private char next() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
        return at < text.length() ? text.charAt(at) : 0;
    }

    private boolean took(char c) {
        if (next() != c) {
            return false;
        }
        at++;
        return true;
    }

    private Object value() {
        if (took('{')) {
            Map<String, Object> object = new LinkedHashMap<>();
            while (!took('}')) {
                String key = (String) value();
                expect(':');
                object.put(key, value());
                separated('}');
            }
            return object;
        }
        if (took('[')) {
            List<Object> array = new ArrayList<>();
            while (!took(']')) {
                array.add(value());
                separated(']');
            }
            return array;
        }
        if (took('"')) {
            return string();
        }
        int begin = at;
        while (at < text.length() && ",]}: ".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(begin, at);
        return switch (word) {
            case "null" -> null;
            case "true" -> true;
            case "false" -> false;
            default -> number(word);
        };
    }

    private static Object number(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (".eE".indexOf(word.charAt(i)) >= 0) {
                return Double.valueOf(word);
            }
        }
        return Long.valueOf(word);
    }

    private void expect(char c) {
        if (!took(c)) {
            throw new IllegalArgumentException(c + " expected at " + at + ": " + text);
        }
    }

    private void separated(char end) {
        if (next() != end) {
            expect(',');
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (char c; (c = text.charAt(at++)) != '"'; ) {
            if (c != '\\') {
                out.append(c);
                continue;
            }
            c = text.charAt(at++);
            int known = "bfnrt".indexOf(c);
            if (c == 'u') {
                out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
            } else {
                out.append(known < 0 ? c : "\b\f\n\r\t".charAt(known));
            }
        }
        return out.toString();
    }

    static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> object) {
            char before = '{';
            for (Map.Entry<?, ?> field : object.entrySet()) {
                out.append(before);
                write(field.getKey(), out);
                write(field.getValue(), out.append(':'));
                before = ',';
            }
            out.append(object.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> array) {
            char before = '[';
            for (Object element : array) {
                write(element, out.append(before));
                before = ',';
            }
            out.append(array.isEmpty() ? "[]" : "]");
        } else if (value instanceof String string) {
            out.append('"');
            for (char c : string.toCharArray()) {
                if (c == '"' || c == '\\') {
                    out.append('\\').append(c);
                } else if (c < ' ') {
                    out.append(String.format("\\u%04x", (int) c));
                } else {
                    out.append(c);
                }
            }
            out.append('"');
        } else {
            out.append(value);
        }
    }
}
