import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.TimeoutException;

/** A copier with Kafka's Java client. It runs until it is killed. It exits with code 3 if its producer cannot continue. */
public final class Copier {
    private static final Duration POLL = Duration.ofMillis(200);
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final String output;
    private final double abortedShare;
    private final Random random;

    private Copier(Map<String, String> options) {
        output = options.get("output");
        abortedShare = Double.parseDouble(options.get("aborted-share"));
        random = new Random(Long.parseLong(options.get("seed")));
        Properties common = new Properties();
        common.put("bootstrap.servers", options.get("bootstrap"));
        common.put("reconnect.backoff.max.ms", "200");
        common.put("default.api.timeout.ms", "30000");
        for (String side : new String[] {"key", "value"}) {
            common.put(side + ".serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            common.put(side + ".deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        }
        Properties reading = new Properties();
        reading.putAll(common);
        reading.put("group.id", options.get("group"));
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("session.timeout.ms", options.get("session-timeout-ms"));
        reading.put("max.poll.records", options.get("batch"));
        consumer = new KafkaConsumer<>(reading);
        Properties writing = new Properties();
        writing.putAll(common);
        writing.put("transactional.id", options.get("name"));
        writing.put("transaction.timeout.ms", options.get("transaction-timeout-ms"));
        producer = new KafkaProducer<>(writing);
        consumer.subscribe(Set.of(options.get("input")));
    }

    private void run() {
        producer.initTransactions();
        while (true) {
            ConsumerRecords<byte[], byte[]> found = consumer.poll(POLL);
            if (!found.isEmpty()) {
                copy(found);
            }
        }
    }

    private void copy(ConsumerRecords<byte[], byte[]> found) {
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> each : found) {
                producer.send(new ProducerRecord<>(output, each.partition(), each.key(), each.value()));
                ends.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            if (random.nextDouble() < abortedShare) {
                abort();
            } else {
                commit();
            }
        } catch (ApplicationRecoverableException | OutOfOrderSequenceException | AuthorizationException fatal) {
            throw fatal;
        } catch (KafkaException error) {
            abort();
        }
    }

    private void commit() {
        while (true) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException late) {
                System.err.println("commit takes long: " + late);
            }
        }
    }

    private void abort() {
        producer.abortTransaction();
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        committed.forEach((place, offset) -> consumer.seek(place, offset == null ? 0L : offset.offset()));
    }

    public static void main(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (String each : arguments) {
            int at = each.indexOf('=');
            options.put(each.substring(0, at), each.substring(at + 1));
        }
        try {
            new Copier(options).run();
        } catch (KafkaException error) {
            System.err.println("copier " + options.get("name") + " ends: " + error);
        }
        Runtime.getRuntime().halt(3);
    }
}
