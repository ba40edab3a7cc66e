package kafkaspec.target;

import java.lang.reflect.Field;

/** A private field of one of Kafka's classes: what no method shows. */
public record PrivateField(Field field) {
    /** The field of that name. */
    public static PrivateField of(Class<?> in, String name) {
        try {
            Field found = in.getDeclaredField(name);
            found.setAccessible(true);
            return new PrivateField(found);
        } catch (NoSuchFieldException e) {
            throw new Adapter.AdapterFailure(in + " has no field " + name, e);
        }
    }

    /** Its declared class. */
    public Class<?> type() {
        return field.getType();
    }

    /** What it holds there. */
    @SuppressWarnings("unchecked")
    public <T> T read(Object from) {
        try {
            return (T) field.get(from);
        } catch (IllegalAccessException e) {
            throw new Adapter.AdapterFailure("cannot read " + field, e);
        }
    }
}
