"""The options of the data source: names, defaults and messages of Spark's own `kafka` source, so that a migration from that
source changes only one word.

Names are case-insensitive (Spark passes them in lower case). Options that begin with `kafka.` go to the client.

Our own options are `commitOffsets` (default true: a stream commits its offsets to a consumer group, so that lag tools see
them), `maxBytesPerTrigger`, `maxBatchBytes`, `resolveOffsets` and `waitForRecordsMs` (an idle stream waits so long for records
before Spark plans again). The default of `kafka.isolation.level` is read_committed, because the output of a pipeline is valid
only after its commit.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.limits import MAX_DECOMPRESSED_BATCH_BYTES
from barnabas.pipelines.offsets import (
    EARLIEST,
    LATEST,
    WORDS,
    OptionError,
    Position,
    TopicPartition,
    names,
    partitions_from_json,
    position_from_json,
    timestamps_from_json,
    whole_number,
)

logger = logging.getLogger(__name__)

STRATEGIES = ("subscribe", "subscribepattern", "assign")
DEFAULT_POLL_TIMEOUT_MS = 120_000  # Spark's default is spark.network.timeout, whose default is the same
DEFAULT_MAX_TRIGGER_DELAY = "15m"
DEFAULT_RETRY_INTERVAL_MS = 10
NOT_FOR_READING = {
    "auto.offset.reset": "Instead set the source option 'startingOffsets' to 'earliest' or 'latest' to specify where to start. "
    "Structured Streaming manages which offsets are consumed internally, rather than relying on the kafkaConsumer to do it. This will "
    "ensure that no data is missed when new topics/partitions are dynamically subscribed. Note that 'startingOffsets' only applies when "
    "a new Streaming query is started, and that resuming will always pick up from where the query left off.",
    "key.deserializer": "as keys are deserialized as byte arrays with ByteArrayDeserializer. "
    "Use DataFrame operations to explicitly deserialize the keys.",
    "value.deserializer": "as values are deserialized as byte arrays with ByteArrayDeserializer. "
    "Use DataFrame operations to explicitly deserialize the values.",
    "enable.auto.commit": "",
    "interceptor.classes": "",
}
_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The parsed options; batch and stream differ only in the start and the end.

    Exactly one of `subscribe`, `pattern` and `assign` is set.
    """

    subscribe: tuple[str, ...] | None
    pattern: str | None
    assign: tuple[TopicPartition, ...] | None
    starting: Position
    ending: Position
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    wait_for_records_ms: int = 0
    poll_timeout_ms: int = DEFAULT_POLL_TIMEOUT_MS
    fetch_offset_retries: int = 3
    fetch_offset_retry_interval_ms: int = 10
    group_id: str | None = None
    max_batch_bytes: int = MAX_DECOMPRESSED_BATCH_BYTES
    resolve_in_tasks: bool = False
    client: ClientConfig = field(repr=False, kw_only=True)


def read_options(options: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """Parse and check the options of a query.

    Raises:
        OptionError: with the message of Spark's `kafka` source.
    """
    given = {key.lower(): value for key, value in options.items()}
    starting = _position(given, "starting", LATEST if streaming else EARLIEST)
    ending = _position(given, "ending", LATEST)
    _check_stream(given) if streaming else _check_batch(given, starting, ending)
    kafka = _kafka(given)
    _check_general(given, kafka)
    subscribe, pattern, assign = _strategy(given)
    return ReadOptions(
        subscribe=subscribe,
        pattern=pattern,
        assign=assign,
        starting=starting,
        ending=ending,
        fail_on_data_loss=_boolean(given, "failOnDataLoss", True),
        include_headers=_boolean(given, "includeHeaders", False),
        min_partitions=_positive(given, "minPartitions"),
        max_records_per_partition=_positive(given, "maxRecordsPerPartition"),
        max_offsets_per_trigger=_positive(given, "maxOffsetsPerTrigger"),
        max_bytes_per_trigger=_positive(given, "maxBytesPerTrigger"),
        min_offsets_per_trigger=_positive(given, "minOffsetsPerTrigger"),
        wait_for_records_ms=_positive(given, "waitForRecordsMs") or 0,
        max_trigger_delay_ms=_duration_ms(given.get("maxtriggerdelay", DEFAULT_MAX_TRIGGER_DELAY)),
        poll_timeout_ms=_positive(given, "kafkaConsumer.pollTimeoutMs") or DEFAULT_POLL_TIMEOUT_MS,
        fetch_offset_retries=_positive(given, "fetchOffset.numRetries") or 3,
        fetch_offset_retry_interval_ms=_retry_interval_ms(given),
        group_id=_group_id(given, kafka) if streaming and _boolean(given, "commitOffsets", True) else None,
        max_batch_bytes=_positive(given, "maxBatchBytes") or MAX_DECOMPRESSED_BATCH_BYTES,
        resolve_in_tasks=not streaming and _resolves_in_tasks(given, starting, ending),
        client=client_config({"isolation.level": "read_committed", **kafka}),
    )


def include_headers(options: Mapping[str, str]) -> bool:
    """Whether rows have a column `headers`."""
    return _boolean({key.lower(): value for key, value in options.items()}, "includeHeaders", False)


def client_config(kafka: Mapping[str, str]) -> ClientConfig:
    """The client's settings from the `kafka.` options."""
    try:
        return ClientConfig.from_options(kafka)
    except ConfigError as error:
        raise OptionError(f"Kafka option 'kafka.{error.key}' has the value '{error.value}': {error.allowed}") from error


def _kafka(given: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}


def _strategy(given: Mapping[str, str]) -> tuple[tuple[str, ...] | None, str | None, tuple[TopicPartition, ...] | None]:
    chosen = [key for key in STRATEGIES if key in given]
    listing = ", ".join(STRATEGIES)
    if not chosen:
        raise OptionError(
            f"One of the following options must be specified for Kafka source: {listing}. See the docs for more details."
        )
    if len(chosen) > 1:
        raise OptionError(
            f"Only one of the following options can be specified for Kafka source: {listing}. See the docs for more details."
        )
    value = given[chosen[0]]
    if chosen[0] == "assign":
        if not value.strip().startswith("{"):
            raise OptionError(f"No topicpartitions to assign as specified value for option 'assign' is '{value}'")
        return None, None, tuple(sorted(set(partitions_from_json(value))))
    if chosen[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in value.split(",")))))
        if not topics:
            raise OptionError(f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'")
        return topics, None, None
    if not value.strip():
        raise OptionError(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'")
    try:
        re.compile(value.strip())
    except re.error as error:
        raise OptionError(f"Pattern to subscribe '{value}' is not a regular expression: {error}") from error
    return None, value.strip(), None


def _position(given: Mapping[str, str], edge: str, default: int) -> Position:
    """The position of an edge. As in Spark's source, a timestamp for all partitions comes before timestamps by partition, and
    these before offsets."""
    strategy = given.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in {"error", "latest"}:
        raise OptionError(f"startingOffsetsByTimestampStrategy must be error or latest, got {strategy}")
    lenient = strategy == "latest" or edge == "ending"
    if (text := given.get(f"{edge}timestamp")) is not None:
        try:
            return Position(timestamp_ms=whole_number(text), latest_on_no_match=lenient)
        except ValueError:
            raise OptionError(f"Expected a single long value, got {text.strip()}") from None
    if (text := given.get(f"{edge}offsetsbytimestamp")) is not None:
        return Position(timestamps_ms=timestamps_from_json(text.strip()), latest_on_no_match=lenient)
    if (text := given.get(f"{edge}offsets")) is None:
        return Position(word=default)
    text = text.strip()
    if text.lower() in WORDS:
        return Position(word=WORDS[text.lower()])
    return position_from_json(text)


def _check_stream(given: Mapping[str, str]) -> None:
    if "endingoffsets" in given:
        raise OptionError("ending offset not valid in streaming queries")
    if "endingoffsetsbytimestamp" in given or "endingtimestamp" in given:
        raise OptionError("ending timestamp not valid in streaming queries")


def _check_batch(given: Mapping[str, str], starting: Position, ending: Position) -> None:
    if starting.word == LATEST:
        raise OptionError("starting offset can't be latest for batch queries on Kafka")
    if ending.word == EARLIEST:
        raise OptionError("ending offset can't be earliest for batch queries on Kafka")
    for name, offset in _named(starting):
        if offset == LATEST:
            raise OptionError(f"startingOffsets for {name} can't be latest for batch queries on Kafka")
    for name, offset in _named(ending):
        if offset == EARLIEST:
            raise OptionError(f"ending offset for {name} can't be earliest for batch queries on Kafka")
    for first, last in ((starting.offsets, ending.offsets), (starting.timestamps_ms, ending.timestamps_ms)):
        if first is not None and last is not None and not (starting.topics or ending.topics):
            _check_pair(first, last)
    for name in ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"):
        if name.lower() in given:
            logger.warning("event=option-ignored option=%s reason='batch queries do not use it'", name)


def _named(position: Position) -> list[tuple[str, int]]:
    """The offsets or words in a position, for each partition or for all partitions of a topic."""
    return [*((names([tp]), offset) for tp, offset in (position.offsets or {}).items()), *position.topics.items()]


def _resolves_in_tasks(given: Mapping[str, str], starting: Position, ending: Position) -> bool:
    """Whether tasks look up the offsets. Spark plans a DataFrame once, so by default a reused DataFrame reads the same offsets.
    With `task`, each use reads the current table."""
    where = given.get("resolveoffsets", "plan").strip().lower()
    if where not in {"plan", "task"}:
        raise OptionError(f"resolveOffsets must be plan or task, got {where}")
    if where == "plan":
        return False
    if starting.word is None or ending.word is None or "minpartitions" in given or "maxrecordsperpartition" in given:
        raise OptionError(
            "resolveOffsets=task reads whole partitions: it excludes starting and ending offsets and "
            "timestamps, minPartitions and maxRecordsPerPartition"
        )
    return True


def _check_pair(first: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int]) -> None:
    if first.keys() != last.keys():
        raise OptionError(
            "The specified start offset and end offset should have the same topic-partitions. "
            f"Topic-partitions for start offset: {names(first)}, topic-partitions for end offset: {names(last)}."
        )
    for (topic, partition), start in first.items():
        end = last[topic, partition]
        if start > end and start >= 0 and end >= 0:
            raise OptionError(
                f"The specified start offset {start} is greater than the end offset {end} for topic {topic} partition {partition}."
            )


def _check_general(given: Mapping[str, str], kafka: Mapping[str, str]) -> None:
    for name, why in NOT_FOR_READING.items():
        if name in kafka:
            dot = "." if name == "auto.offset.reset" else ""
            raise OptionError(f"Kafka option '{name}' is not supported{dot} {why}".rstrip())
    if "bootstrap.servers" not in kafka:
        raise OptionError("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer")
    if "group.id" in kafka and "groupidprefix" in given:
        logger.warning("event=option-ignored option=groupIdPrefix reason='kafka.group.id is set'")
    least, most = _positive(given, "minOffsetsPerTrigger"), _positive(given, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most}).")


def _group_id(given: Mapping[str, str], kafka: Mapping[str, str]) -> str:
    """The group that a stream commits to. It is the same after a restart, unlike that of Spark's source; this is possible since
    the group has no members."""
    if "group.id" in kafka:
        return kafka["group.id"]
    what = "\n".join([kafka.get("bootstrap.servers", ""), *(f"{key}={given[key]}" for key in STRATEGIES if key in given)])
    return f"{given.get('groupidprefix', 'spark-kafka-source')}-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    value = given.get(name.lower())
    if value is None:
        return default
    if value.strip().lower() not in {"true", "false"}:
        raise OptionError(f"{name} must be true or false, got {value}")
    return value.strip().lower() == "true"


def _integer(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name.lower())
    try:
        return None if value is None else whole_number(value)
    except ValueError:
        raise OptionError(f"{name} must be an integer, got {value}") from None


def _positive(given: Mapping[str, str], name: str) -> int | None:
    number = _integer(given, name)
    if number is not None and number <= 0:
        raise OptionError(f"{name} must be positive")
    return number


def _retry_interval_ms(given: Mapping[str, str]) -> int:
    number = _integer(given, name := "fetchOffset.retryIntervalMs")
    if number is not None and number < 0:
        raise OptionError(f"{name} must not be negative")
    return DEFAULT_RETRY_INTERVAL_MS if number is None else number


def _duration_ms(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or (match[2] or "ms") not in _UNITS_MS:
        raise OptionError(f"maxTriggerDelay must be a time such as 15m or 500ms, got {text}")
    return int(int(match[1]) * _UNITS_MS[match[2] or "ms"])
