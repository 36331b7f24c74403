package org.apache.kafka.common.test;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import kafka.server.BrokerServer;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.common.test.junit.BarnabasCluster;

/** Replaces Kafka's class of this name: the embedded clusters in the tests of Streams and Connect get barnabas brokers. */
public class KafkaClusterTestKit implements AutoCloseable {
    private final MockFaultHandler faults = new MockFaultHandler("nonFatalFaultHandler");
    private final BarnabasCluster cluster;
    private final Map<Integer, BrokerServer> brokers = new TreeMap<>();

    private KafkaClusterTestKit(BarnabasCluster cluster) {
        this.cluster = cluster;
    }

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, String> settings = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            settings.put(key, String.valueOf(value));
            return this;
        }

        public KafkaClusterTestKit build() {
            Map<Integer, Map<String, String>> ofEach = new HashMap<>();
            nodes.brokerNodes().forEach((id, node) -> ofEach.put(id, node.propertyOverrides()));
            return new KafkaClusterTestKit(new BarnabasCluster(ClusterConfig.defaultBuilder()
                .setTypes(Set.of(Type.KRAFT)).setBrokers(nodes.brokerNodes().size()).setServerProperties(settings)
                .setPerServerProperties(ofEach).build(), Type.KRAFT));
        }
    }

    public void format() {
        // a broker creates its folders when it starts
    }

    public void startup() {
        cluster.start();
        cluster.brokers().forEach((id, broker) -> brokers.put(id, new BrokerServer(broker)));
    }

    public void waitForReadyBrokers() throws InterruptedException {
        cluster.waitForReadyBrokers();
    }

    public String bootstrapServers() {
        return cluster.bootstrapServers();
    }

    public Map<Integer, BrokerServer> brokers() {
        return brokers;
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return faults;
    }

    @Override
    public void close() {
        cluster.stop();
    }
}
