import org.apache.activemq.broker.BrokerPlugin;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.plugin.StatisticsBrokerPlugin;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;

import java.io.File;

/** ActiveMQ Classic with KahaDB. Usage: Broker PORT FOLDER. */
public class Broker {
    public static void main(String[] arguments) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("bench");
        broker.setUseJmx(false);
        broker.setUseShutdownHook(true);
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(arguments[1]));
        store.setJournalDiskSyncStrategy("periodic");
        broker.setPersistenceAdapter(store);
        PolicyEntry policy = new PolicyEntry();
        policy.setProducerFlowControl(false);
        PolicyMap policies = new PolicyMap();
        policies.setDefaultEntry(policy);
        broker.setDestinationPolicy(policies);
        broker.setPlugins(new BrokerPlugin[] {new StatisticsBrokerPlugin()});
        broker.getSystemUsage().getStoreUsage().setLimit(100L << 30);
        broker.getSystemUsage().getTempUsage().setLimit(10L << 30);
        broker.getSystemUsage().getMemoryUsage().setLimit(700L << 20);
        broker.addConnector("nio://127.0.0.1:" + arguments[0] + "?maximumConnections=20000&wireFormat.maxInactivityDuration=0");
        broker.start();
        broker.waitUntilStopped();
    }
}
