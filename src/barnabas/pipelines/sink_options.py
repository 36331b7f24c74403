"""The options of the sink, parsed and checked with the messages of Spark's `kafka` sink."""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.config import ClientConfig
from barnabas.digits import INT64, is_number
from barnabas.pipelines.offsets import OptionError
from barnabas.pipelines.options import client_config
from barnabas.protocol.records.compression import NAMES, Compression

DEFAULT_REQUEST_BYTES = 1_048_576  # bytes; the default max.request.size of the Java producer
DEFAULT_TRANSACTION_TIMEOUT_MS = 900_000  # the broker's default maximum; applies only without two-phase commit
MAX_NAME = 200  # characters of a sink's name, because transactional ids contain the name
NOT_FOR_WRITING = {
    "key.serializer": "keys are serialized with ByteArraySerializer.",
    "value.serializer": "value are serialized with ByteArraySerializer.",
    "partitioner.class": "a Java class cannot run here: give rows a column 'partition' to choose their partitions.",
    "transactional.id": "the sink creates its own transactional ids: set the option sinkName to name them.",
}
_CODECS = {**NAMES, "none": Compression.NONE}
PLACE = re.compile(r"(?:([a-zA-Z][a-zA-Z0-9+.-]*:)(//[^/]*)?)?(.*)", re.DOTALL)  # scheme, authority, path
SLASHES = re.compile("//+")
TEXT = ("string", "binary")
HEADERS = ("array<struct<key:string,value:binary>>",)
COLUMN_TYPES = {"topic": TEXT[:1], "key": TEXT, "value": TEXT, "headers": HEADERS, "partition": ("int",)}


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The write options; the same in every task."""

    topic: str | None  # None: the column `topic` names it
    acks: int = -1
    codec: Compression = Compression.NONE
    max_request_bytes: int = DEFAULT_REQUEST_BYTES
    transaction_timeout_ms: int = DEFAULT_TRANSACTION_TIMEOUT_MS
    creates_topics: bool = True  # whether brokers may create a topic that does not exist
    client: ClientConfig = field(repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a query. `name` is the name of the sink; None means writing at least once."""

    task: WriteTask
    name: str | None = None
    batch_id: int | None = None  # identifies a batch write that must happen only once


def sink_options(options: Mapping[str, str], columns: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """Check the options and the columns (a mapping from a column's name to Spark's name of its type).

    Raises:
        OptionError: with the message of Spark's `kafka` sink if it has one.
    """
    given = {key.lower(): value for key, value in options.items()}
    kafka = {key.removeprefix("kafka."): value for key, value in given.items() if key.startswith("kafka.")}
    _check(given, kafka, columns)
    task = WriteTask(
        topic=given["topic"].strip() if "topic" in given else None,
        acks=_acks(kafka.get("acks", "all")),
        codec=_codec(kafka.get("compression.type", "none")),
        max_request_bytes=_positive(kafka, "max.request.size", DEFAULT_REQUEST_BYTES),
        transaction_timeout_ms=_positive(kafka, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS),
        creates_topics=_boolean(given, "createTopics", True),
        client=client_config(kafka),
    )
    name = _stream_name(given) if streaming else _batch_name(given)
    if name is not None and task.acks != -1:
        raise OptionError(f"kafka.acks must be all for writing exactly once, got {kafka['acks']}; or set exactlyOnce to false")
    return SinkOptions(task, name, _batch_id(given) if not streaming else None)


def _check(given: Mapping[str, str], kafka: Mapping[str, str], columns: Mapping[str, str]) -> None:
    for name, why in NOT_FOR_WRITING.items():
        if name in kafka:
            raise OptionError(f"Kafka option '{name}' is not supported as {why}")
    if "bootstrap.servers" not in kafka:
        raise OptionError("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer")
    if "topic" not in given and "topic" not in columns:
        raise OptionError("topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.")
    if "value" not in columns:
        raise OptionError("Required attribute 'value' not found")
    for name, allowed in COLUMN_TYPES.items():
        if name == "topic" and "topic" in given:
            continue
        if name in columns and columns[name] not in allowed:
            raise OptionError(f"{name} attribute unsupported type {columns[name]}. {name} must be a(n) {' or '.join(allowed)}")


def _stream_name(given: Mapping[str, str]) -> str | None:
    """The sink's name: from the options, or derived from the location of the checkpoint, which stays the same after a restart."""
    if not _boolean(given, "exactlyOnce", True):
        return None
    if "sinkname" in given:
        return _checked_name(given["sinkname"])
    where = given.get("checkpointlocation", "").strip()
    if not where:
        raise OptionError(
            "writing exactly once needs a name that is the same after a restart: set the option checkpointLocation or sinkName, "
            "or set exactlyOnce to false"
        )
    what = f"{_one_spelling(where)}\n{given.get('topic', '').strip()}"
    return f"spark-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


def _one_spelling(where: str) -> str:
    """The canonical text of a location: `/data/cp`, `/data//cp/`, `FILE:/data/cp` and `file:///data/cp` are the same folder for
    Spark.

    A relative path is on this machine if it exists, since Spark creates the folder before it writes. Otherwise it stays
    unchanged: only the cluster's default file system knows its base folder, and this process may have another working folder
    after a restart.
    """
    found = PLACE.fullmatch(where)
    assert found is not None  # the pattern matches any text
    scheme, authority, path = (part or "" for part in found.groups())
    scheme = scheme.lower()
    if scheme in ("", "file:"):
        scheme, authority, path = "", "", authority + path
        if not path.startswith("/") and os.path.isdir(path):
            path = os.path.abspath(path)
    return f"{scheme}{authority}{posixpath.normpath(SLASHES.sub('/', path)) if path else ''}".rstrip("/")


def _batch_name(given: Mapping[str, str]) -> str | None:
    """The sink's name of a batch write. Writing exactly once needs a name in the options, so that a later write can finish an
    interrupted one."""
    named = "sinkname" in given
    if not _boolean(given, "exactlyOnce", named):
        return None
    if not named:
        raise OptionError("writing a batch exactly once needs the option sinkName")
    return _checked_name(given["sinkname"])


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME or "/" in name:
        raise OptionError(f"sinkName must have 1 to {MAX_NAME} characters and no slash, got '{name}'")
    return name


def _batch_id(given: Mapping[str, str]) -> int | None:
    value = given.get("sinkbatchid")
    if value is None:
        return None
    if "sinkname" not in given:
        raise OptionError("sinkBatchId needs the option sinkName")
    if not is_number(value.strip(), INT64):
        raise OptionError(f"sinkBatchId must be a number of zero or more, got {value}")
    return int(value)


def _acks(value: str) -> int:
    if value not in {"all", "-1", "1"}:
        raise OptionError(f"kafka.acks must be all or 1, got {value}: without an acknowledgement a write cannot be confirmed")
    return 1 if value == "1" else -1


def _codec(value: str) -> Compression:
    if value not in _CODECS:
        raise OptionError(f"kafka.compression.type must be one of none, gzip, snappy, lz4, zstd, got {value}")
    return _CODECS[value]


def _boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    value = given.get(name.lower(), str(default)).strip().lower()
    if value not in {"true", "false"}:
        raise OptionError(f"{name} must be true or false, got {given[name.lower()]}")
    return value == "true"


def _positive(kafka: Mapping[str, str], name: str, default: int) -> int:
    value = kafka.get(name)
    if value is None:
        return default
    if not is_number(value.strip()) or not int(value):
        raise OptionError(f"kafka.{name} must be a number above zero, got {value}")
    return int(value)
