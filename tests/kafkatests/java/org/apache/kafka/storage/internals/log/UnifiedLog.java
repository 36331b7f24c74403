package org.apache.kafka.storage.internals.log;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.TopicPartition;

/** The log of a barnabas replica, as its checkpoints describe it. */
public class UnifiedLog {
    private final List<Path> folders;
    private final TopicPartition partition;

    public UnifiedLog(List<Path> folders, TopicPartition partition) {
        this.folders = folders;
        this.partition = partition;
    }

    /** The value in the last checkpoint, which brokers write every 5 s; -1 if no checkpoint has it. */
    public long highWatermark() {
        String name = partition.topic() + " " + partition.partition() + " ";
        return folders.stream().flatMap(folder -> lines(folder.resolve("replication-offset-checkpoint")).stream())
            .filter(line -> line.startsWith(name)).mapToLong(line -> Long.parseLong(line.substring(name.length()))).findFirst().orElse(-1);
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (NoSuchFileException error) {
            return List.of();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
