import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;

/** Reads cases, a line of JSON each, and prints what Kafka Connect's transforms make of the record: a line of JSON each. */
public class Transforms {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new java.io.PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                answer = made(JSON.readTree(line));
            } catch (Exception error) {
                answer.put("error", String.valueOf(error.getMessage()));
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> made(JsonNode one) throws Exception {
        Map<String, String> config = new HashMap<>();
        one.get("config").fields().forEachRemaining(each -> config.put(each.getKey(), each.getValue().asText()));
        var name = "org.apache.kafka.connect.transforms." + one.get("type").asText();
        var transform = (Transformation<SinkRecord>) Class.forName(name).getDeclaredConstructor().newInstance();
        transform.configure(config);
        var key = converter(one, true);
        var value = converter(one, false);
        var topic = one.get("topic").asText();
        var ofKey = key.toConnectData(topic, bytes(one.get("key")));
        var ofValue = value.toConnectData(topic, bytes(one.get("value")));
        var headers = new org.apache.kafka.connect.header.ConnectHeaders();
        for (JsonNode each : one.get("headers")) {
            headers.add(each.get(0).asText(), new SimpleHeaderConverter().toConnectHeader(topic, each.get(0).asText(), bytes(each.get(1))));
        }
        var time = one.get("timestamp").isNull() ? null : (Long) one.get("timestamp").asLong();
        var record = transform.apply(new SinkRecord(topic, 3, ofKey.schema(), ofKey.value(), ofValue.schema(), ofValue.value(), 42L,
            time, TimestampType.CREATE_TIME, headers));
        Map<String, Object> answer = new LinkedHashMap<>();
        if (record != null) {
            answer.put("topic", record.topic());
            answer.put("key", text(key.fromConnectData(record.topic(), record.keySchema(), record.key())));
            answer.put("value", text(value.fromConnectData(record.topic(), record.valueSchema(), record.value())));
            var texts = new java.util.ArrayList<Object>();
            for (var each : record.headers()) {
                texts.add(new String[] {each.key(), text(new SimpleHeaderConverter().fromConnectHeader(topic, each.key(), each.schema(), each.value()))});
            }
            answer.put("headers", texts);
        }
        return answer;
    }

    static JsonConverter converter(JsonNode one, boolean isKey) {
        var made = new JsonConverter();
        made.configure(Map.of("schemas.enable", one.get("schemas").asText(), "converter.type", isKey ? "key" : "value"));
        return made;
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }
}
