"""The differences that stand, each with its reason; `docs/compatibility.md` shows this table (a test compares them).

An entry that covers no difference any more fails the test of its scenario: delete it then.
"""

from __future__ import annotations

from tests.differential.compare import Known

NOT_SERVED = (17, *range(24, 32), 34, 36, *range(38, 42), 43, 45, 46, *range(48, 52), 55, 57, 64, 65, 66, 68, 69, *range(76, 82),
              *range(83, 93))  # fmt: skip
LATER = "this API is not served yet, and only what is served is announced"
FEATURES = "finalised features steer a Kafka cluster's own upgrades; there is nothing of the kind here"
PRODUCER_6 = "version 6 is two-phase commit, which Kafka 4.3 holds back as unstable; a producer without it sends the same"
SYNCHRONOUS = "a topic made on the way is in the answer, so that a client need not ask again"
LOG_START = "a refused batch is answered with log_start_offset -1; no client reads it beside an error"
STRICT = "Kafka stores offset deltas that no consumer can make sense of when a batch is not compressed; here they are refused"
UNPACKED = "a batch that cannot be unpacked is a fault of the client, not UNKNOWN_SERVER_ERROR"
FOLLOWERS = "there are no followers yet: whoever asks is served as a consumer"
BY_ID = "a request by id before version 12 is refused for its topic, with the brokers in the answer; Kafka leaves them out"

EVERY_VERSION = ("ApiVersions v* named", "ApiVersions v* again on the same connection")
NAMED = ("ApiVersions v3 a name of one letter", "ApiVersions v3 a long name")


def _announced() -> list[Known]:
    entries = []
    for scenario, steps in (("api-versions-valid", EVERY_VERSION), ("api-versions-names", NAMED)):
        for step in steps:
            entries += [Known(scenario, step, f"api_keys[{key}]", LATER) for key in NOT_SERVED]
            entries.append(Known(scenario, step, "api_keys[22].max_version", PRODUCER_6))
            entries.append(Known(scenario, step, "supported_features*", FEATURES))
            entries.append(Known(scenario, step, "finalized_features*", FEATURES))
    return entries


def _all(scenario: str, reason: str, *places: tuple[str, str]) -> list[Known]:
    return [Known(scenario, steps, path, reason) for steps, path in places]


KNOWN: list[Known] = [
    *_announced(),
    *_all("change-topic-configs", "an operation that nobody knows is the client's fault: INVALID_REQUEST, not UNKNOWN_SERVER_ERROR",
          ("IncrementalAlterConfigs v* unknown operation", "responses[*].error_code")),
    *_all("fetch-versions", "isolation levels but 1 read everything; Kafka fails with UNKNOWN_SERVER_ERROR",
          ("Fetch v* isolation level 7", "*")),
    *_all("fetch-limits", "a negative limit is taken for none at all, the first batch is sent; Kafka fails with UNKNOWN_SERVER_ERROR",
          ("Fetch v* partition limit -1*", "*"), ("Fetch v* limit -1*", "*")),
    *_all("fetch-many-partitions", "partitions at fault stand beside the others; Kafka repeats the topic for them",
          ("Fetch v* good and bad", "responses[*]*")),
    *_all("fetch-by-replicas", FOLLOWERS, ("Fetch v* replica*", "*")),
    *_all("fetch-session-of-a-topic-that-goes-and-comes",
          "an id whose topic is gone is UNKNOWN_TOPIC_ID at once; Kafka says it after the session's next change",
          ("Fetch v13 after *", "responses[0].partitions[0].*")),
    *_all("frames", "a name that is no UTF-8 ends the connection; Kafka replaces the bytes it cannot read", ("not UTF-8", "")),
    *_all("find-coordinator", "coordinators of transactions come with transactions", ("FindCoordinator v* type 1", "*")),
    *_all("metadata-auto-creation", SYNCHRONOUS, ("Metadata v* first", "topics[*")),
    *_all("metadata-collision", "a name that collides is refused as CreateTopics does; Kafka says that the topic is unknown",
          ("Metadata v12 a name that differs in a dot", "topics[*].error_code")),
    *_all("metadata-topic-ids", BY_ID, ("Metadata v1* by *id*", "brokers[*"), ("Metadata v1* by *id*", "cluster_id"),
          ("Metadata v1* by *id*", "controller_id")),
    *_all("metadata-topic-ids", "neither a name nor an id is an unknown id; Kafka fails with UNKNOWN_SERVER_ERROR",
          ("Metadata v1* by zero id and no name", "topics[0].*"), ("Metadata v13 by zero id and no name", "error_code")),
    *_all("metadata-topic-ids", "topics come in the order of the request; Kafka puts unknown ids first",
          ("Metadata v12 known and unknown ids", "topics[*]")),
    *_all("describe-topic-partitions", "nobody is told what may be done with a topic that is not there",
          ("DescribeTopicPartitions v0 with *", "topics[*].topic_authorized_operations")),
    *_all("describe-topic-partitions", "a cursor between two topics goes on with the next; Kafka refuses it",
          ("DescribeTopicPartitions v0 from between a and b", "topics[*")),
    *_all("produce-wrong-batches", LOG_START, ("Produce v9 *", "responses[*].partition_responses[0].log_start_offset")),
    *_all("produce-wrong-batches", STRICT, ("Produce v9 offset deltas *", "responses[*"), ("Fetch v11 * offset deltas *", "")),
    *_all("produce-wrong-batches", "bytes behind the batch are refused, few or many, since nothing else may be there",
          ("Produce v9 bytes behind*", "responses[*"), ("Fetch v11 * bytes behind", "")),
    *_all("produce-wrong-batches", UNPACKED, ("Produce v9 codec *", "responses[*"), ("Produce v9 broken *", "responses[*")),
    *_all("produce-wrong-batches", "append time in a batch is the broker's to set: INVALID_TIMESTAMP; Kafka takes it away",
          ("Produce v9 append time asked by the producer", "responses[*"), ("Fetch v11 * append time asked by the producer", "")),
    *_all("produce-timestamps", LOG_START, ("Produce v* *", "responses[*].partition_responses[0].log_start_offset")),
    *_all("produce-to-a-compacted-topic", LOG_START, ("Produce v* *", "responses[*].partition_responses[0].log_start_offset")),
    *_all("idempotence", LOG_START, ("Produce v9 *", "responses[*].partition_responses[0].log_start_offset")),
    *_all("idempotence", "a duplicate on a topic with CreateTime has no append time; Kafka gives the batch's largest timestamp",
          ("Produce v9 *", "responses[*].partition_responses[0].log_append_time_ms")),
    *_all("idempotence-wraps-around", "as above: a duplicate has no append time where the topic has none",
          ("Produce v9 *", "responses[*].partition_responses[0].log_append_time_ms")),
    *_all("describe-producers", "the error needs no text", ("DescribeProducers v0 absent ones", "topics[*].error_message")),
    *_all("create-topics-versions", "what is only validated gets no id: none is to be had by it",
          ("CreateTopics v7 validate only", "topics[*].topic_id")),
    *_all("create-topics-wrong", "what is only validated gets no id: none is to be had by it",
          ("CreateTopics v7 *, validate only", "topics[*].topic_id")),
    *_all("create-topics-wrong", "a number is told as it was understood, without the spaces",
          ("CreateTopics v7 a number with spaces*", "topics[*].configs[retention.ms].value")),
]  # fmt: skip
