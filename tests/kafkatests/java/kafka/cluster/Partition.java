package kafka.cluster;

import scala.Option;

/** A replica on a barnabas broker. */
public class Partition {
    private final boolean isLeader;
    private final int broker;

    public Partition(int broker, boolean isLeader) {
        this.broker = broker;
        this.isLeader = isLeader;
    }

    public Option<Object> leaderIdIfLocal() {
        return isLeader ? Option.apply(broker) : Option.empty();
    }
}
