"""Options as people write them, right and wrong: what Spark's connector makes of each is recorded in `recorded.json`.

The topics, as `topics.made` makes them: `T` has two partitions of ten records, `U` one, `LSO` one with five records and five more of a
transaction that stays open. Record i of each is of the time FIRST_MS + i seconds.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

T, U, LSO, OUT = "beside-t", "beside-u", "beside-lso", "beside-out"
FIRST_MS = 1_700_000_000_000
LAST_MS = FIRST_MS + 9_000
RECORDS = 10


class Case(NamedTuple):
    """A query; `kind` is batch, stream (both read) or write, `given` its options, `rows` the SQL of what is written."""

    kind: str
    given: dict[str, str]
    rows: str = ""

    @property
    def name(self) -> str:
        return " ".join([self.kind, json.dumps(self.given, sort_keys=True), self.rows]).strip()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _both(zero: Any, one: Any = 0, topic: str = T) -> dict[str, Any]:
    return {topic: {"0": zero, "1": one}}


READ = {"subscribe": T}
EARLIEST = {"startingOffsets": "earliest"}
STARTS: list[Any] = [
    "earliest",
    "EARLIEST",
    " earliest ",
    "latest",
    "",
    "  ",
    "none",
    "5",
    "{}",
    "[]",
    "null",
    "{",
    {T: 5},
    {T: "earliest"},
    {T: "middle"},
    *(
        _both(offset)
        for offset in (0, 4, RECORDS, RECORDS + 1, -1, -2, -3, -100, 2**31, 2**63 - 1, 2**63, 1.5, "1", None, True, [1])
    ),
    {T: {"0": 0}},
    {T: {"0": 0, "1": 0, "2": 0}},
    {U: {"0": 0}},
    {**_both(0), U: {"0": 0}},
    {T: {"x": 0, "1": 0}},
    {T: {"-1": 0, "0": 0, "1": 0}},
]
ENDS: list[Any] = [
    "latest",
    "LATEST",
    "earliest",
    "",
    "none",
    "{}",
    {T: "latest"},
    {T: "earliest"},
    *(_both(offset, -1) for offset in (0, 4, RECORDS, RECORDS + 1, 100, -1, -2, -3, -100, 1.5, "1", None)),
    {T: {"0": 5}},
    {T: {"0": 5, "1": 5, "2": 5}},
    {U: {"0": 5}},
]
TIMES: list[Any] = ["0", "-1", "abc", "", "1.5", " 5 ", str(FIRST_MS + 4_500), str(LAST_MS), str(LAST_MS + 1), str(2**63)]
TIME_MAPS: list[Any] = [
    _both(FIRST_MS + 4_000, 0),
    _both(-1, 0),
    _both(-3, 0),
    _both(LAST_MS + 1, 0),
    _both("1", 0),
    _both(1.5, 0),
    _both(None, 0),
    {T: {"0": 0}},
    {T: {"0": 0, "1": 0, "2": 0}},
    "{}",
    "{",
    "",
    "5",
    "earliest",
    {T: 5},
    {U: {"0": 0}},
]
RANGES: list[dict[str, Any]] = [
    {"startingOffsets": _both(5), "endingOffsets": _both(4, -1)},
    {"startingOffsets": _both(5), "endingOffsets": _both(5, -1)},
    {"startingOffsets": _both(5), "endingOffsets": {T: {"0": 6}}},
    {"startingOffsets": _both(-2, -2), "endingOffsets": _both(0, 0)},
    {"startingTimestamp": str(FIRST_MS + 5_000), "endingTimestamp": str(FIRST_MS + 2_000)},
    {"startingTimestamp": str(FIRST_MS + 5_000), "endingTimestamp": str(FIRST_MS + 5_000)},
    {"startingTimestamp": str(FIRST_MS + 5_000), "endingOffsets": _both(3, 3)},
    {"startingTimestamp": str(FIRST_MS + 5_000), "endingOffsets": _both(7, 6)},
    {"startingOffsetsByTimestamp": _both(FIRST_MS + 5_000), "endingOffsetsByTimestamp": _both(FIRST_MS + 4_000, LAST_MS)},
    {"startingOffsetsByTimestamp": _both(FIRST_MS + 5_000), "endingOffsetsByTimestamp": {T: {"0": LAST_MS}}},
    {"startingOffsets": _both(5), "endingTimestamp": str(FIRST_MS + 2_000)},
    {"startingTimestamp": str(LAST_MS + 1), "startingOffsetsByTimestampStrategy": "latest"},
    {"startingTimestamp": str(LAST_MS + 1), "startingOffsetsByTimestampStrategy": "LATEST"},
    {"startingTimestamp": "0", "startingOffsetsByTimestampStrategy": "x"},
    {"startingOffsets": "earliest", "startingOffsetsByTimestampStrategy": "x"},
    {"startingTimestamp": "0", "startingOffsetsByTimestampStrategy": ""},
    {"startingTimestamp": "0", "startingOffsets": "latest"},
    {"startingTimestamp": "0", "startingOffsetsByTimestamp": "{"},
    {"startingTimestamp": "0", "startingOffsets": "{"},
]
CHOICES: list[dict[str, Any]] = [
    {},
    {"subscribe": T, "assign": {T: [0]}},
    {"subscribe": T, "subscribePattern": T},
    {"assign": ""},
    {"assign": T},
    {"assign": {T: [0]}},
    {"assign": {T: [0, 0]}},
    {"assign": {T: [9]}},
    {"assign": {T: [-1]}},
    {"assign": {T: 0}},
    {"assign": {T: ["0"]}},
    {"assign": "{}"},
    {"assign": {T: []}},
    {"assign": {T: [0.5]}},
    {"assign": {"beside-missing": [0]}},
    {"subscribe": ""},
    {"subscribe": ","},
    {"subscribe": f"{T},"},
    {"subscribe": f"{T},{T}"},
    {"subscribe": f" {T} "},
    {"subscribe": f"{T},{U}"},
    {"subscribe": "beside-missing"},
    {"subscribe": "no/name"},
    {"subscribePattern": ""},
    {"subscribePattern": "beside-[tu]"},
    {"subscribePattern": "("},
    {"subscribePattern": "beside-missing.*"},
    {"subscribePattern": " beside-t "},
]
NUMBERS = ["0", "-1", "x", "", "1.5", "1", " 3 "]
WORDS = ["true", "FALSE", "yes", "1", "", " true "]
CLIENT: list[dict[str, str]] = [
    {"kafka.auto.offset.reset": "earliest"},
    {"kafka.key.deserializer": "x"},
    {"kafka.value.deserializer": "x"},
    {"kafka.enable.auto.commit": "false"},
    {"kafka.interceptor.classes": "x"},
    {"kafka.isolation.level": "x"},
    {"kafka.isolation.level": "read_uncommitted"},
    {"kafka.request.timeout.ms": "x"},
    {"kafka.request.timeout.ms": "-1"},
    {"kafka.fetch.max.wait.ms": "x"},
    {"kafka.max.partition.fetch.bytes": "-1"},
    {"kafka.client.id": "mine"},
    {"kafka.group.id": "beside-g"},
    {"kafka.group.id": "beside-g", "groupIdPrefix": "p"},
    {"groupIdPrefix": "p"},
    {"groupIdPrefix": ""},
    {"kafka.no.such.setting": "x"},
    {"no.such.option": "x"},
    {"kafka.security.protocol": "x"},
    {"kafka.max.poll.records": "0"},
    {"kafka.bootstrap.servers": ""},
    {"kafka.bootstrap.servers": "localhost"},
    {"kafka.bootstrap.servers": ","},
    {"kafka.bootstrap.servers": "localhost:x"},
]
TRIGGERS: list[dict[str, str]] = [
    *({name: value} for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger") for value in NUMBERS),
    {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
    {"minOffsetsPerTrigger": "8", "maxOffsetsPerTrigger": "8"},
    *(
        {"minOffsetsPerTrigger": "1", "maxTriggerDelay": value}
        for value in ("15m", "5", "x", "", "-1s", "1.5s", "1 h", "2d", "10us")
    ),
]
STREAM_STARTS = [each for each in STARTS if each in ("earliest", "latest", "none", "{}") or isinstance(each, dict)]
ROW = "select 'v' as value"
WRITES: list[Case] = [
    Case("write", given, rows)
    for given, rows in [
        ({}, ROW),
        ({"topic": OUT}, ROW),
        ({"topic": ""}, ROW),
        ({"topic": f" {OUT} "}, ROW),
        ({"topic": "no/name"}, ROW),
        ({}, f"select 'v' as value, '{OUT}' as topic"),
        ({}, "select 'v' as value, cast(null as string) as topic"),
        ({}, "select 'v' as value, '' as topic"),
        ({}, "select 'v' as value, 1 as topic"),
        ({"topic": OUT}, "select 'v' as value, cast(null as string) as topic"),
        ({"topic": OUT}, "select 'v' as value, 1 as topic"),
        ({"topic": OUT}, "select 'k' as key"),
        ({"topic": OUT}, "select 1 as value"),
        ({"topic": OUT}, "select 1 as key, 'v' as value"),
        ({"topic": OUT}, "select cast(null as string) as value"),
        ({"topic": OUT}, "select '' as value, '' as key"),
        ({"topic": OUT}, "select cast(null as string) as key, cast(null as binary) as value"),
        ({"topic": OUT}, "select 'v' as value, '0' as partition"),
        ({"topic": OUT}, "select 'v' as value, 0L as partition"),
        ({"topic": OUT}, "select 'v' as value, 0 as partition"),
        ({"topic": OUT}, "select 'v' as value, -1 as partition"),
        ({"topic": OUT}, "select 'v' as value, cast(null as int) as partition"),
        ({"topic": OUT, "kafka.max.block.ms": "3000"}, "select 'v' as value, 99 as partition"),
        *(
            ({"topic": OUT}, f"select 'v' as value, {headers} as headers")
            for headers in (
                "array(named_struct('key', 'h', 'value', cast('x' as binary)))",
                "array(named_struct('key', 'h', 'value', cast(null as binary)))",
                "array(named_struct('key', 'h', 'value', cast('' as binary)))",
                "array(named_struct('key', '', 'value', cast('x' as binary)))",
                "array(named_struct('key', cast(null as string), 'value', cast('x' as binary)))",
                "array(named_struct('key', 'h', 'value', cast('x' as binary)), cast(null as struct<key:string,value:binary>))",
                "cast(null as array<struct<key:string,value:binary>>)",
                "cast(array() as array<struct<key:string,value:binary>>)",
                "array(named_struct('key', 'h', 'value', 'x'))",
                "array('h')",
                "map('h', cast('x' as binary))",
            )
        ),
        *(
            ({"topic": OUT, f"kafka.{name}": value}, ROW)
            for name, value in (
                ("key.serializer", "x"),
                ("value.serializer", "x"),
                ("partitioner.class", "x"),
                ("transactional.id", "x"),
                ("acks", "x"),
                ("acks", "0"),
                ("acks", "1"),
                ("acks", "-1"),
                ("compression.type", "x"),
                ("compression.type", "zstd"),
                ("max.request.size", "x"),
                ("max.request.size", "-1"),
                ("max.request.size", "10"),
                ("enable.idempotence", "x"),
                ("bootstrap.servers", ""),
                ("request.timeout.ms", "x"),
            )
        ),
        ({"topic": OUT, "includeHeaders": "x"}, ROW),
        ({"topic": OUT, "startingOffsets": "{"}, ROW),
        ({"topic": OUT, "mode": "overwrite"}, ROW),
        ({"topic": OUT, "mode": "ignore"}, ROW),
        ({"topic": OUT, "mode": "append"}, ROW),
    ]
]


def _reads(kind: str, *givens: dict[str, Any]) -> list[Case]:
    return [Case(kind, {name: _text(value) for name, value in given.items()}) for given in givens]


CASES: list[Case] = [
    *_reads("batch", *({**READ, "startingOffsets": each} for each in STARTS)),
    *_reads("batch", *({**READ, "endingOffsets": each} for each in ENDS)),
    *_reads("batch", *({**READ, name: each} for name in ("startingTimestamp", "endingTimestamp") for each in TIMES)),
    *_reads(
        "batch",
        *({**READ, name: each} for name in ("startingOffsetsByTimestamp", "endingOffsetsByTimestamp") for each in TIME_MAPS),
    ),
    *_reads("batch", *({**READ, **each} for each in RANGES)),
    *_reads("batch", *CHOICES),
    *_reads("batch", *({**READ, name: each} for name in ("minPartitions", "maxRecordsPerPartition") for each in NUMBERS)),
    *_reads("batch", *({**READ, "failOnDataLoss": each} for each in WORDS)),
    *_reads("batch", *({**READ, "includeHeaders": each} for each in WORDS)),
    *_reads(
        "batch",
        *(
            {**READ, name: each}
            for name in ("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs")
            for each in ("0", "-1", "x", "1000")
        ),
    ),
    *_reads("batch", *({**READ, **each} for each in CLIENT)),
    *_reads("batch", *({**READ, **each} for each in TRIGGERS[:4])),
    *_reads(
        "batch",
        *(
            {"subscribe": LSO, "kafka.isolation.level": level, **each}
            for level in ("read_committed", "read_uncommitted")
            for each in (
                {},
                {"startingOffsets": {LSO: {"0": 5}}},
                {"startingOffsets": {LSO: {"0": 7}}},
                {"startingOffsets": {LSO: {"0": 11}}},
                {"startingOffsets": {LSO: {"0": 7}}, "endingOffsets": {LSO: {"0": 9}}},
                {"endingOffsets": {LSO: {"0": 3}}},
                {"startingTimestamp": str(FIRST_MS + 7_000)},
                {"startingTimestamp": str(LAST_MS + 1), "startingOffsetsByTimestampStrategy": "latest"},
            )
        ),
    ),
    *_reads("stream", *({**READ, "startingOffsets": each} for each in STREAM_STARTS)),
    *_reads(
        "stream",
        *(
            {**READ, **EARLIEST, **each}
            for each in (
                {"endingOffsets": "latest"},
                {"endingTimestamp": "1"},
                {"endingOffsetsByTimestamp": _both(1)},
                {"minPartitions": "0"},
                {"failOnDataLoss": "x"},
            )
        ),
    ),
    *_reads("stream", *({**READ, "startingTimestamp": each} for each in ("0", "-1", "abc", str(LAST_MS + 1)))),
    *_reads("stream", {"subscribe": LSO, "startingOffsets": {LSO: {"0": 7}}, "kafka.isolation.level": "read_committed"}),
    *_reads("stream", *CHOICES[:2], {"subscribe": "beside-missing"}),
    *_reads("stream", *({**READ, **EARLIEST, **each} for each in TRIGGERS)),
    *WRITES,
]
