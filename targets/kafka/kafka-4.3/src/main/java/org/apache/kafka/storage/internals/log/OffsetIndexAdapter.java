package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/**
 * {@link OffsetIndex}. Not offered: {@code pagesTouched}, the slots that a search reads, which the class does not tell;
 * {@code judge}, a file beside its log, which is the audit's question.
 */
public final class OffsetIndexAdapter extends IndexAdapter<OffsetIndex> {
    public OffsetIndexAdapter() {
        super("offset-index", 8, 43);
    }

    @Override
    public Collection<String> operations() {
        return List.of(
            "append", "lookup", "entry", "fetchUpperBoundOffset", "canAppendOffset", "relativeOffset", "truncateTo",
            "truncate", "resize", "trimToValidSize", "reset", "sanityCheck", "close", "closeHandler", "open", "openNew",
            "openFile", "fill");
    }

    @Override
    OffsetIndex make(File file, long baseOffset, int maxIndexSize, boolean writable) throws IOException {
        return new OffsetIndex(file, baseOffset, maxIndexSize, writable);
    }

    @Override
    Object own(OffsetIndex index, String op, JsonNode a) {
        switch (op) {
            case "append":
                index.append(a.get("offset").asLong(), a.get("position").asInt());
                return null;
            case "lookup":
                return shown(index.lookup(a.get("offset").asLong()));
            case "fetchUpperBoundOffset":
                // of the first argument only the position is read
                OffsetPosition from = new OffsetPosition(index.baseOffset(), a.get("position").asInt());
                return index.fetchUpperBoundOffset(from, a.get("size").asInt()).map(OffsetIndexAdapter::shown).orElse(null);
            case "canAppendOffset":
                return index.canAppendOffset(a.get("offset").asLong());
            case "relativeOffset":
                return index.relativeOffset(a.get("offset").asLong());
            default:
                throw new UnknownOperation(op);
        }
    }

    @Override
    Object entry(OffsetIndex index, int n) {
        return shown(index.entry(n));
    }

    @Override
    void truncate(OffsetIndex index) {
        index.truncate();
    }

    @Override
    void appendNth(OffsetIndex index, long baseOffset, int n) {
        index.append(baseOffset + n, 10 * n);
    }

    @Override
    void showLast(OffsetIndex index, Map<String, Object> state) {
        state.put("lastOffset", index.lastOffset());
    }

    private static long[] shown(OffsetPosition p) {
        return new long[] {p.offset(), p.position()};
    }
}
