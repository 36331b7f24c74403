package kafka.server;

import java.util.function.Function;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.opentest4j.TestAbortedException;
import scala.Option;

/** The replicas of a barnabas broker, for tests that check which replicas exist. */
public class ReplicaManager {
    private final Function<TopicPartition, Partition> find;
    private final LogManager logs;

    /** `find` returns null if there is no replica. */
    public ReplicaManager(Function<TopicPartition, Partition> find, LogManager logs) {
        this.find = find;
        this.logs = logs;
    }

    public Option<Partition> onlinePartition(TopicPartition partition) {
        return Option.apply(find.apply(partition));
    }

    public Option<UnifiedLog> localLog(TopicPartition partition) {
        return logs.getLog(partition, false);
    }

    /** Kafka's log manager creates logs and appends to them without a request. A test in another process cannot do that. */
    public LogManager logManager() {
        throw new TestAbortedException("asks for logManager of Kafka's ReplicaManager in this JVM");
    }
}
