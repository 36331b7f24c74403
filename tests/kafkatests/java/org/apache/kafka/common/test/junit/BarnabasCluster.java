package org.apache.kafka.common.test.junit;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.opentest4j.TestAbortedException;

/**
 * The brokers of one test: a single broker, or a cluster with its own folder in the ZooKeeper of the run.
 *
 * If a test calls a method that only Kafka's objects in this JVM have, it ends as aborted, with the name of the method.
 */
public class BarnabasCluster implements ClusterInstance {
    private static final AtomicInteger CLUSTERS = new AtomicInteger();
    private static final int FIRST_PORT = 20_000;
    private static final int PORTS = 12_000;
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(new Random().nextInt(PORTS));
    private static final long START_TIMEOUT_MS = 60_000;
    private static final long STOP_TIMEOUT_S = 40;
    private static final Pattern JAVA_CLASS = Pattern.compile("invalid value '\\w+(\\.\\w+)+[$]?\\w*' for");
    private static final long WAIT_MS = 30_000;
    private static final Map<String, String> IN_PYTHON = Map.of(
        "org.apache.kafka.clients.CreateTopicsRequestWithPolicyTest$Policy", "python:tests.kafkatests.policies:PartitionsAndReplicas");

    private final ClusterConfig config;
    private final Type type;
    private final int number = CLUSTERS.incrementAndGet();
    private final Map<Integer, Broker> brokers = new TreeMap<>();
    private final Map<Integer, KafkaBroker> shown = new TreeMap<>();
    private boolean started;
    private boolean stopped;
    private String clusterId;
    private volatile TestAbortedException aborted;

    public BarnabasCluster(ClusterConfig config, Type type) {
        this.config = config;
        this.type = type;
    }

    // Starts and stops of brokers

    @Override
    public void start() {
        if (started) {
            return;
        }
        started = true;
        try {
            for (int id = 0; id < config.numBrokers(); id++) {
                brokers.put(id, new Broker(id));
                brokers.get(id).launch();
            }
            for (Broker broker : brokers.values()) {
                broker.waitUntilReady();
            }
            waitForReadyBrokers();
        } catch (IOException | InterruptedException error) {
            throw new RuntimeException(error);
        }
        for (Map.Entry<Integer, Broker> each : brokers.entrySet()) {
            shown.put(each.getKey(), view(KafkaBroker.class, each.getValue()));
        }
    }

    @Override
    public void stop() {
        stopped = true;
        for (Broker broker : brokers.values()) {
            broker.beginStop();
        }
        for (Broker broker : brokers.values()) {
            broker.stop();
        }
    }

    @Override
    public void shutdownBroker(int id) {
        brokers.get(id).stop();
    }

    @Override
    public void startBroker(int id) {
        brokers.get(id).startup();
    }

    @Override
    public boolean started() {
        return started;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    // Getters for tests

    @Override
    public Type type() {
        return type;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return shown;
    }

    @Override
    public Map<Integer, KafkaBroker> aliveBrokers() {
        Map<Integer, KafkaBroker> alive = new HashMap<>(shown);
        alive.keySet().removeIf(id -> !brokers.get(id).isAlive());
        return alive;
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        throw abort("asks for Kafka's controllers in this JVM");
    }

    @Override
    public Set<Integer> controllerIds() {
        return brokers.keySet();
    }

    @Override
    public Set<Integer> brokerIds() {
        return brokers.keySet();
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String bootstrapServers() {
        return brokers.values().stream().map(each -> "localhost:" + each.port).collect(Collectors.joining(","));
    }

    @Override
    public String bootstrapControllers() {
        throw abort("asks for the address of Kafka's controllers (KRaft)");
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return brokers.values().stream().map(each -> each.port).collect(Collectors.toList());
    }

    @Override
    public String clusterId() {
        if (clusterId == null) {
            clusterId = ask(admin -> admin.describeCluster().clusterId().get());
        }
        return clusterId;
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        String protocols = config.serverProperties().getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer");
        return protocols.contains("consumer") ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }

    /** Kafka's tests catch exceptions while they wait, so the cluster keeps the failed call until the end of the test. */
    Optional<TestAbortedException> aborted() {
        return Optional.ofNullable(aborted);
    }

    private TestAbortedException abort(String why) {
        aborted = new TestAbortedException(why);
        return aborted;
    }

    // Waiting

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        until("all brokers are known", () -> nodes().size() == brokers.values().stream().filter(Broker::isAlive).count());
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        until("topic " + topic + " is created", () -> {
            TopicDescription found = ask(admin -> admin.describeTopics(List.of(topic)).allTopicNames().get()).get(topic);
            return found.partitions().size() == partitions && found.partitions().stream().allMatch(each -> each.leader() != null);
        });
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        until("topic " + topic + " is gone", () -> !ask(admin -> admin.listTopics().names().get()).contains(topic));
    }

    @Override
    public void ensureConsistentMetadata() throws InterruptedException {
        waitForReadyBrokers();
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> of, Collection<ControllerServer> controllers) throws InterruptedException {
        waitForReadyBrokers();
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        until("access control lists are known", () -> {
            Collection<AclBinding> found = ask(admin -> admin.describeAcls(filter).values().get());
            return found.stream().map(AclBinding::entry).collect(Collectors.toSet()).equals(Set.copyOf(entries));
        });
    }

    private interface Question<R> {
        R of(Admin admin) throws Exception;
    }

    /** If the brokers of a test log in to each other, the admin client uses their credentials. */
    @Override
    public Map<String, Object> setClientSaslConfig(Map<String, Object> properties) {
        Map<String, Object> found = new HashMap<>(ClusterInstance.super.setClientSaslConfig(properties));
        config.serverProperties().forEach((key, value) -> {
            if (key.endsWith(".plain.sasl.jaas.config")) {
                found.putIfAbsent("security.protocol", SecurityProtocol.SASL_PLAINTEXT.name);
                found.putIfAbsent("sasl.mechanism", "PLAIN");
                found.putIfAbsent("sasl.jaas.config", value);
            }
        });
        return found;
    }

    private <R> R ask(Question<R> question) {
        try (Admin admin = admin()) {
            return question.of(admin);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    private Collection<Node> nodes() {
        return ask(admin -> admin.describeCluster().nodes().get());
    }

    private static void until(String what, Callable<Boolean> condition) throws InterruptedException {
        long end = System.currentTimeMillis() + WAIT_MS;
        Exception last = null;
        while (System.currentTimeMillis() < end) {
            try {
                if (condition.call()) {
                    return;
                }
            } catch (Exception error) {
                last = error;
            }
            Thread.sleep(50);
        }
        throw new AssertionError("not within " + WAIT_MS + " ms: " + what, last);
    }

    // Kafka's objects, with the methods that barnabas can answer

    private <T> T view(Class<T> kind, Broker broker) {
        InvocationHandler handler = (self, method, arguments) -> switch (method.getName()) {
            case "hashCode" -> System.identityHashCode(self);
            case "equals" -> self == arguments[0];
            case "toString" -> "broker " + broker.id + " of barnabas";
            case "config" -> broker.kafkaConfig();
            case "boundPort" -> broker.port;
            case "clusterId" -> clusterId();
            case "isShutdown" -> !broker.isAlive();
            case "brokerState" -> broker.state();
            case "shutdown" -> broker.stop();
            case "awaitShutdown" -> null;
            case "startup" -> broker.startup();
            case "logManager" -> logs(broker);
            case "replicaManager" -> new ReplicaManager(partition -> replica(partition, broker.id), logs(broker));
            case "groupCoordinator" -> view(GroupCoordinator.class, broker);
            case "groupMetadataTopicConfigs" -> ofGroups();
            case "metadataCache" -> view(MetadataCache.class, broker);
            case "getAliveBrokerNodes" -> List.copyOf(nodes());
            case "hasAliveBroker" -> nodes().stream().anyMatch(node -> node.id() == (int) arguments[0]);
            case "getAllTopics" -> ask(admin -> admin.listTopics().names().get());
            default -> throw abort("asks for " + method.getName() + " of Kafka's " + kind.getSimpleName() + " in this JVM");
        };
        return kind.cast(Proxy.newProxyInstance(kind.getClassLoader(), new Class<?>[] {kind}, handler));
    }

    private static Properties ofGroups() {
        Properties properties = new Properties();
        properties.put("cleanup.policy", "compact");
        return properties;
    }

    private LogManager logs(Broker broker) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(broker.id));
        return new LogManager(broker.directories(), name ->
            ask(admin -> admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value()));
    }

    private Partition replica(TopicPartition partition, int broker) {
        if (!ask(admin -> admin.listTopics().names().get()).contains(partition.topic())) {
            return null;
        }
        TopicDescription topic = ask(admin -> admin.describeTopics(List.of(partition.topic())).allTopicNames().get()).get(partition.topic());
        return topic.partitions().stream()
            .filter(each -> each.partition() == partition.partition() && each.replicas().stream().anyMatch(node -> node.id() == broker))
            .map(each -> new Partition(broker, each.leader() != null && each.leader().id() == broker)).findFirst().orElse(null);
    }

    /** One broker process. */
    private class Broker {
        final int id;
        final int port = freePort();
        final Path folder;
        private Process process;

        Broker(int id) throws IOException {
            this.id = id;
            this.folder = Files.createDirectories(Path.of(System.getProperty("barnabas.folder"), "cluster-" + number, "broker-" + id));
        }

        boolean isAlive() {
            return process != null && process.isAlive();
        }

        /** Kafka's object stays in SHUTTING_DOWN after the shutdown is complete. */
        BrokerState state() {
            return isAlive() ? BrokerState.RUNNING : process == null ? BrokerState.NOT_RUNNING : BrokerState.SHUTTING_DOWN;
        }

        Object startup() {
            try {
                launch();
                waitUntilReady();
            } catch (IOException | InterruptedException error) {
                throw new RuntimeException(error);
            }
            return null;
        }

        void launch() throws IOException {
            Path file = folder.resolve("server.properties");
            Properties properties = new Properties();
            settings().forEach((key, value) -> properties.put(key, IN_PYTHON.getOrDefault(value, value)));
            try (var writer = Files.newBufferedWriter(file)) {
                properties.store(writer, null);
            }
            List<String> command = new ArrayList<>(List.of(System.getProperty("barnabas.command").split(" ")));
            command.addAll(List.of("broker", "start", "--config-file", file.toString()));
            process = new ProcessBuilder(command)
                .redirectOutput(folder.resolve("out").toFile())
                .redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve("log").toFile()))
                .start();
        }

        void waitUntilReady() throws IOException, InterruptedException {
            long end = System.currentTimeMillis() + START_TIMEOUT_MS;
            while (process.isAlive() && System.currentTimeMillis() < end) {
                if (Files.size(folder.resolve("out")) > 0) {
                    return;
                }
                Thread.sleep(10);
            }
            String log = Files.readString(folder.resolve("log"));
            stop();
            if (JAVA_CLASS.matcher(log).find()) {
                throw new TestAbortedException("needs a plug-in in Java: " + log.strip());
            }
            throw new AssertionError("broker " + id + " did not start: " + log);
        }

        void beginStop() {
            if (process != null) {
                process.destroy();
            }
        }

        Object stop() {
            beginStop();
            try {
                if (process != null && !process.waitFor(STOP_TIMEOUT_S, java.util.concurrent.TimeUnit.SECONDS)) {
                    process.destroyForcibly().waitFor();
                }
            } catch (InterruptedException error) {
                process.destroyForcibly();
            }
            return null;
        }

        Map<String, String> settings() {
            String listener = config.brokerListenerName().value();
            SecurityProtocol protocol = config.brokerSecurityProtocol();
            Map<String, String> found = new HashMap<>();
            found.put("node.id", String.valueOf(id));
            found.put("listeners", listener + "://localhost:" + port);
            found.put("listener.security.protocol.map", listener + ":" + protocol.name);
            found.put("inter.broker.listener.name", listener);
            found.put("log.dirs", directories().stream().map(Path::toString).collect(Collectors.joining(",")));
            found.put("log.cleaner.dedupe.buffer.size", "2097152");
            if (config.numBrokers() > 1) {
                // Tests expect a dead broker to be found within 300 ms. The brokers find it by probes, so the session may be longer.
                found.put("zookeeper.session.timeout.ms", "6000");
                found.put("zookeeper.connect", System.getProperty("barnabas.zookeeper") + "/kafkatests-" + number);
            }
            if (protocol == SecurityProtocol.SASL_PLAINTEXT) {
                found.put("sasl.enabled.mechanisms", "PLAIN");
                found.put("sasl.mechanism.inter.broker.protocol", "PLAIN");
                found.put("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
                found.put("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
                found.put("listener.name." + listener.toLowerCase() + ".plain.sasl.jaas.config", String.format(
                    "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"%1$s\" password=\"%2$s\" "
                    + "user_%1$s=\"%2$s\" user_%3$s=\"%4$s\";",
                    JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
                    JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
            }
            if (config.features().getOrDefault(Feature.GROUP_VERSION, (short) 1) == 0) {
                found.put("group.coordinator.rebalance.protocols", "classic");
            }
            found.putAll(config.serverProperties());
            found.putAll(config.perServerOverrideProperties().getOrDefault(id, Map.of()));
            return found;
        }

        List<Path> directories() {
            List<Path> names = new ArrayList<>();
            for (int disk = 0; disk < config.numDisksPerBroker(); disk++) {
                names.add(folder.resolve("data-" + disk));
            }
            return names;
        }

        KafkaConfig kafkaConfig() {
            Map<String, String> found = new HashMap<>(settings());
            found.keySet().removeIf(key -> key.startsWith("zookeeper."));
            found.put("process.roles", "broker");
            found.put("controller.listener.names", "CONTROLLER");
            found.put("controller.quorum.voters", "3000@localhost:1");
            found.put("listener.security.protocol.map", found.get("listener.security.protocol.map") + ",CONTROLLER:PLAINTEXT");
            return new KafkaConfig(found, false);
        }
    }

    /** Below the ephemeral ports: otherwise a client could get the port while a broker is down. */
    private static int freePort() {
        while (true) {
            int port = FIRST_PORT + NEXT_PORT.getAndIncrement() % PORTS;
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (IOException error) {
                // another process has this port
            }
        }
    }
}
