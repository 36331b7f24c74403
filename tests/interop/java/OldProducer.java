import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Writes with an old producer, and prints the place of each record: OldProducer <bootstrap> <topic> <records> <codec> <acks>. For clients from 0.8.2 on. */
public class OldProducer {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("compression.type", arguments[3]);
        settings.put("acks", arguments[4]);
        settings.put("linger.ms", "20");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        KafkaProducer<String, String> producer = new KafkaProducer<String, String>(settings);
        List<Future<RecordMetadata>> sent = new ArrayList<Future<RecordMetadata>>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            String key = number % 5 == 0 ? null : "key " + number;
            String value = number % 7 == 3 ? null : "value " + number;
            sent.add(producer.send(new ProducerRecord<String, String>(arguments[1], 0, key, value)));
        }
        for (Future<RecordMetadata> each : sent) {
            System.out.println(each.get().offset());
        }
        producer.close();
    }
}
