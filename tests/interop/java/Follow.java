import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints partition, offset and value of each record, and commits, until it is ended: Follow <bootstrap> <topic> <group>. */
public class Follow {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("metadata.max.age.ms", "2000");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singleton(arguments[1]));
            while (true) {
                boolean any = false;
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(record.partition() + " " + record.offset() + " " + record.value());
                    any = true;
                }
                System.out.flush();
                if (any) {
                    try {
                        consumer.commitSync(Duration.ofSeconds(2));
                    } catch (KafkaException error) {
                        System.err.println(error);
                    }
                }
            }
        }
    }
}
