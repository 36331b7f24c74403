package kafka.log;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The logs of a barnabas broker, for tests that check which logs exist: folders named topic-partition in its data folders. */
public class LogManager {
    private final List<Path> folders;
    private final Function<String, String> settings;

    /** `settings` gets the value of a setting from the broker. */
    public LogManager(List<Path> folders, Function<String, String> settings) {
        this.folders = folders;
        this.settings = settings;
    }

    public Option<UnifiedLog> getLog(TopicPartition partition, boolean isFuture) {
        String name = partition + (isFuture ? "-future" : "");
        boolean isThere = folders.stream().anyMatch(each -> Files.isDirectory(each.resolve(name)));
        return isThere ? Option.apply(new UnifiedLog(folders, partition)) : Option.empty();
    }

    public ProducerStateManagerConfig producerStateManagerConfig() {
        return new ProducerStateManagerConfig(Integer.parseInt(settings.apply("producer.id.expiration.ms")), true);
    }

    public Seq<File> liveLogDirs() {
        return CollectionConverters.asScala(folders.stream().map(Path::toFile).toList()).toSeq();
    }
}
