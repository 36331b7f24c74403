import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.*;
import org.apache.kafka.connect.transforms.*;

/** Prints what Kafka Connect's header converters write for headers that its transforms make: transform, converter, bytes as hex. */
public class HeaderTexts {
    static final String[] LITERALS = {
        "", "x", " x ", "1", "128", "-129", "32768", "2147483648", "9223372036854775808", "1.0", "1.10", "1e3", "3.5e38", "1e38",
        "1e400", "+1", "007", "-0.0", "NaN", "true", "TRUE", " true ", "\"a b\"", "[]", "[1, 2]", "[1, 2.5]", "[1,\"a\"]",
        "[true, false]", "[1,2", "[a]", "[\"a\", \"b\"]", "[[1],[2]]", "[1,null]", "{}", "{\"a\": 1, \"b\": 2}", "{a:1}", "{1:2}",
        "{\"a\":[1]}", "2020-01-01", "2020-01-01T10:11:12.123Z", "2020-01-01T10:11:12Z", "10:11:12.123Z", "1970-01-01", "2020-13-01",
        "[2020-01-01]", "a:b", "1,2", "12:x", "[1]x", "1 2", "0x10", ".5", "1.", "é", "[1,]", "http://a/b", "{\"a\":1.5,\"b\":2}"};

    public static void main(String[] arguments) {
        Schema schema = SchemaBuilder.struct()
            .field("i", Schema.INT32_SCHEMA).field("f", Schema.FLOAT64_SCHEMA).field("s", Schema.OPTIONAL_STRING_SCHEMA)
            .field("t", Timestamp.SCHEMA).field("d", org.apache.kafka.connect.data.Date.SCHEMA).field("b", Schema.BYTES_SCHEMA)
            .field("z", Schema.BOOLEAN_SCHEMA).field("l", SchemaBuilder.array(Schema.OPTIONAL_STRING_SCHEMA).build())
            .field("n", Decimal.schema(2)).field("o", Schema.OPTIONAL_STRING_SCHEMA).build();
        Struct value = new Struct(schema).put("i", 7).put("f", 1e10).put("s", "q\"").put("t", new Date(1577873472123L))
            .put("d", new Date(1577836800000L)).put("b", "ab".getBytes()).put("z", true).put("l", Arrays.asList("a", "b\"c", null))
            .put("n", new java.math.BigDecimal("1.10"));
        JsonConverter plain = new JsonConverter(), json = new JsonConverter();
        plain.configure(Map.of("converter.type", "header", "schemas.enable", "false"));
        json.configure(Map.of("converter.type", "header"));
        StringConverter string = new StringConverter();
        string.configure(Map.of("converter.type", "header"));
        Map<String, HeaderConverter> converters = Map.of("Simple", new SimpleHeaderConverter(), "String", string, "Plain", plain, "Json", json);
        SourceRecord record = new SourceRecord(null, null, "t", 0, schema, value);
        for (Schema one : List.of(schema)) {
            for (Field field : one.fields()) {
                HeaderFrom.Value<SourceRecord> transform = new HeaderFrom.Value<>();
                transform.configure(Map.of("fields", field.name(), "headers", "h", "operation", "copy"));
                print("field " + field.name(), transform.apply(record), converters);
            }
        }
        for (String literal : LITERALS) {
            InsertHeader<SourceRecord> transform = new InsertHeader<>();
            transform.configure(Map.of("header", "h", "value.literal", literal));
            print("literal " + literal, transform.apply(record), converters);
        }
    }

    static void print(String what, SourceRecord record, Map<String, HeaderConverter> converters) {
        var header = record.headers().lastWithName("h");
        for (String name : List.of("Simple", "String", "Plain", "Json")) {
            byte[] bytes;
            try {
                bytes = converters.get(name).fromConnectHeader("t", "h", header.schema(), header.value());
            } catch (RuntimeException error) {
                continue;
            }
            System.out.println(what + "\t" + name + "\t" + (bytes == null ? "null" : java.util.HexFormat.of().formatHex(bytes)));
        }
    }
}
