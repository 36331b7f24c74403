package org.apache.kafka.common.test.junit;

import java.util.List;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/**
 * Replaces Kafka's class of this name on the class path: each test gets barnabas brokers instead of Kafka's.
 *
 * Kafka runs most tests twice: with the controller in the broker's process, and in its own process. For barnabas both are the same.
 * If a test has both, one of them is left out.
 */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String name;
    private final ClusterConfig config;
    private final boolean isCombined;

    public RaftClusterInvocationContext(String baseDisplayName, ClusterConfig config, boolean isCombined) {
        this.name = baseDisplayName;
        this.config = config;
        this.isCombined = isCombined;
    }

    @Override
    public String getDisplayName(int index) {
        return String.format("%s [%d] %s", name, index, String.join(",", config.displayTags()));
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        BarnabasCluster cluster = new BarnabasCluster(config, isCombined ? Type.CO_KRAFT : Type.KRAFT);
        if (isCombined && config.clusterTypes().contains(Type.KRAFT)) {
            return List.of(
                (ExecutionCondition) context -> ConditionEvaluationResult.disabled("the same as isolated"),
                new ClusterInstanceParameterResolver(cluster));
        }
        return List.of(
            (BeforeEachCallback) context -> {
                if (config.isAutoStart()) {
                    cluster.start();
                }
            },
            (AfterEachCallback) context -> cluster.stop(),
            (TestExecutionExceptionHandler) (context, error) -> {
                throw cluster.aborted().map(Throwable.class::cast).orElse(error);
            },
            new ClusterInstanceParameterResolver(cluster));
    }
}
