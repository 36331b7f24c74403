import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes as many records as each line of its input says, with one idempotent producer, and prints how many are acknowledged: Produce <bootstrap> <topic>. */
public class Produce {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("enable.idempotence", "true");
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("metadata.max.age.ms", "2000");
        int sent = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
             BufferedReader lines = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                List<Future<RecordMetadata>> waiting = new ArrayList<>();
                for (int count = Integer.parseInt(line); count > 0; count--, sent++) {
                    waiting.add(producer.send(new ProducerRecord<>(arguments[1], String.valueOf(sent), "java-" + sent)));
                }
                for (Future<RecordMetadata> each : waiting) {
                    each.get();
                }
                System.out.println(sent);
                System.out.flush();
            }
        }
    }
}
