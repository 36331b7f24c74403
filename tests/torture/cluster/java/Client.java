import java.io.IOException;
import java.io.PrintStream;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The client of ../client.py, with Kafka's own library. ../client.py explains the lines of its output. */
public final class Client {
    private static final int TURN_MS = 50;
    private static final int COMMIT_EACH_MS = 500;
    private static final PrintStream OUT =
        new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), false, StandardCharsets.UTF_8);
    private static volatile boolean ended = false;

    public static void main(String[] arguments) throws InterruptedException {
        Thread watcher = new Thread(Client::watchInput);
        watcher.setDaemon(true);
        watcher.start();
        if (arguments[0].equals("produce")) {
            produce(arguments[1], arguments[2], Integer.parseInt(arguments[3]), arguments[4], Integer.parseInt(arguments[5]));
        } else {
            consume(arguments[1], arguments[2], arguments[3]);
        }
        OUT.flush();
    }

    private static void watchInput() {
        try {
            System.in.readAllBytes();
        } catch (IOException error) {
            System.err.println(error);
        }
        ended = true;
    }

    private static synchronized void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        OUT.print(line.append('\n'));
    }

    private static Properties common(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "6000");
        settings.put("reconnect.backoff.max.ms", "500");
        return settings;
    }

    private static void produce(String bootstrap, String topic, int partitions, String name, int rate) throws InterruptedException {
        Properties settings = common(bootstrap);
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("delivery.timeout.ms", Integer.toString(Integer.MAX_VALUE));
        settings.put("max.block.ms", Integer.toString(Integer.MAX_VALUE));
        settings.put("linger.ms", "5");
        int[] sent = new int[partitions];
        int all = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            while (!ended) {
                for (int count = 0; count < Math.max(1, rate * TURN_MS / 1000); count++) {
                    int index = all++ % partitions;
                    int sequence = sent[index]++;
                    String value = name + " " + index + " " + sequence;
                    producer.send(new ProducerRecord<>(topic, index, null, value), (told, error) -> {
                        if (error == null) {
                            say("A", index, sequence, told.offset());
                        } else {
                            say("F", index, sequence, error.getClass().getSimpleName());
                        }
                    });
                }
                OUT.flush();
                Thread.sleep(TURN_MS);
            }
            producer.flush();
        }
        for (int index = 0; index < partitions; index++) {
            say("E", index, sent[index]);
        }
    }

    private static void consume(String bootstrap, String topic, String group) {
        Properties settings = common(bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "1000");
        settings.put("fetch.max.wait.ms", "100");
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    positions.keySet().removeAll(partitions);
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    partitions.forEach(each -> say("+", each.partition()));
                }
            });
            long due = System.currentTimeMillis() + COMMIT_EACH_MS;
            while (!ended) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(TURN_MS))) {
                    say("R", each.partition(), each.offset(), each.value());
                    positions.put(new TopicPartition(topic, each.partition()), new OffsetAndMetadata(each.offset() + 1));
                }
                if (!positions.isEmpty() && System.currentTimeMillis() > due) {
                    due = System.currentTimeMillis() + COMMIT_EACH_MS;
                    consumer.commitAsync(Map.copyOf(positions), (told, error) -> {
                        if (error == null) {
                            told.forEach((where, what) -> say("C", where.partition(), what.offset()));
                        }
                    });
                    positions.clear();
                }
                OUT.flush();
            }
        }
    }
}
