import java.time.Duration;
import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Creates a topic, writes to it in a transaction, and prints the records that a group reads: RoundTrip <bootstrap> <topic> <records>. For clients from 2.1 on. */
public class RoundTrip {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        int wanted = Integer.parseInt(arguments[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("request.timeout.ms", "20000");
        try (AdminClient admin = AdminClient.create(settings)) {
            admin.createTopics(Collections.singleton(new NewTopic(topic, 2, (short) 1))).all().get();
            write(settings, topic, wanted);
            read(settings, topic, wanted);
            System.out.println("groups " + admin.listConsumerGroups().all().get().size());
        }
    }

    private static void write(Properties common, String topic, int count) {
        Properties settings = new Properties();
        settings.putAll(common);
        settings.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "key " + number, "value " + number));
            }
            producer.commitTransaction();
        }
    }

    private static void read(Properties common, String topic, int count) {
        Properties settings = new Properties();
        settings.putAll(common);
        settings.put("group.id", topic);
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singleton(topic));
            for (int found = 0; found < count && System.nanoTime() < end; ) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println(record.key() + ": " + record.value());
                    found++;
                }
            }
            consumer.commitSync();
        }
    }
}
