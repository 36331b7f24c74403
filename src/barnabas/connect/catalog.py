"""The plug-ins that connectors are made of, found by name: those of this package, and those of installed packages.

A package offers its own by an entry point of the group `barnabas.sources` or `barnabas.sinks`. The name of the entry point is the class
name in `connector.class`; its object is a subclass of `connect.api.Source` or `Sink`. Nothing is imported before somebody asks for the
class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import barnabas
from barnabas.connect.converters.registry import CONVERTERS, HEADER_CONVERTERS
from barnabas.connect.transforms.registry import PREDICATES, transforms
from barnabas.connect.transforms.registry import load as load_transform
from barnabas.errors import BarnabasError

PACKAGES = {"barnabas.sources": "source", "barnabas.sinks": "sink"}


class Kind(StrEnum):
    """What a plug-in is, in the words of Kafka Connect's REST interface."""

    SOURCE = "source"
    SINK = "sink"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"


class Plugin(NamedTuple):
    """A plug-in.

    Args:
        name: its class name, as configs and the REST interface have it.
        aliases: shorter names that configs may have.
        load: imports and returns the class.
    """

    name: str
    kind: Kind
    aliases: tuple[str, ...]
    version: str
    load: Callable[[], Any]


class UnknownPlugin(BarnabasError):
    """No plug-in has the name."""


def built_in(kind: Kind, name: str, module: str, cls: str, *aliases: str) -> Plugin:
    """A plug-in of this package.

    Args:
        module: below `barnabas.connect`.
        cls: the name of the class in it.
    """
    short = name.rpartition(".")[2]
    return Plugin(
        name, kind, (short, *aliases), barnabas.__version__, lambda: getattr(import_module(f"barnabas.connect.{module}"), cls)
    )


STORES = "plugins.dialects.confluent_stores"
SPOOL_DIR = "com.github.jcustenborder.kafka.connect.spooldir.SpoolDir"
BUILT_IN = (
    built_in(
        Kind.SOURCE, "org.apache.kafka.connect.file.FileStreamSourceConnector", "plugins.file_stream", "FileStreamSource",
        "FileStreamSource",
    ),
    built_in(
        Kind.SINK, "org.apache.kafka.connect.file.FileStreamSinkConnector", "plugins.file_stream", "FileStreamSink",
        "FileStreamSink",
    ),
    built_in(
        Kind.SINK, "io.confluent.connect.jdbc.JdbcSinkConnector", "plugins.sql_sink.sink", "SqlSink", "SqlSink",
        "barnabas.connect.plugins.sql_sink", "io.aiven.connect.jdbc.JdbcSinkConnector",
    ),
    built_in(
        Kind.SINK, "io.debezium.connector.jdbc.JdbcSinkConnector", "plugins.dialects.debezium_jdbc", "DebeziumJdbcSink",
    )._replace(aliases=("DebeziumJdbcSink",)),  # the short name is that of Confluent's
    built_in(
        Kind.SOURCE, "io.confluent.connect.jdbc.JdbcSourceConnector", "plugins.sql_source.source", "SqlSource", "SqlSource",
        "barnabas.connect.plugins.sql_source", "io.aiven.connect.jdbc.JdbcSourceConnector",
    ),
    built_in(
        Kind.SOURCE, "io.debezium.connector.mariadb.MariaDbConnector", "plugins.mysql_capture.source", "MysqlCapture",
        "MysqlCapture", "io.debezium.connector.mysql.MySqlConnector", "MySqlConnector", "barnabas.connect.plugins.mysql_capture",
    ),
    built_in(
        Kind.SOURCE, "io.debezium.connector.postgresql.PostgresConnector", "plugins.postgres_capture.source", "PostgresCapture",
        "PostgresCapture", "barnabas.connect.plugins.postgres_capture",
    ),
    built_in(
        Kind.SOURCE, "io.confluent.kafka.connect.datagen.DatagenConnector", "plugins.datagen.source", "Datagen", "Datagen",
    ),
    built_in(Kind.SOURCE, "barnabas.FileSource", "plugins.files.source", "FileSource"),
    built_in(Kind.SOURCE, f"{SPOOL_DIR}CsvSourceConnector", "plugins.dialects.spool_dir", "SpoolDirCsv"),
    built_in(Kind.SOURCE, f"{SPOOL_DIR}JsonSourceConnector", "plugins.dialects.spool_dir", "SpoolDirJson"),
    built_in(Kind.SOURCE, f"{SPOOL_DIR}AvroSourceConnector", "plugins.dialects.spool_dir", "SpoolDirAvro"),
    built_in(
        Kind.SOURCE, f"{SPOOL_DIR}LineDelimitedSourceConnector", "plugins.dialects.spool_dir", "SpoolDirLines",
        f"{SPOOL_DIR}SchemaLessJsonSourceConnector", "SpoolDirSchemaLessJsonSourceConnector",
    ),
    built_in(Kind.SINK, "barnabas.FileSink", "plugins.files.sink", "FileSink"),
    built_in(Kind.SINK, "io.confluent.connect.s3.S3SinkConnector", STORES, "S3Sink"),
    built_in(Kind.SINK, "io.confluent.connect.gcs.GcsSinkConnector", STORES, "GcsSink"),
    built_in(Kind.SINK, "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector", STORES, "AzureBlobSink"),
    built_in(Kind.SOURCE, "barnabas.HttpSource", "plugins.http.source", "HttpSource"),
    built_in(Kind.SINK, "barnabas.HttpSink", "plugins.http.sink", "HttpSink"),
    built_in(Kind.SINK, "io.confluent.connect.http.HttpSinkConnector", "plugins.dialects.confluent_http", "ConfluentHttpSink"),
    built_in(Kind.SINK, "barnabas.DeltaSink", "plugins.delta.sink", "DeltaSink"),
    built_in(
        Kind.SINK, "org.apache.iceberg.connect.IcebergSinkConnector", "plugins.iceberg.sink", "IcebergSink", "IcebergSink",
        "barnabas.IcebergSink", "io.tabular.iceberg.connect.IcebergSinkConnector",
    ),
    built_in(Kind.SOURCE, "barnabas.DebeziumSource", "plugins.debezium_engine.source", "DebeziumSource"),
    built_in(Kind.SOURCE, "barnabas.DltSource", "plugins.dlt_source.source", "DltSource"),
    built_in(Kind.SOURCE, "barnabas.SparkSource", "plugins.spark.source", "SparkSource"),
    built_in(Kind.SINK, "barnabas.SparkSink", "plugins.spark.sink", "SparkSink"),
)  # fmt: skip


def _transforms() -> list[Plugin]:
    """The transforms and predicates of this package. One with variants for keys and values has an alias with the short name of both."""
    found = []
    for name, (module, cls, side) in transforms().items():
        load = partial(load_transform, module, cls, side)
        own: tuple[str, ...] = () if name.startswith("io.") else (name.rpartition(".")[2],)  # three of them have a Filter
        found.append(Plugin(name, Kind.TRANSFORMATION, own, barnabas.__version__, load))
    for name in PREDICATES:
        short = name.rpartition(".")[2]
        found.append(
            Plugin(name, Kind.PREDICATE, (short,), barnabas.__version__, partial(load_transform, "predicates", short, None))
        )
    return found


def _converters() -> list[Plugin]:
    return [
        built_in(Kind.CONVERTER, name, f"converters.{module}", cls, cls.removesuffix("Converter"))
        for name, (module, cls) in CONVERTERS.items()
    ]


def _header_converters() -> list[Plugin]:
    return [
        built_in(Kind.HEADER_CONVERTER, name, f"converters.{module}", cls, name.rpartition(".")[2].removesuffix("Converter"))
        for name, (module, cls) in HEADER_CONVERTERS.items()
    ]


def plugins(more: Iterable[Plugin] = ()) -> list[Plugin]:
    """All plug-ins that are installed, by kind and name."""
    return sorted((*_installed(), *more), key=lambda each: (each.kind, each.name))


@cache
def _installed() -> tuple[Plugin, ...]:
    """Read once: what is installed does not change while a process runs."""
    found = [*BUILT_IN, *_transforms(), *_converters(), *_header_converters()]
    for group, kind in PACKAGES.items():
        for each in entry_points(group=group):
            version = each.dist.version if each.dist is not None else "undefined"
            found.append(Plugin(each.name, Kind(kind), (), version, each.load))
    return tuple(found)


def find(name: str, kinds: Iterable[Kind] = tuple(Kind)) -> Plugin:
    """The plug-in of a class name or an alias. Raises UnknownPlugin."""
    wanted = set(kinds)
    for each in plugins():
        if each.kind in wanted and name in (each.name, *each.aliases):
            return each
    raise UnknownPlugin(f"Class {name} could not be found.{_others(name, wanted)}")


def _others(name: str, kinds: set[Kind]) -> str:
    """Which transforms of the same maker there are, for a name that is one of Confluent's or Debezium's."""
    maker = ".".join(name.split(".")[:2])
    if Kind.TRANSFORMATION not in kinds or maker not in {"io.confluent", "io.debezium"}:
        return ""
    found = [each.name for each in plugins() if each.kind is Kind.TRANSFORMATION and each.name.startswith(f"{maker}.")]
    return f" Of {maker} there are {', '.join(found)}; barnabas.Sql and barnabas.Python do what others do"
