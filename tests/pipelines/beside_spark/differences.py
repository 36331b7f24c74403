"""Where ours differs from Spark's connector on purpose, and why. `docs/spark.md` lists these reasons."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.pipelines.beside_spark.cases import LSO, OUT, ROW, Case, T


class Difference(NamedTuple):
    """Whether ours takes the case, and why."""

    takes: bool
    why: str


WORDS_BY_TOPIC = "a topic's word for all of its partitions is ours"
FRACTIONS = "a position that is no whole number is a mistake; Spark's cuts it off and takes null for 0"
SPACES = "spaces around a number or a word are no mistake"
ABSENT = "a partition that was named and is not there is a mistake; Spark's reads nothing of it"
NOT_POSITIVE = "what cannot be is refused; Spark's reads nothing for ever, or takes it for no limit"
UNUSED = "a stream's options are checked in batch queries too"
NO_END = "a stream has no end; Spark's forgets this one of the three"
NOT_OURS = "a setting that only Java's client has"
OPEN = "what an open transaction holds back is waited for: the range is empty, and begins where it was told to"
ACKS = "without an acknowledgement a write cannot be confirmed"
EVERYTHING = "Trigger.AvailableNow takes everything that is there, however little is left"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _of(kind: str, base: dict[str, str], takes: bool, why: str, *givens: dict[str, Any]) -> dict[str, Difference]:
    cases = [Case(kind, {**base, **{name: _text(value) for name, value in given.items()}}) for given in givens]
    return {case.name: Difference(takes, why) for case in cases}


READ, STREAM = {"subscribe": T}, {"subscribe": T, "startingOffsets": "earliest"}
COMMITTED = {"subscribe": LSO, "kafka.isolation.level": "read_committed"}
FRACTION, NULL = {T: {"0": 1.5, "1": 0}}, {T: {"0": None, "1": 0}}
END_FRACTION, END_NULL = {T: {"0": 1.5, "1": -1}}, {T: {"0": None, "1": -1}}
BY_TIME = ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp")
DIFFERENCES: dict[str, Difference] = {
    **_of("batch", READ, True, WORDS_BY_TOPIC, {"startingOffsets": {T: "earliest"}}, {"endingOffsets": {T: "latest"}}),
    **_of("stream", READ, True, WORDS_BY_TOPIC, {"startingOffsets": {T: "earliest"}}),
    **_of(
        "batch", READ, False, FRACTIONS, {"startingOffsets": FRACTION}, {"startingOffsets": NULL}, {"endingOffsets": END_FRACTION}
    ),
    **_of(
        "batch",
        READ,
        False,
        FRACTIONS,
        {"endingOffsets": END_NULL},
        *({name: each} for name in BY_TIME for each in (FRACTION, NULL)),
    ),
    **_of("stream", READ, False, FRACTIONS, {"startingOffsets": FRACTION}, {"startingOffsets": NULL}),
    **_of("stream", READ, False, FRACTIONS, {"startingOffsets": {T: {"0": 2**63, "1": 0}}}),
    **_of("batch", {}, False, FRACTIONS, {"assign": {T: [0.5]}}),
    **_of("batch", {}, False, ABSENT, {"assign": {T: [9]}}, {"assign": {T: [-1]}}),
    **_of("batch", READ, True, SPACES, {"minPartitions": " 3 "}, {"maxRecordsPerPartition": " 3 "}, {"failOnDataLoss": " true "}),
    **_of("batch", READ, True, SPACES, {"includeHeaders": " true "}),
    **_of("stream", STREAM, True, SPACES, {"maxOffsetsPerTrigger": " 3 "}, {"minOffsetsPerTrigger": " 3 "}),
    **_of("stream", STREAM, True, SPACES, {"minOffsetsPerTrigger": "1", "maxTriggerDelay": "1 h"}),
    **_of("batch", READ, False, NOT_POSITIVE, {"fetchOffset.retryIntervalMs": "-1"}),
    **_of(
        "stream",
        STREAM,
        False,
        NOT_POSITIVE,
        *({n: v} for n in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger") for v in ("0", "-1")),
    ),
    **_of("stream", STREAM, False, NOT_POSITIVE, {"minOffsetsPerTrigger": "1", "maxTriggerDelay": "-1s"}),
    **_of("batch", READ, False, UNUSED, *({"maxOffsetsPerTrigger": value} for value in ("0", "-1", "x", ""))),
    **_of("stream", STREAM, False, NO_END, {"endingTimestamp": "1"}),
    **_of("batch", READ, True, NOT_OURS, {"kafka.max.poll.records": "0"}),
    **_of("batch", COMMITTED, True, OPEN, {"startingOffsets": {LSO: {"0": 7}}}),
    **_of("stream", COMMITTED, True, OPEN, {"startingOffsets": {LSO: {"0": 7}}}),
    Case("write", {"topic": OUT, "kafka.acks": "0"}, ROW).name: Difference(False, ACKS),
    Case("write", {"topic": OUT, "kafka.enable.idempotence": "x"}, ROW).name: Difference(True, NOT_OURS),
    **_of("stream", STREAM, True, EVERYTHING, {"minOffsetsPerTrigger": "8", "maxOffsetsPerTrigger": "8"}),
}
# Refused option -> name that the error must contain. The first entry whose option is given counts.
SUBJECTS: dict[str, str] = {
    "startingOffsetsByTimestampStrategy": "startingOffsetsByTimestampStrategy",
    **{
        name: name
        for name in (
            "minPartitions",
            "maxRecordsPerPartition",
            "failOnDataLoss",
            "includeHeaders",
            "kafkaConsumer.pollTimeoutMs",
            "fetchOffset.numRetries",
            "fetchOffset.retryIntervalMs",
            "maxTriggerDelay",
            "kafka.request.timeout.ms",
            "kafka.fetch.max.wait.ms",
            "kafka.max.partition.fetch.bytes",
            "kafka.bootstrap.servers",
        )
    },
    "kafka.auto.offset.reset": "auto.offset.reset",
    "kafka.key.deserializer": "key.deserializer",
    "kafka.value.deserializer": "value.deserializer",
    "kafka.enable.auto.commit": "enable.auto.commit",
    "kafka.interceptor.classes": "interceptor.classes",
    "minOffsetsPerTrigger": "OffsetsPerTrigger",
    "maxOffsetsPerTrigger": "OffsetsPerTrigger",
}
