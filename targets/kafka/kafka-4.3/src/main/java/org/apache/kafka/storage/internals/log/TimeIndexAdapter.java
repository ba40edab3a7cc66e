package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * {@link TimeIndex}. Not offered: {@code pagesTouched}, the pages that a search reads, which the class does not tell;
 * {@code judge}, a file beside its log, which is the audit's question.
 */
public final class TimeIndexAdapter extends IndexAdapter<TimeIndex> {
    public TimeIndexAdapter() {
        super("time-index", 12, 65);
    }

    @Override
    public Collection<String> operations() {
        return List.of(
            "maybeAppend", "lookup", "entry", "truncateTo", "truncate", "resize", "trimToValidSize", "reset", "sanityCheck",
            "close", "closeHandler", "open", "openNew", "openFile", "fill");
    }

    @Override
    TimeIndex make(File file, long baseOffset, int maxIndexSize, boolean writable) throws IOException {
        return new TimeIndex(file, baseOffset, maxIndexSize, writable);
    }

    @Override
    Object own(TimeIndex index, String op, JsonNode a) {
        switch (op) {
            case "maybeAppend":
                index.maybeAppend(a.get("timestamp").asLong(), a.get("offset").asLong(), a.get("skipFullCheck").asBoolean());
                return null;
            case "lookup":
                return shown(index.lookup(a.get("timestamp").asLong()));
            default:
                throw new UnknownOperation(op);
        }
    }

    @Override
    Object entry(TimeIndex index, int n) {
        return shown(index.entry(n));
    }

    @Override
    void truncate(TimeIndex index) {
        index.truncate();
    }

    @Override
    void appendNth(TimeIndex index, long baseOffset, int n) {
        index.maybeAppend(10L * n, baseOffset + n / 2, true);
    }

    @Override
    void showLast(TimeIndex index, Map<String, Object> state) {
        state.put("lastEntry", shown(index.lastEntry()));
    }

    private static long[] shown(TimestampOffset e) {
        return new long[] {e.timestamp(), e.offset()};
    }
}
