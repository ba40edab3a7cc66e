package org.apache.kafka.storage.internals.log;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.List;

/** Kafka's own TransactionIndex: makes the calls that it reads, a JSON line each, and writes them down with what came of them. */
public class TransactionIndexes {
    static final ObjectMapper JSON = new ObjectMapper();
    static File dir;
    static long base;
    static TransactionIndex index;

    static TransactionIndex open(long offset) throws Exception {
        base = offset;
        return new TransactionIndex(offset, LogFileUtils.transactionIndexFile(dir, offset));
    }

    static ArrayNode entries(List<AbortedTxn> all) {
        ArrayNode out = JSON.createArrayNode();
        for (AbortedTxn t : all)
            out.addArray().add(t.producerId()).add(t.firstOffset()).add(t.lastOffset()).add(t.lastStableOffset());
        return out;
    }

    static Object call(String op, JsonNode a) throws Exception {
        switch (op) {
            case "init":
                dir = Files.createTempDirectory("txn").toFile();
                index = open(a.path("startOffset").asLong(0));
                return null;
            case "append":
                index.append(new AbortedTxn(a.get("producerId").asLong(), a.get("firstOffset").asLong(),
                    a.get("lastOffset").asLong(), a.get("lastStableOffset").asLong()));
                return null;
            case "collectAbortedTxns": {
                TxnIndexSearchResult r =
                    index.collectAbortedTxns(a.get("fetchOffset").asLong(), a.get("upperBoundOffset").asLong());
                ObjectNode out = JSON.createObjectNode();
                out.set("abortedTransactions", entries(r.abortedTransactions()));
                return out.put("isComplete", r.isComplete());
            }
            case "roll": index = open(a.get("startOffset").asLong()); return null;
            case "truncateTo": index.truncateTo(a.get("offset").asLong()); return null;
            case "reset": index.reset(); return null;
            case "sanityCheck": index.sanityCheck(); return null;
            case "reopen": index.close(); index = open(base); return null;
            case "crash":
                index.close();
                if (index.file().exists())
                    try (RandomAccessFile f = new RandomAccessFile(index.file(), "rw")) {
                        f.setLength(Math.max(0, f.length() - a.get("lostBytes").asLong()));
                    }
                index = open(base);
                return null;
            case "file": {
                byte[] data = index.file().exists() ? Files.readAllBytes(index.file().toPath()) : new byte[0];
                return HexFormat.of().formatHex(data, 0, data.length / 34 * 34);
            }
            case "read": {
                File other = new File(dir, "other");
                Files.write(other.toPath(), HexFormat.of().parseHex(a.get("content").asText()));
                try (TransactionIndexReader r = new TransactionIndexReader(other)) {
                    return entries(r.index.allAbortedTxns());
                }
            }
        }
        throw new IllegalStateException(op);
    }

    static class TransactionIndexReader implements AutoCloseable {
        final TransactionIndex index;
        TransactionIndexReader(File file) throws Exception { index = new TransactionIndex(0, file); }
        public void close() throws Exception { index.close(); }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        int i = 0;
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode call = JSON.readTree(line);
            ObjectNode record = JSON.createObjectNode();
            record.put("i", i++).put("op", call.get("op").asText()).set("args", call.get("args"));
            try {
                record.set("result", JSON.valueToTree(call(call.get("op").asText(), call.get("args"))));
            } catch (Exception e) {
                String message = String.valueOf(e.getMessage()).replace(dir.getPath(), "$DIR");
                record.putObject("error").put("class", e.getClass().getName()).put("message", message);
            }
            ObjectNode state = JSON.createObjectNode();
            state.set("all", entries(index.allAbortedTxns()));
            state.put("isEmpty", index.isEmpty());
            state.put("fileSize", index.file().exists() ? index.file().length() : 0);
            state.put("exists", index.file().exists());
            record.set("state", state);
            out.println(record);
        }
        out.flush();
    }
}
