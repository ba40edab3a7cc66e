package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

/**
 * Calls of Kafka's own ProducerStateManager, read from standard input: "op|name=value|...", one a line. Of each it prints
 * the outcome and the state as JSON, as the recordings have them.
 */
public class ProducerStates {
    static long now = 1_000_000;
    static Path dir;
    static ProducerStateManager m;
    static int expirationMs, timeoutMs;
    static boolean verifies;
    static Map<String, String> a;
    static final Map<Long, VerificationGuard> guards = new HashMap<>();
    static final TopicPartition TP = new TopicPartition("t", 0);
    static final Time TIME = (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), new Class<?>[] {Time.class}, (p, f, x) ->
        switch (f.getName()) {
            case "milliseconds", "hiResClockMs" -> now;
            case "nanoseconds" -> now * 1_000_000;
            default -> throw new UnsupportedOperationException(f.getName());
        });

    static long num(String k) { return Long.parseLong(a.get(k)); }
    static int i(String k) { return Integer.parseInt(a.get(k)); }
    static short s(String k) { return Short.parseShort(a.get(k)); }
    static boolean flag(String k) { return Boolean.parseBoolean(a.get(k)); }
    static AppendOrigin origin() { return AppendOrigin.valueOf(a.get("origin")); }

    static void open() throws Exception {
        m = new ProducerStateManager(TP, dir.toFile(), timeoutMs, new ProducerStateManagerConfig(expirationMs, verifies), TIME);
    }

    static String optional(OptionalLong x) { return x.isPresent() ? "" + x.getAsLong() : "null"; }

    static String batch(BatchMetadata b) {
        return "[" + b.firstSeq() + "," + b.lastSeq() + "," + b.firstOffset() + "," + b.lastOffset() + "," + b.timestamp() + "]";
    }

    static String state() throws Exception {
        StringJoiner producers = new StringJoiner(",", "[", "]");
        for (ProducerStateEntry e : new TreeMap<>(m.activeProducers()).values()) {
            StringJoiner batches = new StringJoiner(",", "[", "]");
            for (BatchMetadata b : e.batchMetadata()) batches.add(batch(b));
            producers.add("{\"producerId\":" + e.producerId() + ",\"epoch\":" + e.producerEpoch() + ",\"coordinatorEpoch\":"
                + e.coordinatorEpoch() + ",\"lastTimestamp\":" + e.lastTimestamp() + ",\"lastSeq\":" + e.lastSeq()
                + ",\"currentTxnFirstOffset\":" + optional(e.currentTxnFirstOffset()) + ",\"batches\":" + batches + "}");
        }
        StringJoiner verification = new StringJoiner(",", "{", "}");
        for (long id : new long[] {1, 2, 3}) {
            VerificationStateEntry v = m.verificationStateEntry(id);
            if (v != null)
                verification.add("\"" + id + "\":{\"lowestSequence\":" + v.lowestSequence() + ",\"epoch\":" + v.epoch()
                    + ",\"supportsEpochBump\":" + v.supportsEpochBump() + ",\"timestamp\":" + v.timestamp() + "}");
        }
        TreeSet<Long> offsets = new TreeSet<>();
        for (long x = 0; x < 3000; x++) if (m.snapshotFileForOffset(x).isPresent()) offsets.add(x);
        Optional<Long> unstable = m.firstUnstableOffset().map(o -> o.messageOffset);
        return "{\"now\":" + now + ",\"mapEndOffset\":" + m.mapEndOffset() + ",\"firstUnstableOffset\":"
            + unstable.map(String::valueOf).orElse("null") + ",\"firstUndecidedOffset\":" + optional(m.firstUndecidedOffset())
            + ",\"producers\":" + producers + ",\"verification\":" + verification + ",\"snapshots\":"
            + offsets.toString().replace(" ", "") + ",\"hasLateTransaction\":" + m.hasLateTransaction(now) + "}";
    }

    static String completed(Optional<CompletedTxn> done) {
        if (done.isEmpty()) return "null";
        CompletedTxn c = done.get();
        long stable = m.lastStableOffset(c);
        m.completeTxn(c);
        return "{\"producerId\":" + c.producerId() + ",\"firstOffset\":" + c.firstOffset() + ",\"lastOffset\":" + c.lastOffset()
            + ",\"isAborted\":" + c.isAborted() + ",\"lastStableOffset\":" + stable + "}";
    }

    static String started(ProducerAppendInfo info) {
        StringJoiner j = new StringJoiner(",", "{\"startedTransactions\":[", "]}");
        for (TxnMetadata t : info.startedTransactions()) j.add("" + t.firstOffset.messageOffset);
        return j.toString();
    }

    static RecordBatch data() {
        int count = (int) (num("lastOffset") - num("firstOffset") + 1);
        SimpleRecord[] records = new SimpleRecord[count];
        for (int n = 0; n < count; n++) records[n] = new SimpleRecord(num("timestamp"), new byte[] {1});
        return MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, num("firstOffset"), Compression.NONE, TimestampType.CREATE_TIME,
            num("producerId"), s("producerEpoch"), i("firstSeq"), 0, flag("transactional"), records).batches().iterator().next();
    }

    static EndTransactionMarker marker() {
        return new EndTransactionMarker(ControlRecordType.valueOf(a.get("type")), i("coordinatorEpoch"));
    }

    static String entry(ProducerStateEntry e) {
        BatchMetadata b = e.isEmpty() ? null : e.batchMetadata().iterator().next();
        return "[" + e.producerId() + "," + e.producerEpoch() + "," + e.lastSeq() + "," + e.lastDataOffset() + ","
            + (b == null ? 0 : b.offsetDelta()) + "," + e.lastTimestamp() + "," + e.coordinatorEpoch() + ","
            + e.currentTxnFirstOffset().orElse(-1) + "]";
    }

    static String call(String op) throws Exception {
        switch (op) {
            case "init":
                now = 1_000_000;
                expirationMs = 86_400_000;
                timeoutMs = 300_000;
                verifies = !"false".equals(a.get("transactionVerificationEnabled"));
                if (dir != null) Utils.delete(dir.toFile());
                dir = Files.createTempDirectory("t-0");
                guards.clear();
                open();
                return "null";
            case "appendDataBatch": {
                ProducerAppendInfo info = m.prepareUpdate(num("producerId"), origin());
                info.appendDataBatch(s("producerEpoch"), i("firstSeq"), i("lastSeq"), num("timestamp"),
                    new LogOffsetMetadata(num("firstOffset")), num("lastOffset"), flag("transactional"));
                m.update(info);
                m.updateMapEndOffset(num("lastOffset") + 1);
                return started(info);
            }
            case "appendEndTxnMarker": {
                ProducerAppendInfo info = m.prepareUpdate(num("producerId"), origin());
                Optional<CompletedTxn> done = info.appendEndTxnMarker(marker(), s("producerEpoch"), num("offset"),
                    num("timestamp"), s("transactionVersion"));
                m.update(info);
                String answer = completed(done);
                m.updateMapEndOffset(num("offset") + 1);
                return answer;
            }
            case "produce": {  // the checks of UnifiedLog.analyzeAndValidateProducerState that are private, then its own code
                RecordBatch b = data();
                ProducerStateEntry e = m.activeProducers().get(b.producerId());
                if (origin() == AppendOrigin.CLIENT && e != null) {
                    Optional<BatchMetadata> there = e.findDuplicateBatch(b);
                    if (there.isPresent()) return "{\"duplicate\":" + batch(there.get()) + "}";
                }
                boolean open = e != null && e.currentTxnFirstOffset().isPresent() && e.producerEpoch() == b.producerEpoch();
                if (origin() != AppendOrigin.REPLICATION && b.isTransactional() && !open) {
                    if (e != null && b.producerEpoch() < e.producerEpoch())
                        throw new org.apache.kafka.common.errors.InvalidProducerEpochException("");
                    VerificationStateEntry v = m.verificationStateEntry(b.producerId());
                    VerificationGuard mine = v == null ? VerificationGuard.SENTINEL : v.verificationGuard();
                    if (verifies && !mine.verify(guards.getOrDefault(num("guard"), VerificationGuard.SENTINEL)))
                        throw new org.apache.kafka.common.errors.InvalidTxnStateException("");
                }
                Map<Long, ProducerAppendInfo> infos = new HashMap<>();
                UnifiedLog.updateProducers(m, b, infos, Optional.empty(), origin(), (short) -1);
                String answer = started(infos.get(b.producerId()));
                infos.values().forEach(m::update);
                m.updateMapEndOffset(b.lastOffset() + 1);
                return answer;
            }
            case "endTransaction": {
                RecordBatch b = MemoryRecords.withEndTransactionMarker(num("offset"), num("timestamp"), 0, num("producerId"),
                    s("producerEpoch"), marker()).batches().iterator().next();
                Map<Long, ProducerAppendInfo> infos = new HashMap<>();
                Optional<CompletedTxn> done = UnifiedLog.updateProducers(m, b, infos, Optional.empty(), origin(), s("transactionVersion"));
                infos.values().forEach(m::update);
                String answer = completed(done);
                m.updateMapEndOffset(num("offset") + 1);
                return answer;
            }
            case "findDuplicateBatch": {
                ProducerStateEntry e = m.activeProducers().get(num("producerId"));
                short epoch = s("producerEpoch");
                int first = i("firstSeq"), last = i("lastSeq");
                RecordBatch b = (RecordBatch) Proxy.newProxyInstance(RecordBatch.class.getClassLoader(), new Class<?>[] {RecordBatch.class},
                    (p, f, x) -> switch (f.getName()) {
                        case "producerEpoch" -> epoch;
                        case "baseSequence" -> first;
                        case "lastSequence" -> last;
                        default -> throw new UnsupportedOperationException(f.getName());
                    });
                return e == null ? "null" : e.findDuplicateBatch(b).map(ProducerStates::batch).orElse("null");
            }
            case "maybeCreateVerificationStateEntry": case "startVerification": {
                if (op.equals("startVerification")) {
                    ProducerStateEntry e = m.activeProducers().get(num("producerId"));
                    if (e != null && s("epoch") < e.producerEpoch()) throw new org.apache.kafka.common.errors.InvalidProducerEpochException("");
                    if (e != null && e.currentTxnFirstOffset().isPresent() && e.producerEpoch() == s("epoch")) return "0";
                }
                VerificationStateEntry v = m.maybeCreateVerificationStateEntry(num("producerId"), i("sequence"), s("epoch"), flag("supportsEpochBump"));
                Long number = guards.entrySet().stream().filter(g -> g.getValue().equals(v.verificationGuard())).map(Map.Entry::getKey)
                    .findFirst().orElse(null);
                if (number == null) guards.put(number = guards.size() + 1L, v.verificationGuard());
                return op.equals("startVerification") ? "" + number : "{\"lowestSequence\":" + v.lowestSequence() + ",\"epoch\":" + v.epoch()
                    + ",\"supportsEpochBump\":" + v.supportsEpochBump() + "}";
            }
            case "clearVerificationStateEntry": m.clearVerificationStateEntry(num("producerId")); return "null";
            case "onHighWatermarkUpdated": m.onHighWatermarkUpdated(num("highWatermark")); return "null";
            case "removeExpiredProducers": m.removeExpiredProducers(num("currentTimeMs")); return "null";
            case "advance": now += num("ms"); return "null";
            case "takeSnapshot": m.takeSnapshot(); return "null";
            case "truncateAndReload": m.truncateAndReload(num("logStartOffset"), num("logEndOffset"), num("currentTimeMs")); return "null";
            case "truncateFullyAndStartAt": m.truncateFullyAndStartAt(num("offset")); return "null";
            case "onLogStartOffsetIncremented": m.onLogStartOffsetIncremented(num("logStartOffset")); return "null";
            case "deleteSnapshotsBefore": m.deleteSnapshotsBefore(num("offset")); return "null";
            case "removeStraySnapshots": {
                List<Long> bases = new ArrayList<>();
                for (String x : a.get("segmentBaseOffsets").split(",")) if (!x.isEmpty()) bases.add(Long.parseLong(x));
                m.removeStraySnapshots(bases);
                return "null";
            }
            case "reopen": open(); return "null";
            case "corruptSnapshot": {
                Path file = m.snapshotFileForOffset(num("offset")).get().file().toPath();
                byte[] bytes = Files.readAllBytes(file);
                bytes[0] = (byte) 255;
                Files.write(file, bytes);
                return "null";
            }
            case "writeSnapshot": {
                Map<Long, ProducerStateEntry> all = new LinkedHashMap<>();
                for (String line : a.get("entries").split(";")) {
                    if (line.isEmpty()) continue;
                    long[] x = Arrays.stream(line.split(",")).mapToLong(Long::parseLong).toArray();
                    ProducerStateEntry e = new ProducerStateEntry(x[0], (short) x[1], (int) x[6], x[5], x[7] < 0 ? OptionalLong.empty() : OptionalLong.of(x[7]));
                    if (x[3] >= 0) e.addBatch((short) x[1], (int) x[2], x[3], (int) x[4], x[5]);
                    all.put(x[0], e);
                }
                File file = File.createTempFile("snapshot", "");
                ProducerStateManager.writeSnapshot(file, all, false);
                String hex = "\"" + HexFormat.of().formatHex(Files.readAllBytes(file.toPath())) + "\"";
                file.delete();
                return hex;
            }
            case "readSnapshot": {
                File file = File.createTempFile("snapshot", "");
                Files.write(file.toPath(), HexFormat.of().parseHex(a.get("file")));
                try {
                    StringJoiner j = new StringJoiner(",", "[", "]");
                    for (ProducerStateEntry e : ProducerStateManager.readSnapshot(file)) j.add(entry(e));
                    return j.toString();
                } finally {
                    file.delete();
                }
            }
            default: throw new IllegalStateException(op);
        }
    }

    public static void main(String[] arguments) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : new String(System.in.readAllBytes()).split("\n")) {
            if (line.isEmpty()) continue;
            String[] parts = line.split("\\|");
            a = new HashMap<>();
            for (int n = 1; n < parts.length; n++) {
                int at = parts[n].indexOf('=');
                a.put(parts[n].substring(0, at), parts[n].substring(at + 1));
            }
            String outcome;
            try {
                outcome = "\"result\":" + call(parts[0]);
            } catch (RuntimeException | java.io.IOException e) {
                outcome = "\"error\":{\"class\":\"" + e.getClass().getName() + "\"}";
            }
            out.append("{").append(outcome).append(",\"state\":").append(state()).append("}\n");
        }
        Utils.delete(dir.toFile());
        System.out.print(out);
    }
}
