import java.util.Collections;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * Two members of a group share four partitions, read and commit: OldGroup <bootstrap> <topic> <records>. Prints the records, and
 * the committed offsets after the second member has left. For clients from 0.9 to 2.x.
 */
public class OldGroup {
    private static final long PATIENCE_NS = 90_000_000_000L;
    private static final Map<String, String> FOUND = new ConcurrentHashMap<String, String>();

    /** A consumer in its own thread, because old consumers join a group while they poll. */
    private static class Member extends Thread {
        private final Properties settings;
        private final String topic;
        volatile int share = -1;
        volatile boolean ending;
        volatile Throwable failure;

        Member(Properties settings, String topic) {
            this.settings = settings;
            this.topic = topic;
            start();
        }

        @Override
        public void run() {
            KafkaConsumer<String, String> consumer = new KafkaConsumer<String, String>(settings);
            try {
                consumer.subscribe(Collections.singletonList(topic));
                while (!ending) {
                    take(consumer, consumer.poll(100));
                    share = consumer.assignment().size();
                }
            } catch (Throwable error) {
                failure = error;
            } finally {
                consumer.close();
            }
        }

        private void take(KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
            if (!records.isEmpty()) {
                try {
                    consumer.commitSync();
                } catch (CommitFailedException error) {
                    return; // another member has the partitions now, and reads the records again
                }
            }
            for (ConsumerRecord<String, String> each : records) {
                FOUND.put(each.partition() + " " + each.offset(), each.key() + ": " + each.value());
            }
        }

        void end() throws InterruptedException {
            ending = true;
            join();
        }
    }

    private interface Condition {
        boolean holds();
    }

    private static void until(String what, Member[] members, Condition condition) throws Exception {
        long end = System.nanoTime() + PATIENCE_NS;
        while (!condition.holds()) {
            for (Member each : members) {
                if (each.failure != null) {
                    throw new Exception("a member failed", each.failure);
                }
            }
            if (System.nanoTime() > end) {
                throw new Exception("never: " + what);
            }
            Thread.sleep(20);
        }
    }

    public static void main(String[] arguments) throws Exception {
        final int wanted = Integer.parseInt(arguments[2]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        final Member first = new Member(settings, arguments[1]);
        until("the first has all", new Member[] {first}, new Condition() {
            public boolean holds() { return first.share == 4; }
        });
        final Member second = new Member(settings, arguments[1]);
        final Member[] both = {first, second};
        until("both have half", both, new Condition() {
            public boolean holds() { return first.share == 2 && second.share == 2; }
        });
        until("all is read and committed", both, new Condition() {
            public boolean holds() { return FOUND.size() == wanted; }
        });
        second.end();
        until("the first has all again", both, new Condition() {
            public boolean holds() { return first.share == 4; }
        });
        first.end();
        until("both are closed", both, new Condition() {
            public boolean holds() { return !first.isAlive() && !second.isAlive(); }
        });
        for (String each : new TreeMap<String, String>(FOUND).values()) {
            System.out.println(each);
        }
        KafkaConsumer<String, String> reader = new KafkaConsumer<String, String>(settings);
        long committed = 0;
        for (int partition = 0; partition < 4; partition++) {
            committed += reader.committed(new TopicPartition(arguments[1], partition)).offset();
        }
        reader.close();
        System.out.println("committed " + committed);
    }
}
