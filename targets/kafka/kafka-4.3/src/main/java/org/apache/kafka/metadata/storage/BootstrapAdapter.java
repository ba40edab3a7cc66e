package org.apache.kafka.metadata.storage;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import kafka.server.KafkaConfig;
import kafka.tools.StorageTool;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import net.sourceforge.argparse4j.inf.Namespace;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.metadata.UserScramCredentialRecord;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.ControlRecordUtils;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.metadata.bootstrap.BootstrapDirectory;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.metadata.util.BatchFileWriter;
import org.apache.kafka.raft.DynamicVoter;
import org.apache.kafka.raft.DynamicVoters;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Subsystem `bootstrap`: {@link StorageTool} with a {@link KafkaConfig}, and the {@link Formatter} that it makes, on
 * real directories; {@link DynamicVoters}, {@link ScramParser} and {@link BootstrapDirectory}. After each call all files
 * are read by Kafka's own readers. Ids and salts that nobody said are random: an id is shown by a number, and of a
 * credential with such a salt no key is shown.
 */
public final class BootstrapAdapter implements Adapter {
    private static final List<String> NAMES = List.of("d0", "d1", "d2");
    private static final String SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";
    private static final Set<String> FILES = Set.of("meta.properties", "bootstrap.checkpoint", SNAPSHOT);
    private static final Pattern SALT = Pattern.compile("[\\[,]salt=\"?([^\",\\]]*)");
    private static final Pattern FORMATTING = Pattern.compile("Formatting (.*) (\\S*/(d\\d)) with metadata.version (\\S*)\\.");
    private static final Pattern UNREADABLE = Pattern.compile("I/O error trying to read log directory \\S*/(d\\d)\\. .*");

    private final Scratch scratch = new Scratch("bootstrap");
    private final Set<String> said = new HashSet<>();
    private final Set<String> salts = new HashSet<>();

    @Override
    public void init(JsonNode args) throws Exception {
        for (String name : NAMES) {
            Scratch.delete(path(name));
        }
        said.clear();
        salts.clear();
    }

    private Path path(String name) {
        return scratch.root().resolve(name);
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "format":
                return format(a);
            case "readBootstrap": {
                BootstrapMetadata found = new BootstrapDirectory(path(a.get("directory").textValue()).toString()).read();
                Map<String, Object> out = new LinkedHashMap<>();
                out.put("metadataVersion", found.featureLevel("metadata.version"));
                out.put("records", shown(found.records()));
                out.put("byDefault", found.source().equals("the default bootstrap"));
                return out;
            }
            case "parseVoters": {
                List<Object> out = new ArrayList<>();
                for (DynamicVoter v : DynamicVoters.parse(a.get("text").textValue()).voters().values()) {
                    out.add(List.of(v.nodeId(), v.directoryId().toString(), v.host(), v.port()));
                }
                return out;
            }
            case "parseScram":
                knowSalts(List.of(a.get("text").textValue()));
                return shown(ScramParser.parse(List.of(a.get("text").textValue()))).get(0);
            case "writeProperties":
                return write(a);
            case "writeBootstrap": {
                Path directory = Files.createDirectories(path(a.get("directory").textValue()));
                Path file = directory.resolve("bootstrap.checkpoint");
                Files.deleteIfExists(file);
                try (BatchFileWriter writer = BatchFileWriter.open(file)) {
                    for (JsonNode level : a.get("levels")) {
                        writer.append(new ApiMessageAndVersion(new FeatureLevelRecord().setName(level.get(0).textValue())
                            .setFeatureLevel(level.get(1).shortValue()), (short) 0));
                    }
                }
                return null;
            }
            case "losesProperties": {
                Path directory = path(a.get("directory").textValue());
                if (Files.deleteIfExists(directory.resolve("meta.properties")) && files(directory).isEmpty()) {
                    Scratch.delete(directory);
                }
                return null;
            }
            case "remove":
                Scratch.delete(path(a.get("directory").textValue()));
                return null;
            default:
                throw new UnknownOperation(op);
        }
    }

    private static List<String> texts(JsonNode array) {
        List<String> out = new ArrayList<>();
        array.forEach(text -> out.add(text.textValue()));
        return out;
    }

    private void knowSalts(List<String> arguments) {
        for (String text : arguments) {
            Matcher m = SALT.matcher(text);
            while (m.find()) {
                try {
                    salts.add(HexFormat.of().formatHex(Base64.getDecoder().decode(m.group(1))));
                } catch (IllegalArgumentException e) {
                    // it is refused
                }
            }
        }
    }

    // ---- format
    private KafkaConfig config(JsonNode a) {
        String roles = a.get("roles").textValue();
        int node = a.get("nodeId").intValue();
        boolean controls = !roles.equals("broker");
        Map<String, Object> props = new HashMap<>();
        props.put("process.roles", roles.equals("combined") ? "broker,controller" : roles);
        props.put("node.id", Integer.toString(node));
        List<String> directories = new ArrayList<>();
        texts(a.get("directories")).forEach(name -> directories.add(path(name).toString()));
        props.put("log.dirs", String.join(",", directories));
        props.put("metadata.log.dir", path(a.get("metadataDirectory").textValue()).toString());
        props.put("controller.listener.names", "CONTROLLER");
        props.put("listeners", switch (roles) {
            case "combined" -> "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093";
            case "controller" -> "CONTROLLER://localhost:9093";
            default -> "PLAINTEXT://localhost:9092";
        });
        if (a.get("staticVoters").booleanValue()) {
            props.put("controller.quorum.voters", (controls ? node : node == 0 ? 1 : 0) + "@localhost:9093");
        } else {
            props.put("controller.quorum.bootstrap.servers", "localhost:9093");
        }
        if (a.get("unstable").booleanValue()) {
            props.put("unstable.feature.versions.enable", "true");
        }
        return new KafkaConfig(props);
    }

    private Object format(JsonNode a) {
        String flag = a.get("flag").textValue();
        String voters = a.get("initialControllers").textValue();
        Map<String, Object> given = new HashMap<>();
        given.put("cluster_id", a.get("clusterId").textValue());
        given.put("ignore_formatted", a.get("ignoreFormatted").booleanValue());
        given.put("release_version", a.get("releaseVersion").textValue());
        given.put("feature", a.get("features").isEmpty() ? null : texts(a.get("features")));
        given.put("add_scram", a.get("scram").isEmpty() ? null : texts(a.get("scram")));
        given.put("standalone", flag.equals("standalone"));
        given.put("no_initial_controllers", flag.equals("noInitial"));
        given.put("initial_controllers", flag.equals("initial") ? voters : null);
        knowSalts(texts(a.get("scram")));
        if (flag.equals("initial")) {
            try {
                DynamicVoters.parse(voters).voters().values().forEach(v -> said.add(v.directoryId().toString()));
            } catch (IllegalArgumentException e) {
                // it is refused
            }
        }
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        StorageTool.runFormatCommand(new Namespace(given), config(a), new PrintStream(printed, true, StandardCharsets.UTF_8));
        return outcome(printed.toString(StandardCharsets.UTF_8));
    }

    private static Object outcome(String printed) {
        String version = null;
        Map<String, String> formatted = new TreeMap<>();
        TreeSet<String> ignored = new TreeSet<>();
        for (String line : printed.lines().toList()) {
            Matcher done = FORMATTING.matcher(line);
            Matcher failed = UNREADABLE.matcher(line);
            if (done.matches()) {
                formatted.put(done.group(3), done.group(1));
                if (version != null && !version.equals(done.group(4))) {
                    throw new AdapterFailure("two versions: " + printed);
                }
                version = done.group(4);
            } else if (failed.matches()) {
                ignored.add(failed.group(1));
            } else if (!line.startsWith("Bootstrap metadata: ")
                    && !line.equals("All of the log directories are already formatted.")) {
                throw new AdapterFailure("printed: " + line);
            }
        }
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("metadataVersion", version);
        out.put("formatted", formatted);
        out.put("ignored", ignored);
        return out;
    }

    private Object write(JsonNode a) throws IOException {
        Properties props = new Properties();
        int version = a.get("version").intValue();
        props.setProperty("version", Integer.toString(version));
        if (!a.get("clusterId").isNull()) {
            props.setProperty("cluster.id", a.get("clusterId").textValue());
        }
        if (!a.get("nodeId").isNull()) {
            props.setProperty(version == 0 ? "broker.id" : "node.id", a.get("nodeId").asText());
        }
        if (!a.get("directoryId").isNull()) {
            said.add(a.get("directoryId").textValue());
            props.setProperty("directory.id", a.get("directoryId").textValue());
        }
        Path directory = Files.createDirectories(path(a.get("directory").textValue()));
        PropertiesUtils.writePropertiesFile(props, directory.resolve("meta.properties").toString(), false);
        return null;
    }

    // ---- what is there
    @Override
    public Object observe() throws Exception {
        Map<String, String> names = new HashMap<>();
        Map<String, Object> out = new LinkedHashMap<>();
        for (String name : NAMES) {
            Path directory = path(name);
            Set<String> files = files(directory);
            if (!FILES.containsAll(files)) {
                throw new AdapterFailure("left in " + name + ": " + files);
            }
            Map<String, Object> of = new LinkedHashMap<>();
            of.put("properties", files.contains("meta.properties") ? properties(directory, names) : null);
            of.put("bootstrap", files.contains("bootstrap.checkpoint") ? bootstrap(directory) : null);
            of.put("snapshot", files.contains(SNAPSHOT) ? snapshot(directory, names) : null);
            out.put(name, of);
        }
        return out;
    }

    private static Set<String> files(Path directory) throws IOException {
        if (!Files.isDirectory(directory)) {
            return Set.of();
        }
        Set<String> out = new TreeSet<>();
        try (Stream<Path> all = Files.walk(directory)) {
            all.filter(Files::isRegularFile).forEach(file -> out.add(directory.relativize(file).toString()));
        }
        return out;
    }

    private String named(String id, Map<String, String> names) {
        return said.contains(id) ? id : names.computeIfAbsent(id, made -> "made-" + (names.size() + 1));
    }

    private Object properties(Path directory, Map<String, String> names) throws IOException {
        MetaProperties found;
        try {
            found = new MetaProperties.Builder(
                PropertiesUtils.readPropertiesFile(directory.resolve("meta.properties").toString())).build();
        } catch (RuntimeException e) {
            return "unreadable";
        }
        List<Object> out = new ArrayList<>();
        out.add(found.version().number());
        out.add(found.clusterId().orElse(null));
        out.add(found.nodeId().isPresent() ? found.nodeId().getAsInt() : null);
        out.add(found.directoryId().map(id -> named(id.toString(), names)).orElse(null));
        return out;
    }

    private Object bootstrap(Path directory) throws Exception {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        try (BatchFileReader reader = new BatchFileReader.Builder()
                .setPath(directory.resolve("bootstrap.checkpoint").toString()).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType batch = reader.next();
                if (!batch.isControl()) {
                    records.addAll(batch.batch().records());
                }
            }
        }
        return shown(records);
    }

    private List<Object> shown(List<ApiMessageAndVersion> records) {
        HexFormat hex = HexFormat.of();
        List<Object> out = new ArrayList<>();
        for (ApiMessageAndVersion record : records) {
            if (record.version() != 0) {
                throw new AdapterFailure("a record of version " + record.version());
            }
            if (record.message() instanceof FeatureLevelRecord level) {
                out.add(List.of(level.name(), level.featureLevel()));
            } else if (record.message() instanceof UserScramCredentialRecord of) {
                String salt = hex.formatHex(of.salt());
                boolean drawn = !salts.contains(salt);
                Map<String, Object> fields = new LinkedHashMap<>();
                fields.put("user", of.name());
                fields.put("mechanism", of.mechanism());
                fields.put("iterations", of.iterations());
                fields.put("salt", drawn ? null : salt);
                fields.put("storedKey", drawn ? null : hex.formatHex(of.storedKey()));
                fields.put("serverKey", drawn ? null : hex.formatHex(of.serverKey()));
                out.add(fields);
            } else {
                throw new AdapterFailure("another record: " + record);
            }
        }
        return out;
    }

    private Object snapshot(Path directory, Map<String, String> names) throws IOException {
        List<ControlRecordType> types = new ArrayList<>();
        Object version = null;
        List<Object> voters = new ArrayList<>();
        try (FileRecords records = FileRecords.open(directory.resolve(SNAPSHOT).toFile(), false)) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    ControlRecordType type = ControlRecordType.parse(record.key());
                    types.add(type);
                    if (type == ControlRecordType.KRAFT_VERSION) {
                        KRaftVersionRecord said = ControlRecordUtils.deserializeKRaftVersionRecord(record);
                        version = said.kRaftVersion();
                    } else if (type == ControlRecordType.KRAFT_VOTERS) {
                        for (VotersRecord.Voter v : ControlRecordUtils.deserializeVotersRecord(record).voters()) {
                            voters.add(voter(v, names));
                        }
                    }
                }
            }
        }
        if (!types.equals(List.of(ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.KRAFT_VERSION,
                ControlRecordType.KRAFT_VOTERS, ControlRecordType.SNAPSHOT_FOOTER))) {
            throw new AdapterFailure("other control records: " + types);
        }
        List<Object> out = new ArrayList<>();
        out.add(version);
        out.add(voters);
        return out;
    }

    private Object voter(VotersRecord.Voter v, Map<String, String> names) {
        if (v.endpoints().size() != 1 || !v.endpoints().iterator().next().name().equals("CONTROLLER")
                || v.kRaftVersionFeature().minSupportedVersion() != 0 || v.kRaftVersionFeature().maxSupportedVersion() != 1) {
            throw new AdapterFailure("another voter: " + v);
        }
        VotersRecord.Endpoint endpoint = v.endpoints().iterator().next();
        Uuid id = v.voterDirectoryId();
        return List.of(v.voterId(), named(id.toString(), names), endpoint.host(), endpoint.port());
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws Exception {
        scratch.close();
    }
}
