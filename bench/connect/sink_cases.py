"""The sinks that `python -m bench run sinks` measures: their configs, and how many rows are in the target afterwards."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from bench.connect.rows import SQL_COLUMNS
from bench.connect.stores import Stores
from bench.connect.systems import ApacheIceberg, DebeziumJdbc, Worker

Config = Mapping[str, str]
HIKARI = "org.hibernate.hikaricp.internal.HikariCPConnectionProvider"
DATA: Any = ds.dataset
UNLOCKED_S = 30.0


@dataclass(frozen=True)
class SinkCase:
    """A sink and a target.

    Args:
        rows: how many are measured, besides one that comes before.
        config: of the connector, for a topic.
        count: the rows in the target; None if nobody can look.
        prepare: makes the target.
        schemas: whether records have their schemas, as the counterpart in Java wants it.
        theirs: the config of the counterpart.
        worker: with the counterpart.
    """

    name: str
    title: str
    rows: int
    config: Callable[[Stores, str], Config]
    count: Callable[[Stores, str], int] | None = None
    prepare: Callable[[Stores, str], object] = lambda _stores, _topic: None
    schemas: bool = False
    theirs: Callable[[Stores, str], Config] | None = None
    worker: type[Worker] = DebeziumJdbc


def _jdbc(url: str, mode: str, user: str = "") -> Config:
    key = {"pk.mode": "record_value", "pk.fields": "id"} if mode == "upsert" else {}
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector", "connection.url": url, "insert.mode": mode, **key,
        **({"connection.user": user} if user else {}),
    }  # fmt: skip


def _debezium(url: str, mode: str, user: str, topic: str) -> Config:
    return {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector", "connection.url": url, "connection.username": user,
        "connection.password": "none" if user == "postgres" else "", "insert.mode": mode, "primary.key.mode": "record_value",
        "primary.key.fields": "id", "schema.evolution": "none", "collection.name.format": topic, "batch.size": "3000",
        "consumer.override.max.poll.records": "3000", "connection.provider": HIKARI,
    }  # fmt: skip


def _postgres(mode: str) -> SinkCase:
    return SinkCase(
        f"postgresql-{mode}", f"SQL sink, PostgreSQL, {mode}", 300_000,
        config=lambda stores, _: _jdbc(stores.postgres.url, mode, "postgres"),
        count=lambda stores, topic: int(stores.postgres.query(f'SELECT count(*) FROM "{topic}"')[0][0]),
        prepare=lambda stores, topic: stores.postgres.query(f'CREATE TABLE "{topic}" ({SQL_COLUMNS})'),
        schemas=True,
        theirs=lambda stores, topic: _debezium(stores.postgres.url, mode, "postgres", topic),
    )  # fmt: skip


def _mariadb(mode: str) -> SinkCase:
    return SinkCase(
        f"mariadb-{mode}", f"SQL sink, MariaDB, {mode}", 200_000,
        config=lambda stores, _: _jdbc(stores.mariadb.url, mode, "root"),
        count=lambda stores, topic: int(stores.mariadb.query(f"SELECT count(*) FROM `{topic}`", "shop")[0][0]),
        prepare=lambda stores, topic: stores.mariadb.query(f"CREATE TABLE `{topic}` ({SQL_COLUMNS})", "shop"),
        schemas=True,
        theirs=lambda stores, topic: _debezium(stores.mariadb.url, mode, "root", topic),
    )  # fmt: skip


def _in_sqlite(stores: Stores, topic: str) -> int:
    with closing(sqlite3.connect(stores.folder / "sink.db")) as file:
        return int(file.execute(f'SELECT count(*) FROM "{topic}"').fetchone()[0])


def _in_duckdb(stores: Stores, topic: str) -> int:
    deadline_s = time.monotonic() + UNLOCKED_S
    while True:  # the task may still have the file open
        try:
            return _rows_of_duckdb(stores, topic)
        except duckdb.IOException:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)


def _rows_of_duckdb(stores: Stores, topic: str) -> int:
    with closing(duckdb.connect(str(stores.folder / f"{topic}.duckdb"), read_only=True)) as file:
        return int(file.execute(f'SELECT count(*) FROM "{topic}"').fetchall()[0][0])


def _files(form: str, *, s3: bool = False) -> SinkCase:
    def config(stores: Stores, topic: str) -> Config:
        where = {"store.url": "s3://bucket/lake", **stores.s3.options} if s3 else {"store.url": str(stores.folder / "lake")}
        return {"connector.class": "barnabas.FileSink", "format.class": form, "flush.size": "set by the bench", **where}

    def count(stores: Stores, topic: str) -> int:
        return int(DATA(stores.folder / "lake" / "topics" / topic, format=form).count_rows())

    place = "S3-compatible server" if s3 else "folder"
    return SinkCase(
        f"file-sink-{form}{'-s3' if s3 else ''}", f"file sink, {form}, {place}", 500_000 if form == "parquet" else 300_000, config,
        None if s3 or form == "avro" else count,
    )  # fmt: skip


def _iceberg(java: bool) -> Callable[[Stores, str], Config]:
    def config(stores: Stores, topic: str) -> Config:
        common = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector", "iceberg.tables": f"web.{topic.replace('-', '_')}",
            "iceberg.tables.auto-create-enabled": "true", "iceberg.control.commit.interval-ms": "1000",
        }  # fmt: skip
        folder = stores.folder
        mine = {
            "iceberg.catalog.type": "sql", "iceberg.catalog.uri": f"sqlite:///{folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
        }  # fmt: skip
        theirs = {"iceberg.catalog.type": "hadoop", "iceberg.catalog.warehouse": f"file://{folder}/hadoop"}
        return {**common, **(theirs if java else mine)}

    return config


def _in_iceberg(stores: Stores, topic: str) -> int:
    catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{stores.folder}/catalog.db")
    try:
        return int(catalog.load_table(f"web.{topic.replace('-', '_')}").scan().count())
    finally:
        catalog.engine.dispose()  # type: ignore[attr-defined]  # the SQL catalog has it


def _delta_config(stores: Stores, _: str) -> Config:
    return {
        "connector.class": "barnabas.DeltaSink", "store.url": str(stores.folder / "delta"), "flush.interval.ms": "500",
    }  # fmt: skip


def _http_config(stores: Stores, _: str, *, batch: int) -> Config:
    return {
        "connector.class": "barnabas.HttpSink", "http.url": f"{stores.web.url}/rows", "batch.max.size": str(batch),
        "max.in.flight": "4", "max.in.flight.order": "none",
    }  # fmt: skip


SINKS = (
    _postgres("insert"), _postgres("upsert"), _mariadb("insert"), _mariadb("upsert"),
    SinkCase("sqlite-insert", "SQL sink, SQLite, insert", 300_000,
             lambda stores, _: {**_jdbc(f"jdbc:sqlite:{stores.folder}/sink.db", "insert"), "auto.create": "true"}, _in_sqlite),
    SinkCase("duckdb-insert", "SQL sink, DuckDB, insert", 500_000,
             lambda stores, topic: {**_jdbc(f"jdbc:duckdb:{stores.folder}/{topic}.duckdb", "insert"), "auto.create": "true"}, _in_duckdb),
    *(_files(form) for form in ("parquet", "json", "avro", "csv")), _files("parquet", s3=True),
    SinkCase("delta", "Delta sink", 500_000, _delta_config,
             lambda stores, topic: DeltaTable(str(stores.folder / "delta" / topic)).count()),
    SinkCase("iceberg", "Iceberg sink", 500_000, _iceberg(java=False), _in_iceberg, theirs=_iceberg(java=True), worker=ApacheIceberg),
    SinkCase("http-sink", "HTTP sink, 100 records a request, 4 in flight", 100_000, partial(_http_config, batch=100)),
    SinkCase("spark-sink", "Spark's format parquet as a sink", 300_000,
             lambda stores, topic: {"connector.class": "barnabas.SparkSink", "format": "parquet", "path": str(stores.folder / topic)},
             lambda stores, topic: DATA(stores.folder / topic, format="parquet", partitioning="hive").count_rows()),
)  # fmt: skip
