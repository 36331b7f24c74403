"""The config keys of the sink of files: those of Confluent's sinks to object stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.api import Config
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type, invalid
from barnabas.connect.plugins.files.partitioners import joda_error
from barnabas.connect.plugins.files.source_config import PLACE
from barnabas.connect.plugins.files.storage import define_store
from barnabas.connect.validators import Checked, Range, Timezone, Validator, one_of

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
FORMATS = {
    "parquet": "parquet",
    "json": "json",
    "avro": "avro",
    "csv": "csv",
    "lines": "lines",
    "bytearray": "lines",
    "string": "lines",
}
PARTITIONERS = ("Default", "Field", "TimeBased", "Hourly", "Daily")
EXTRACTORS = ("Record", "RecordField", "Wallclock")
BUCKET, URL = "s3.bucket.name", "store.url"
OF_S3 = {  # options of the store by keys of Confluent's S3 sink
    "store.region": "s3.region", "store.access_key_id": "aws.access.key.id", "store.secret_access_key": "aws.secret.access.key",
}  # fmt: skip
LONGEST_MS = 366 * 86_400_000


def short(name: str, suffix: str) -> str:
    """The short name of a class: `TimeBased` for `io.confluent.connect.storage.partitioner.TimeBasedPartitioner`."""
    return name.rpartition(".")[2].rpartition("$")[2].removesuffix(suffix)


def _named(suffix: str, valid: Sequence[str], *, lower: bool = False) -> Validator:
    def check(name: str, value: Any) -> None:
        found = short(value or "", suffix)
        if (found.lower() if lower else found) not in valid:
            raise invalid(name, value, f"one of {', '.join(valid)}, or a class name that ends so, such as {valid[0]}{suffix}")

    return Checked(check, f"[{', '.join(valid)}]")


def _pattern(name: str, value: Any) -> None:
    if reason := joda_error(value or ""):
        raise invalid(name, value, reason)


CONFIG = define_store(
    ConfigDef()
    .define(
        URL, Type.STRING, None, importance=HIGH, validator=PLACE,
        documentation="Where the files are: an absolute path, or a URL of an object store such as s3://bucket/prefix.",
    )
    .define(BUCKET, Type.STRING, None, importance=HIGH, documentation="The bucket of S3, in place of store.url.")
    .define("s3.region", Type.STRING, None, importance=MEDIUM, documentation="The region of s3.bucket.name.")
    .define("aws.access.key.id", Type.STRING, None, importance=MEDIUM, documentation="Who logs in at s3.bucket.name.")
    .define("aws.secret.access.key", Type.PASSWORD, None, importance=MEDIUM, documentation="The secret of aws.access.key.id.")
    .define("topics.dir", Type.STRING, "topics", importance=HIGH, documentation="The folder of the topics, below store.url.")
    .define(
        "format.class", Type.STRING, "json", importance=HIGH, validator=_named("Format", tuple(FORMATS), lower=True),
        documentation="The format of the files: parquet, json, avro, csv or lines, or a class name such as "
        "io.confluent.connect.s3.format.parquet.ParquetFormat.",
    )
    .define("flush.size", Type.INT, importance=HIGH, validator=Range(1), documentation="The records of a file.")
    .define(
        "rotate.interval.ms", Type.LONG, -1, importance=HIGH, validator=Range(-1),
        documentation="The time between the first record of a file and the first one behind it, by timestamp.extractor. -1: any time.",
    )
    .define(
        "rotate.schedule.interval.ms", Type.LONG, -1, importance=MEDIUM, validator=Range(-1),
        documentation="How often the records that are there are written to files, also if no others come. -1: never.",
    )
    .define(
        "file.max.bytes", Type.LONG, 128 << 20, importance=LOW, validator=Range(1),
        documentation="The bytes in memory at which the records of a topic partition are written before flush.size is reached.",
    )
    .define(
        "buffer.memory", Type.LONG, 256 << 20, importance=LOW, validator=Range(1),
        documentation="The bytes in memory that a task gathers at most; those of the largest topic partition are written then.",
    )
    .define(
        "partitioner.class", Type.STRING, "Default", importance=HIGH, validator=_named("Partitioner", PARTITIONERS),
        documentation="How folders are chosen: Default by partition, Field by partition.field.name, TimeBased by path.format, Hourly, "
        "Daily; or a class name such as io.confluent.connect.storage.partitioner.FieldPartitioner.",
    )
    .define("partition.field.name", Type.LIST, "", importance=MEDIUM, documentation="The fields that name the folders.")
    .define(
        "path.format", Type.STRING, "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", importance=MEDIUM,
        validator=Checked(_pattern, "a pattern of Joda-Time"), documentation="The folders of TimeBased.",
    )
    .define(
        "partition.duration.ms", Type.LONG, 3_600_000, importance=MEDIUM, validator=Range(1, LONGEST_MS),
        documentation="The span of time of a folder of TimeBased.",
    )
    .define(
        "timezone", Type.STRING, "UTC", importance=MEDIUM, validator=Timezone(),
        documentation="The time zone of folders by time.",
    )
    .define(
        "timestamp.extractor", Type.STRING, "Record", importance=MEDIUM, validator=_named("TimestampExtractor", EXTRACTORS),
        documentation="The time of a record: its timestamp, or a field (RecordField), or the clock when it is written (Wallclock: "
        "a record may then come twice after a kill).",
    )
    .define("timestamp.field", Type.STRING, "timestamp", importance=MEDIUM, documentation="The field of RecordField.")
    .define(
        "compression.type", Type.STRING, "none", importance=LOW, validator=one_of("none", "gzip"),
        documentation="The compression of JSON, CSV and lines.",
    )
    .define(
        "parquet.codec", Type.STRING, "snappy", importance=LOW, validator=one_of("none", "snappy", "gzip", "zstd", "lz4"),
        documentation="The compression of Parquet.",
    )
    .define(
        "avro.codec", Type.STRING, "null", importance=LOW, validator=one_of("null", "deflate"), documentation="The compression of Avro.",
    )
    .define(
        "behavior.on.null.values", Type.STRING, "fail", importance=LOW, validator=one_of("fail", "ignore"),
        documentation="What becomes of a record without a value: it is an error, or it is left out.",
    )
    .define("file.delim", Type.STRING, "+", importance=LOW, documentation="Between topic, partition and offset in the names of files.")
    .define(
        "filename.offset.zero.pad.width", Type.INT, 10, importance=LOW, validator=Range(0, 20),
        documentation="The digits of the offset in the names of files.",
    )
)  # fmt: skip


def errors(config: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """What does not fit together, by key."""
    found: dict[str, Sequence[str]] = {}
    if not (config.get(URL) or "").strip() and not (config.get(BUCKET) or "").strip():
        found[URL] = ["store.url is needed, or s3.bucket.name"]
    is_by_field = short((config.get("partitioner.class") or "").strip(), "Partitioner") == "Field"
    if is_by_field and not (config.get("partition.field.name") or "").strip():
        found["partition.field.name"] = ["partition.field.name is needed if partitioner.class is FieldPartitioner"]
    if "/" in (config.get("file.delim") or ""):
        found["file.delim"] = ["file.delim has no slash"]
    if ".." in (config.get("topics.dir") or "").split("/"):
        found["topics.dir"] = ["topics.dir does not leave store.url"]
    return found


def place_of(config: Config) -> tuple[str, dict[str, Any]]:
    """The place of the files, and the config with the options of its store. With a bucket, `store.url` is its server, as in Confluent's."""
    if not config[BUCKET]:
        return config[URL], dict(config)
    found = {key: config[name] for key, name in OF_S3.items() if config.get(name)}
    if config[URL]:
        found |= {"store.endpoint": config[URL], "store.allow_http": "true"}
    return f"s3://{config[BUCKET]}", {**{key: value for key, value in config.items() if value is not None}, **found}
