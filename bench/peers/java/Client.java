import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;

import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.AsyncCallback;
import org.apache.activemq.command.ActiveMQQueue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** Runs the commands of its standard input, one per line, and prints one line for each. Usage: Client PORT. */
public class Client {
    private static final int WINDOW = 256;
    private static final int LATEST_MS = 30_000;
    private final String address;

    private Client(String address) {
        this.address = address;
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client("tcp://127.0.0.1:" + arguments[0] + "?tcpNoDelay=true");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = client.perform(line.trim().split(" "));
            } catch (JMSException | RuntimeException error) {
                answer = "error " + error;
            }
            System.out.println(answer);
        }
    }

    private String perform(String[] words) throws Exception {
        switch (words[0]) {
            case "produce":
                return produce(words[1], number(words[2]), number(words[3]), words[4].equals("0"), Long.parseLong(words[5]),
                        Double.parseDouble(words[6]));
            case "consume":
                return consume(words[1], Long.parseLong(words[2]), number(words[3]));
            case "stored":
                return Long.toString(stored(words[1]));
            case "delays":
                return delays(names(words[1].split(","), number(words[5])), number(words[2]), number(words[3]),
                        Double.parseDouble(words[4]), Long.parseLong(words[6]), Double.parseDouble(words[7]));
            case "delete":
                return delete(words[1], number(words[2]));
            default:
                return "error unknown command";
        }
    }

    private static String[] names(String[] topics, int partitions) {
        String[] queues = new String[topics.length * partitions];
        for (int i = 0; i < queues.length; i++) {
            queues[i] = topics[i / partitions] + "-" + i % partitions;
        }
        return queues;
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private ActiveMQConnection connect(boolean isAsync, int prefetch) throws JMSException {
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(address);
        factory.setUseAsyncSend(isAsync);
        factory.setCopyMessageOnSend(false);
        factory.setOptimizeAcknowledge(true);
        factory.getPrefetchPolicy().setQueuePrefetch(prefetch);
        ActiveMQConnection connection = (ActiveMQConnection) factory.createConnection();
        connection.start();
        return connection;
    }

    private static BytesMessage message(Session session, int bytes) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        byte[] value = new byte[bytes];
        Arrays.fill(value, (byte) 'v');
        message.writeBytes(value);
        return message;
    }

    /** Sends a batch as one transaction. Single messages are confirmed one by one, with up to WINDOW in flight. */
    private String produce(String queue, int bytes, int batch, boolean isAsync, long messages, double seconds) throws Exception {
        try (Connection connection = connect(isAsync || batch == 1, 1000)) {
            Session session = connection.createSession(batch > 1, batch > 1 ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
            ActiveMQMessageProducer producer = (ActiveMQMessageProducer) session.createProducer(session.createQueue(queue));
            producer.setDeliveryMode(DeliveryMode.PERSISTENT);
            long before = isAsync ? stored(queue) : 0;
            Semaphore window = new Semaphore(WINDOW);
            AtomicReference<JMSException> failed = new AtomicReference<>();
            AsyncCallback confirmed = new AsyncCallback() {
                @Override
                public void onSuccess() {
                    window.release();
                }

                @Override
                public void onException(JMSException error) {
                    failed.set(error);
                    window.release();
                }
            };
            long began = System.nanoTime();
            long deadline = began + (long) (seconds * 1e9);
            long sent = 0;
            while (sent < messages && System.nanoTime() < deadline && failed.get() == null) {
                for (int i = 0; i < batch; i++) {
                    Message message = message(session, bytes);
                    if (batch > 1 || isAsync) {
                        producer.send(message);
                    } else {
                        window.acquire();
                        producer.send(message, confirmed);
                    }
                }
                sent += batch;
                if (batch > 1) {
                    session.commit();
                }
            }
            window.acquire(WINDOW);
            if (failed.get() != null) {
                throw failed.get();
            }
            while (isAsync && stored(queue) < before + sent) {
                Thread.sleep(1);
            }
            return sent / batch + " " + sent + " " + (System.nanoTime() - began) / 1e9;
        }
    }

    private String consume(String queue, long messages, int pull) throws Exception {
        try (Connection connection = connect(false, pull)) {
            Session session = connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            long began = System.nanoTime();
            for (long came = 0; came < messages; came++) {
                if (consumer.receive(LATEST_MS) == null) {
                    return "error " + came + " of " + messages + " messages came";
                }
            }
            return messages + " " + messages + " " + (System.nanoTime() - began) / 1e9;
        }
    }

    private long stored(String queue) throws JMSException {
        try (Connection connection = connect(false, 1)) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue answers = session.createTemporaryQueue();
            MessageConsumer consumer = session.createConsumer(answers);
            MessageProducer producer = session.createProducer(session.createQueue("ActiveMQ.Statistics.Destination." + queue));
            Message request = session.createMessage();
            request.setJMSReplyTo(answers);
            producer.send(request);
            MapMessage answer = (MapMessage) consumer.receive(1_000);
            return answer == null ? 0 : answer.getLong("size");
        }
    }

    private String delete(String topic, int partitions) throws JMSException {
        try (ActiveMQConnection connection = connect(false, 1)) {
            for (String queue : names(new String[] {topic}, partitions)) {
                connection.destroyDestination(new ActiveMQQueue(queue));
            }
        }
        return "done";
    }

    /**
     * The p99 delay of the generator, the time at which consumers had caught up, and the delay of each message in ms after it was due.
     * Messages of the first `warmUp` seconds do not count.
     */
    private String delays(String[] queues, int bytes, int rate, double seconds, long waiting, double warmUp) throws Exception {
        int uncounted = (int) (rate * warmUp);
        int total = uncounted + (int) (rate * seconds);
        double[] late = new double[total];
        Run run = new Run(queues, rate, total, waiting);
        Thread[] consumers = new Thread[queues.length];
        AtomicReference<Exception> failed = new AtomicReference<>();
        for (int queue = 0; queue < queues.length; queue++) {
            int own = queue;
            consumers[queue] = new Thread(() -> {
                try {
                    take(run, own);
                } catch (JMSException | InterruptedException | RuntimeException error) {
                    failed.set(error);
                    run.ready.countDown();
                }
            });
            consumers[queue].start();
        }
        try (Connection connection = connect(true, 1)) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer[] producers = new MessageProducer[queues.length];
            for (int queue = 0; queue < queues.length; queue++) {
                producers[queue] = session.createProducer(session.createQueue(queues[queue]));
                producers[queue].setDeliveryMode(DeliveryMode.PERSISTENT);
            }
            run.ready.await();
            run.began = System.nanoTime() + 10_000_000L;
            run.go.countDown();
            for (int sent = 0; sent < total; sent++) {
                long meant = run.meant(sent);
                for (long left = meant - System.nanoTime(); left > 0; left = meant - System.nanoTime()) {
                    LockSupport.parkNanos(left); // Thread.sleep supports only whole milliseconds
                }
                late[sent] = (System.nanoTime() - meant) / 1e6;
                run.sent = sent + 1;
                producers[sent % queues.length].send(message(session, bytes));
            }
            for (Thread consumer : consumers) {
                consumer.join();
            }
        }
        if (failed.get() != null) {
            throw failed.get();
        }
        Arrays.sort(run.delays, uncounted, total);
        Arrays.sort(late, uncounted, total);
        double lateness = late[uncounted + (int) ((total - uncounted) * 0.99)];
        StringBuilder answer = new StringBuilder(String.format("%.4f %s", lateness, run.caughtUp));
        for (double delay : Arrays.copyOfRange(run.delays, uncounted, total)) {
            answer.append(String.format(" %.4f", delay));
        }
        return answer.toString();
    }

    /** State shared by the producers and consumers of one schedule. Each queue contains `waiting` messages at the start. */
    private static class Run {
        final String[] queues;
        final int rate;
        final int total;
        final long waiting;
        final double[] delays;
        final CountDownLatch ready;
        final CountDownLatch go = new CountDownLatch(1);
        volatile long began;
        final AtomicLong came = new AtomicLong();
        volatile int sent;
        volatile String caughtUp;

        Run(String[] queues, int rate, int total, long waiting) {
            this.queues = queues;
            this.rate = rate;
            this.total = total;
            this.waiting = waiting;
            this.ready = new CountDownLatch(queues.length);
            this.delays = new double[total];
            this.caughtUp = waiting > 0 ? null : "0 0";
        }

        long meant(int number) {
            return began + number * 1_000_000_000L / rate;
        }

        /** Counts a received message. Consumers have caught up when at most the messages of 10 ms are missing. */
        void took() {
            long count = came.incrementAndGet();
            if (caughtUp == null && count >= waiting * queues.length + sent - rate / 100) {
                caughtUp = String.format("%d %.6f", count, (System.nanoTime() - began) / 1e9);
            }
        }
    }

    private void take(Run run, int queue) throws JMSException, InterruptedException {
        try (Connection connection = connect(false, 1000)) {
            Session session = connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(run.queues[queue]));
            run.ready.countDown();
            run.go.await();
            for (long left = run.waiting; left > 0; left--) {
                receive(consumer);
                run.took();
            }
            for (int number = queue; number < run.total; number += run.queues.length) {
                receive(consumer);
                run.delays[number] = (System.nanoTime() - run.meant(number)) / 1e6;
                run.took();
            }
        }
    }

    private static void receive(MessageConsumer consumer) throws JMSException {
        if (consumer.receive(LATEST_MS) == null) {
            throw new JMSException("messages are missing");
        }
    }
}
