package kafkaspec.target;

import java.lang.reflect.Field;

/** Private fields of Kafka's objects, which an adapter reads and does not write. */
public final class Fields {
    private Fields() {
    }

    @SuppressWarnings("unchecked")
    public static <T> T of(Object object, Class<?> in, String name) throws ReflectiveOperationException {
        Field field = in.getDeclaredField(name);
        field.setAccessible(true);
        return (T) field.get(object);
    }
}
