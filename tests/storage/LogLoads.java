import java.io.*; import java.nio.*; import java.nio.file.*; import java.util.*; import java.util.concurrent.*;
import org.apache.kafka.common.compress.Compression; import org.apache.kafka.common.record.TimestampType; import org.apache.kafka.common.record.internal.*; import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler; import org.apache.kafka.storage.internals.log.*; import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import com.fasterxml.jackson.databind.*;
/** Loads directories as a broker does after a stop: standard input is a JSON array of {files, clean, recoveryPoint,
 * logStart}; standard output is a trace of two lines each, as in tests/recordings/log-loader.ndjson. */
public class LogLoads {
  static class Later implements Scheduler {
    List<Runnable> tasks = new ArrayList<>();
    public void startup() {} public void shutdown() {} public void resizeThreadPool(int n) {}
    public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { if (period < 0) tasks.add(task); return null; }
    void run() { while (!tasks.isEmpty()) tasks.remove(0).run(); }
  }
  static byte[] batch(long base, long last, int epoch, boolean whole) {
    ByteBuffer b = ByteBuffer.allocate(4096);
    MemoryRecordsBuilder m = MemoryRecords.builder(b, (byte) 2, Compression.NONE, TimestampType.CREATE_TIME, base, 1000L, -1L, (short) -1, -1, false, epoch);
    for (long o = base; o <= last; o++) m.appendWithOffset(o, 1000L, null, "v".getBytes());
    MemoryRecords r = m.build(); byte[] out = new byte[r.sizeInBytes()]; r.buffer().duplicate().get(out);
    if (!whole) out[out.length - 1] ^= 1;
    return out;
  }
  static byte[] log(Map<String,Object> c) throws IOException {
    ByteArrayOutputStream s = new ByteArrayOutputStream(); long next = 0;
    for (List<Object> b : (List<List<Object>>) c.get("batches")) { long base = ((Number) b.get(0)).longValue(), last = ((Number) b.get(1)).longValue();
      s.write(batch(base, last, (Integer) b.get(2), (Boolean) b.get(3))); next = last + 1; }
    if ((Boolean) c.get("torn")) { byte[] t = batch(next, next, 0, true); s.write(t, 0, 40); }
    return s.toByteArray();
  }
  static Object shown(Path p) throws Exception {
    String n = p.getFileName().toString();
    if (n.contains(".log")) {
      byte[] d = Files.readAllBytes(p); List<Object> out = new ArrayList<>(); int at = 0;
      while (d.length - at >= 61) { ByteBuffer b = ByteBuffer.wrap(d); int size = b.getInt(at + 8) + 12; if (at + size > d.length) break;
        ByteBuffer one = ByteBuffer.wrap(d, at, size).slice(); DefaultRecordBatch r = (DefaultRecordBatch) MemoryRecords.readableRecords(one).batches().iterator().next();
        out.add(List.of(r.baseOffset(), r.lastOffset(), r.partitionLeaderEpoch(), r.isValid())); at += size; }
      return new TreeMap<>(Map.of("batches", out, "torn", at < d.length)); }
    if (n.equals("leader-epoch-checkpoint")) { List<Object> out = new ArrayList<>(); List<String> l = Files.readAllLines(p); for (String s : l.subList(Math.min(2, l.size()), l.size())) { String[] w = s.split(" "); out.add(List.of(Integer.parseInt(w[0]), Long.parseLong(w[1]))); } return out; }
    if (n.contains(".txnindex")) return Files.size(p) == 34 ? "corrupt" : "";
    if (n.contains(".snapshot")) return Files.size(p) == 7 ? "corrupt" : "";
    return "";
  }
  public static void main(String[] a) throws Exception {
    ObjectMapper m = new ObjectMapper(); List<Map<String,Object>> in = m.readValue(System.in, List.class); Path root = Files.createTempDirectory("load");
    byte[] snap; { Path t = root.resolve("s-0"); Files.createDirectories(t); ProducerStateManager p = new ProducerStateManager(new TopicPartition("s", 0), t.toFile(), 300000, new ProducerStateManagerConfig(86400000, false), Time.SYSTEM); p.updateMapEndOffset(1); p.takeSnapshot(); snap = Files.readAllBytes(t.resolve("00000000000000000001.snapshot")); }
    int i = 0; PrintStream o = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    for (Map<String,Object> c : in) {
      Map<String,Object> files = (Map<String,Object>) c.get("files"); Path d = root.resolve("c" + i + "/t-0"); Files.createDirectories(d);
      for (Map.Entry<String,Object> f : files.entrySet()) { String n = f.getKey(); byte[] data = new byte[0];
        if (n.contains(".log")) data = log((Map<String,Object>) f.getValue());
        else if (n.contains(".snapshot")) data = f.getValue().equals("corrupt") ? new byte[]{0, 1, 9, 9, 9, 9, 0} : snap;
        else if (n.contains(".txnindex") && f.getValue().equals("corrupt")) data = ByteBuffer.allocate(34).putShort((short) 0).putLong(1).putLong(-9).putLong(-9).putLong(0).array();
        else if (n.equals("leader-epoch-checkpoint")) { StringBuilder s = new StringBuilder("0\n"); List<List<Object>> e = (List<List<Object>>) f.getValue(); s.append(e.size()).append("\n"); for (List<Object> x : e) s.append(x.get(0)).append(" ").append(x.get(1)).append("\n"); data = s.toString().getBytes(); }
        Files.write(d.resolve(n), data); }
      Map<String,Object> init = new LinkedHashMap<>(); init.put("i", 2 * i); init.put("op", "init"); init.put("args", Map.of("files", files)); o.println(m.writeValueAsString(init));
      Map<String,Object> out = new LinkedHashMap<>(); out.put("i", 2 * i + 1); out.put("op", "load"); Map<String,Object> args = new LinkedHashMap<>(); args.put("clean", c.get("clean")); args.put("recoveryPoint", c.get("recoveryPoint")); args.put("logStart", c.get("logStart")); out.put("args", args);
      Later later = new Later(); UnifiedLog log = null;
      try {
        LogConfig config = new LogConfig(Map.of("segment.index.bytes", 1024, "index.interval.bytes", 0));
        log = UnifiedLog.create(d.toFile(), config, ((Number) c.get("logStart")).longValue(), ((Number) c.get("recoveryPoint")).longValue(), later, new BrokerTopicStats(), Time.SYSTEM, 300000, new ProducerStateManagerConfig(86400000, false), 600000, new LogDirFailureChannel(10), (Boolean) c.get("clean"), Optional.empty(), new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        Map<String,Object> r = new LinkedHashMap<>(); r.put("logStart", log.logStartOffset()); r.put("recoveryPoint", log.recoveryPoint()); r.put("logEnd", log.logEndOffset()); out.put("result", r);
        later.run(); TreeMap<String,Object> left = new TreeMap<>(); try (DirectoryStream<Path> s = Files.newDirectoryStream(d)) { for (Path p : s) left.put(p.getFileName().toString(), shown(p)); }
        out.put("state", Map.of("files", left));
      } catch (Throwable t) { out.put("error", Map.of("class", t.getClass().getName(), "message", String.valueOf(t.getMessage()).replace(d.toString(), "$DIR"))); }
      finally { if (log != null) log.closeHandlers(); }
      o.println(m.writeValueAsString(out)); i++;
    }
    o.flush();
    try (java.util.stream.Stream<Path> all = Files.walk(root)) { all.sorted(Comparator.reverseOrder()).forEach(p -> p.toFile().delete()); }
  }
}
