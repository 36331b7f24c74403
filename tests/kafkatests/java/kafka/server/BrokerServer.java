package kafka.server;

import org.apache.kafka.metadata.BrokerState;

/** A barnabas broker, with the methods that the embedded clusters of Streams and Connect use. Replaces Kafka's class of this name. */
public class BrokerServer {
    private final KafkaBroker broker;

    public BrokerServer(KafkaBroker broker) {
        this.broker = broker;
    }

    public BrokerState brokerState() {
        return broker.brokerState();
    }

    public void startup() {
        broker.startup();
    }

    public void shutdown() {
        broker.shutdown();
    }

    public void awaitShutdown() {
        broker.awaitShutdown();
    }
}
