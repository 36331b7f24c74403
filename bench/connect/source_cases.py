"""The sources that `python -m bench run sinks` measures: their configs, and how rows appear where they read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.connect.rows import SQL_COLUMNS, lines_of, table_of
from bench.connect.stores import PAGE_ROWS, Stores

Config = Mapping[str, str]
SUFFIX = ".ready"  # of a file that is renamed into the folder


@dataclass(frozen=True)
class SourceCase:
    """A source and what it reads.

    Args:
        rows: how many are measured, besides one that is there before.
        config: of the connector; `{name}` of the topic is its name.
        prepare: makes the first row, and what takes time of the others.
        emit: lets the others appear.
    """

    name: str
    title: str
    rows: int
    config: Callable[[Stores, str], Config]
    prepare: Callable[[Stores, str, int], object]
    emit: Callable[[Stores, str, int], object]


def _jdbc(url: str, user: str, mode: str, name: str) -> Config:
    how = {
        "bulk": {}, "incrementing": {"incrementing.column.name": "id"}, "timestamp": {"timestamp.column.name": "changed"},
    }[mode]  # fmt: skip
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "connection.url": url, "connection.user": user,
        "mode": mode, **how, "query": f"SELECT * FROM t_{name.replace('-', '_')}", "topic.prefix": name, "poll.interval.ms": "100",
    }  # fmt: skip


def _postgres(mode: str) -> SourceCase:
    def prepare(stores: Stores, name: str, _: int) -> None:
        stores.postgres.query(f"CREATE TABLE t_{name.replace('-', '_')} ({SQL_COLUMNS}, changed TIMESTAMP(6))")
        stores.postgres.query(_rows_in_postgres(name, 0, 1))

    return SourceCase(
        f"source-postgresql-{mode}", f"SQL source, PostgreSQL, {mode}", 300_000,
        lambda stores, name: _jdbc(stores.postgres.url, "postgres", mode, name), prepare,
        lambda stores, name, count: stores.postgres.query(_rows_in_postgres(name, 1, count)),
    )  # fmt: skip


def _rows_in_postgres(name: str, first: int, count: int) -> str:
    return (
        f"INSERT INTO t_{name.replace('-', '_')} SELECT n, 'user-' || n, n / 100.0, n % 1000, 'the row with the number ' || n, "
        f"now() AT TIME ZONE 'UTC' - interval '1 hour' + n * interval '1 millisecond' "
        f"FROM generate_series({first}, {first + count - 1}) AS n"
    )


def _mariadb(mode: str) -> SourceCase:
    def prepare(stores: Stores, name: str, _: int) -> None:
        stores.mariadb.query(f"CREATE TABLE t_{name.replace('-', '_')} ({SQL_COLUMNS}, changed DATETIME(6))", "shop")
        stores.mariadb.query(_rows_in_mariadb(name, 0, 1), "shop")
        stores.mariadb.query("COMMIT", "shop")

    return SourceCase(
        f"source-mariadb-{mode}", f"SQL source, MariaDB, {mode}", 200_000,
        lambda stores, name: _jdbc(stores.mariadb.url, "root", mode, name), prepare,
        lambda stores, name, count: stores.mariadb.query(_rows_in_mariadb(name, 1, count), "shop"),
    )  # fmt: skip


def _rows_in_mariadb(name: str, first: int, count: int) -> str:
    return (
        f"INSERT INTO t_{name.replace('-', '_')} SELECT seq, concat('user-', seq), seq / 100.0, seq % 1000, "
        f"concat('the row with the number ', seq), utc_timestamp(6) - INTERVAL 1 HOUR + INTERVAL seq * 1000 MICROSECOND "
        f"FROM seq_{first}_to_{first + count - 1}"
    )


def _written(rows: pa.Table, form: str) -> bytes:
    target = BytesIO()
    match form:
        case "json":
            return lines_of(rows)
        case "csv":
            pyarrow.csv.write_csv(rows, target)
        case "parquet":
            pq.write_table(rows, target)
        case "avro":
            kinds = {"id": "long", "name": "string", "price": "double", "amount": "int", "note": "string"}
            schema = {"type": "record", "name": "row", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}
            fastavro.writer(target, schema, rows.to_pylist())
    return target.getvalue()


def _folder(stores: Stores, name: str) -> Path:
    folder = stores.folder / name
    folder.mkdir(exist_ok=True)
    return folder


def _prepare_files(form: str) -> Callable[[Stores, str, int], object]:
    def prepare(stores: Stores, name: str, count: int) -> None:
        folder = _folder(stores, name)
        (folder / f"a.{form}").write_bytes(_written(table_of(0, 1), form))
        folder.with_suffix(SUFFIX).write_bytes(_written(table_of(1, count), form))

    return prepare


def _emit_file(form: str) -> Callable[[Stores, str, int], object]:
    return lambda stores, name, _: _folder(stores, name).with_suffix(SUFFIX).rename(stores.folder / name / f"b.{form}")


def _files(form: str) -> SourceCase:
    return SourceCase(
        f"file-source-{form}", f"file source, {form}", 500_000 if form == "parquet" else 300_000,
        lambda stores, name: {
            "connector.class": "barnabas.FileSource", "input.path": str(_folder(stores, name)), "format": form, "topic": name,
            "file.minimum.age.ms": "0", "empty.poll.wait.ms": "50",
        },
        _prepare_files(form), _emit_file(form),
    )  # fmt: skip


def _more_pages(stores: Stores, _: str, count: int) -> None:
    stores.web.rows = 1 + count


def _make_pages(stores: Stores, _: str, count: int) -> None:
    stores.web.rows = 1 + count
    for start in range(0, 1 + count, PAGE_ROWS):
        stores.web.page(start)
    stores.web.rows = 1


def _http_config(stores: Stores, name: str) -> Config:
    return {
        "connector.class": "barnabas.HttpSource", "http.url": stores.web.url + "/rows?start=${offset.start}", "topic": name,
        "http.page.mode": "offset", "http.page.size": str(PAGE_ROWS), "poll.interval.ms": "100",
    }  # fmt: skip


def _sqlite_rows(stores: Stores, name: str, first: int, count: int) -> None:
    with closing(sqlite3.connect(stores.folder / f"{name}.db")) as file, file:
        file.execute(f"CREATE TABLE IF NOT EXISTS items ({SQL_COLUMNS})")
        rows = table_of(first, count).to_pylist()
        file.executemany("INSERT INTO items VALUES (:id, :name, :price, :amount, :note)", rows)


def _dlt_config(stores: Stores, name: str) -> Config:
    return {
        "connector.class": "barnabas.DltSource", "dlt.source": "dlt.sources.sql_database:sql_database", "topic.prefix": f"{name}-",
        "dlt.arg.credentials": f"sqlite:///{stores.folder}/{name}.db", "dlt.arg.backend": "pyarrow", "dlt.arg.chunk_size": "50000",
        "dlt.resources": "items", "poll.interval.ms": "100",
    }  # fmt: skip


def _spark_config(stores: Stores, name: str) -> Config:
    return {
        "connector.class": "barnabas.SparkSource", "topic": name, "format": "parquet", "path": str(_folder(stores, name)),
        "schema": "id BIGINT, name STRING, price DOUBLE, amount INT, note STRING", "mode": "streaming",
        "checkpoint.location": str(stores.folder / f"{name}-checkpoint"), "poll.interval.ms": "100",
    }  # fmt: skip


SOURCES = (
    _postgres("bulk"), _postgres("incrementing"), _postgres("timestamp"), _mariadb("bulk"), _mariadb("incrementing"), _mariadb("timestamp"),
    *(_files(form) for form in ("json", "csv", "avro", "parquet")),
    SourceCase("http-source", f"HTTP source, {PAGE_ROWS:,} records a page", 100_000, _http_config, _make_pages, _more_pages),
    SourceCase("dlt", "dlt, sql_database with pyarrow, SQLite", 200_000, _dlt_config,
               lambda stores, name, _: _sqlite_rows(stores, name, 0, 1), lambda stores, name, count: _sqlite_rows(stores, name, 1, count)),
    SourceCase("spark-source", "Spark's format parquet as a source", 300_000, _spark_config, _prepare_files("parquet"),
               _emit_file("parquet")),
)  # fmt: skip
