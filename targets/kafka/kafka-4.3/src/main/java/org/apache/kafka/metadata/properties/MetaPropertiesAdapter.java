package org.apache.kafka.metadata.properties;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import kafkaspec.target.Adapter;
import kafkaspec.target.Scratch;
import org.apache.kafka.common.Uuid;

/**
 * {@link PropertiesUtils}, {@link MetaProperties} and {@link MetaPropertiesEnsemble}: files of the texts given, one
 * character a byte, and the check of a broker's directories as KafkaRaftServer asks for it. The adapter adds: the lines
 * of a file that was written are sorted, and the comments of java.util.Properties left out.
 */
public final class MetaPropertiesAdapter implements Adapter {
    private final Scratch scratch = new Scratch("meta-properties");
    private final File file = scratch.file("one.properties");

    @Override
    public void init(JsonNode args) {
    }

    @Override
    public Object apply(String op, JsonNode a) throws Exception {
        switch (op) {
            case "properties.read":
                return read(a.get("file").asText());
            case "metaProperties.read":
                return shown(new MetaProperties.Builder(read(a.get("file").asText())).build());
            case "metaProperties.write": {
                MetaProperties.Builder builder = new MetaProperties.Builder()
                    .setVersion(MetaPropertiesVersion.fromNumber(a.get("version").asInt()))
                    .setClusterId(text(a.get("clusterId")))
                    .setNodeId(number(a.get("nodeId")))
                    .setDirectoryId(text(a.get("directoryId")).map(Uuid::fromString));
                PropertiesUtils.writePropertiesFile(builder.build().toProperties(), file.getPath(), false);
                List<String> lines = new ArrayList<>(Files.readAllLines(file.toPath(), StandardCharsets.UTF_8));
                lines.removeIf(line -> line.startsWith("#"));
                lines.sort(null);
                return lines;
            }
            case "ensemble.verify":
                return verify(a);
            default:
                throw new UnknownOperation(op);
        }
    }

    private Properties read(String text) throws IOException {
        Files.write(file.toPath(), text.getBytes(StandardCharsets.ISO_8859_1));
        return PropertiesUtils.readPropertiesFile(file.getPath());
    }

    private Object verify(JsonNode a) throws IOException {
        MetaPropertiesEnsemble.Loader loader = new MetaPropertiesEnsemble.Loader();
        List<String> directories = new ArrayList<>();
        Iterator<Map.Entry<String, JsonNode>> files = a.get("files").fields();
        while (files.hasNext()) {
            Map.Entry<String, JsonNode> of = files.next();
            Path directory = Files.createDirectories(scratch.root().resolve(of.getKey()));
            Path one = directory.resolve(MetaPropertiesEnsemble.META_PROPERTIES_NAME);
            if (of.getValue().isNull()) {
                Files.deleteIfExists(one);
            } else {
                Files.write(one, of.getValue().asText().getBytes(StandardCharsets.ISO_8859_1));
            }
            directories.add(directory.toString());
        }
        MetaPropertiesEnsemble ensemble = loader.addLogDirs(directories).load();
        ensemble.verify(text(a.get("expectedClusterId")), number(a.get("expectedNodeId")),
            EnumSet.of(MetaPropertiesEnsemble.VerificationFlag.REQUIRE_AT_LEAST_ONE_VALID));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("clusterId", ensemble.clusterId().orElse(null));
        answer.put("nodeId", boxed(ensemble.nodeId()));
        answer.put("empty", names(ensemble.emptyLogDirs()));
        answer.put("failed", names(ensemble.errorLogDirs()));
        return answer;
    }

    private static List<String> names(Iterable<String> directories) {
        List<String> out = new ArrayList<>();
        directories.forEach(d -> out.add(new File(d).getName()));
        return out;
    }

    private static Object shown(MetaProperties of) {
        Map<String, Object> out = new LinkedHashMap<>();
        out.put("version", of.version().number());
        out.put("clusterId", of.clusterId().orElse(null));
        out.put("nodeId", boxed(of.nodeId()));
        out.put("directoryId", of.directoryId().map(Uuid::toString).orElse(null));
        return out;
    }

    private static Integer boxed(OptionalInt number) {
        return number.isPresent() ? number.getAsInt() : null;
    }

    private static Optional<String> text(JsonNode node) {
        return node.isNull() ? Optional.empty() : Optional.of(node.asText());
    }

    private static OptionalInt number(JsonNode node) {
        return node.isNull() ? OptionalInt.empty() : OptionalInt.of(node.asInt());
    }

    @Override
    public Object observe() {
        return Map.of();
    }

    @Override
    public String masked(String message) {
        return scratch.masked(message);
    }

    @Override
    public void close() throws IOException {
        scratch.close();
    }
}
