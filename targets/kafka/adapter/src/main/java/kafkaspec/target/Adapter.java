package kafkaspec.target;

import com.fasterxml.jackson.databind.JsonNode;

/** One subsystem of the system under judgement. One object serves a whole connection, many histories after each other. */
public interface Adapter extends AutoCloseable {
    /** Begin a new history from the first state; {@code args} is the configuration, an object, maybe empty. */
    void init(JsonNode args) throws Exception;

    /**
     * One operation. What is returned is the answer (null, Boolean, Number, String, Collection, Map, array or JsonNode).
     * Whatever the real class throws is let through: it is its refusal. What the adapter cannot do by itself is told
     * apart by {@link UnknownOperation} and {@link AdapterFailure}.
     */
    Object apply(String op, JsonNode args) throws Throwable;

    /** The state, as the specification shows it; must not change it. */
    Object observe() throws Exception;

    /** The end of the connection: threads ended, files removed. */
    @Override
    default void close() throws Exception {
    }

    /**
     * The message of a refusal, without what differs from run to run, such as the name of a temporary directory; null
     * if this release words it otherwise than the one that the specification knows: its class alone is compared then.
     */
    default String masked(String message) {
        return message;
    }

    /** The class of a refusal, by the name that the specification knows it by: some have moved from package to package. */
    default String named(Throwable refusal) {
        return refusal.getClass().getName();
    }

    /** The operations that are offered; null means all that the specification has. */
    default java.util.Collection<String> operations() {
        return null;
    }

    /**
     * By operation and argument the only values that are offered, texts or null. A call with another one does not come to
     * {@link #apply}: it is answered as an unknown operation.
     */
    default java.util.Map<String, java.util.Map<String, java.util.List<String>>> values() {
        return java.util.Map.of();
    }

    /** The adapter does not know this operation. */
    final class UnknownOperation extends RuntimeException {
        public UnknownOperation(String op) {
            super(op);
        }
    }

    /** The adapter itself is at fault, or what it was given: it is never an answer of Kafka. The connection ends. */
    final class AdapterFailure extends RuntimeException {
        public AdapterFailure(String what, Throwable cause) {
            super(what, cause);
        }

        public AdapterFailure(String what) {
            super(what);
        }
    }
}
