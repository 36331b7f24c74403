"""Configs of the connectors of databases: urls, and keys that must fit to each other."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.connect.catalog import find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.databases.address import Address, address_of
from barnabas.connect.plugins.databases.kinds import connected
from barnabas.connect.plugins.databases.settings import address_in
from barnabas.connect.plugins.databases.table_name import table_name
from barnabas.connect.runtime.opening import config_of

NEEDED = {
    "connection.url": "jdbc:sqlite:x", "database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "p",
    "database.server.id": "1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (
            "jdbc:postgresql://h:1/d?user=u&password=p&sslmode=require",
            Address("postgresql", "h", 1, "d", "u", "p", {"sslmode": "require"}),
        ),
        ("jdbc:postgresql://h/d", Address("postgresql", "h", 5432, "d")),
        ("jdbc:mariadb://h/d", Address("mysql", "h", 3306, "d")),
        ("jdbc:mysql://[::1]:7/d", Address("mysql", "::1", 7, "d")),
        ("jdbc:sqlite:/a/b.db", Address("sqlite", database="/a/b.db")),
        ("jdbc:duckdb:/a/b.db?threads=1", Address("duckdb", database="/a/b.db", options={"threads": "1"})),
    ],
)
def test_urls(url: str, address: Address) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "postgresql://h/d", "jdbc:oracle:thin:@h", "jdbc:postgresql:d?password=geheim", "jdbc:postgresql://u:geheim@h:x/d"],
)
def test_urls_of_others_are_refused_without_their_secrets(url: str) -> None:
    with pytest.raises(ConnectError) as caught:
        address_of(url)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "parts"),
    [("t", ("t",)), ("s.t", ("s", "t")), ('"a.b".t', ("a.b", "t")), ("`a``b`", ("a`b",)), ('"a""b"', ('a"b',))],
)
def test_names_of_tables(text: str, parts: tuple[str, ...]) -> None:
    assert table_name(text).parts == parts


@pytest.mark.parametrize(
    ("name", "config", "key", "error"),
    [
        ("JdbcSinkConnector", {"delete.enabled": "true"}, "delete.enabled", "Deletes are only supported for pk.mode record_key"),
        ("JdbcSinkConnector", {"insert.mode": "upsert"}, "insert.mode", "insert.mode upsert needs a primary key: set pk.mode"),
        ("JdbcSinkConnector", {"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "pk.mode kafka needs three names"),
        ("JdbcSinkConnector", {"connection.url": "nix"}, "connection.url", "the url nix is none of jdbc:postgresql"),
        (
            "JdbcSourceConnector",
            {"mode": "incrementing", "query": "x"},
            "incrementing.column.name",
            "mode incrementing of a query needs incrementing.column",
        ),
        ("JdbcSourceConnector", {"mode": "timestamp"}, "timestamp.column.name", "mode timestamp needs timestamp.column.name"),
        ("JdbcSourceConnector", {"mode": "bulk", "query": "x", "table.whitelist": "t"}, "query", "mutually exclusive"),
        (
            "JdbcSourceConnector",
            {"mode": "bulk", "table.whitelist": "a", "table.include.list": "b"},
            "table.include.list",
            "exclusive",
        ),
        ("JdbcSourceConnector", {"mode": "bulk", "table.include.list": "("}, "table.include.list", "( is no regular expression"),
        (
            "JdbcSourceConnector",
            {"mode": "timestamp", "timestamp.column.mapping": "a:[b]", "timestamp.column.name": "c"},
            "timestamp.column.mapping",
            "timestamp.column.name and timestamp.column.mapping are mutually exclusive",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "timestamp", "timestamp.columns.mapping": "a"},
            "timestamp.columns.mapping",
            "a colon, and",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "incrementing", "incrementing.column.mapping": "(:b"},
            "incrementing.column.mapping",
            "( is no",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "bulk", "table.include.list": "a{99999999999}"},
            "table.include.list",
            "repetition number is",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "incrementing", "incrementing.column.mapping": "a:b|c"},
            "incrementing.column.mapping",
            "column",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "bulk", "query.masked": "x", "table.whitelist": "t"},
            "query.masked",
            "mutually exclusive",
        ),
        (
            "JdbcSourceConnector",
            {"mode": "bulk", "jdbc.credentials.provider.class": "x"},
            "jdbc.credentials.provider.class",
            "Java",
        ),
        ("JdbcSourceConnector", {"mode": "bulk", "timestamp.initial": "-2"}, "timestamp.initial", "milliseconds since 1970"),
        ("JdbcSourceConnector", {"mode": "bulk", "dialect.name": "MySqlDatabaseDialect"}, "dialect.name", "the url is of"),
        ("JdbcSinkConnector", {"dialect.name": "MySqlDatabaseDialect"}, "dialect.name", "the dialect of mysql"),
        ("PostgresConnector", {"signal.data.collection": "signals"}, "signal.data.collection", "no SCHEMA.TABLE"),
        (
            "MariaDbConnector",
            {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "h:1"},
            "signal.data.collection",
            "by whichever",
        ),
        (
            "PostgresConnector",
            {"signal.enabled.channels": "kafka"},
            "signal.kafka.bootstrap.servers",
            "The channel kafka needs it",
        ),
        (
            "MariaDbConnector",
            {"signal.data.collection": "a.b", "skipped.operations": "u, c"},
            "signal.data.collection",
            "new rows",
        ),
        ("PostgresConnector", {"read.only": "true"}, "read.only", "write into signal.data.collection"),
        ("MariaDbConnector", {"column.mask.with.5.chars": "a.b.c"}, "column.mask.with.5.chars", "MaskField hides values"),
        ("PostgresConnector", {"slot.failover": "true"}, "slot.failover", "is not copied to standby servers"),
        ("PostgresConnector", {"slot.name": "Slot-1"}, "slot.name", "lower-case letters, digits and underscores"),
    ],
)
def test_keys_that_do_not_fit_to_each_other(name: str, config: dict[str, str], key: str, error: str) -> None:
    """They are errors of the key when a connector is made, and also when a task of it starts."""
    given = {**NEEDED, **config}
    plugin = find(name).load()
    assert error in plugin.validate(given)[key][0]
    with pytest.raises(ConfigError, match=re.escape(error)):
        config_of(plugin(), given)


def test_keys_that_ask_for_nothing_are_no_errors() -> None:
    assert find("PostgresConnector").load().validate({"slot.failover": "false", "provide.transaction.metadata": "FALSE"}) == {}


@pytest.mark.parametrize("name", ["PostgresConnector", "MariaDbConnector"])
def test_operations_that_are_skipped_have_letters(name: str) -> None:
    with pytest.raises(ConfigError, match=r"skipped\.operations: String must be one of: c, u, d, t, none"):
        find(name).load().config.parse({**NEEDED, "skipped.operations": "c,delete"})


def test_options_of_a_url_are_those_of_duckdb(tmp_path: Path) -> None:
    with closing(connected(address_of(f"jdbc:duckdb:{tmp_path / 'a.db'}?threads=3"))) as database:
        assert database.run("SELECT current_setting('threads')") == [(3,)]
    with pytest.raises(ConnectError, match=r"duckdb:.*b\.db cannot be reached: .*nix"):
        connected(address_of(f"jdbc:duckdb:{tmp_path / 'b.db'}?nix=1"))


def test_options_of_a_url_that_sqlite_lacks_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connected(address_of(f"jdbc:sqlite:{tmp_path / 'a.db'}?cache=shared")).close()
    assert "event=url-option-ignored" in caplog.text
    assert "option='cache'" in caplog.text


def test_keys_of_the_driver_are_options_of_the_url(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = {"connection.url": f"jdbc:duckdb:{tmp_path / 'a.db'}", "connection.user": "u", "connection.password": None}
    assert address_in({**config, "connection.threads": "3", "connection.attempts": 3}).options == {"threads": "3"}
    given = {"connection.url": f"jdbc:sqlite:{tmp_path / 'b.db'}", "mode": "bulk", "topic.prefix": "p", "connection.nix": "1"}
    with closing(connected(address_in(config_of(find("JdbcSourceConnector").load()(), given)))):
        assert "event=url-option-ignored" in caplog.text
    assert "option='nix'" in caplog.text


SOURCE_KEYS = [
    "connection.url", "connection.user", "connection.password", "connection.attempts", "connection.backoff.ms",
    "table.whitelist", "table.blacklist", "table.include.list", "table.exclude.list", "catalog.pattern", "schema.pattern",
    "db.timezone", "numeric.precision.mapping", "numeric.mapping", "dialect.name", "mode", "incrementing.column.name",
    "incrementing.column.mapping", "timestamp.column.name", "timestamp.column.mapping", "timestamp.initial",
    "validate.non.null", "query", "query.suffix", "query.retry.attempts", "quote.sql.identifiers",
    "transaction.isolation.mode", "timestamp.granularity", "table.types", "poll.interval.ms", "batch.max.rows",
    "table.poll.interval.ms", "topic.prefix", "timestamp.delay.interval.ms", "timestamp.columns.mapping", "query.masked",
    "table.monitoring.startup.polling.limit.ms", "jdbc.credentials.provider.class",
]  # fmt: skip
SINK_KEYS = [
    "connection.url", "connection.user", "connection.password", "connection.attempts", "connection.backoff.ms",
    "dialect.name", "insert.mode", "batch.size", "delete.enabled", "table.types", "table.name.format", "pk.mode",
    "pk.fields", "fields.whitelist", "db.timezone", "date.timezone", "timestamp.precision.mode", "timestamp.fields.list",
    "auto.create", "auto.evolve", "quote.sql.identifiers", "max.retries", "retry.backoff.ms", "trim.sensitive.log",
    "replace.null.with.default", "mssql.use.merge.holdlock",
]  # fmt: skip


@pytest.mark.parametrize(("name", "keys"), [("JdbcSourceConnector", SOURCE_KEYS), ("JdbcSinkConnector", SINK_KEYS)])
def test_every_key_of_confluents_reference_is_defined(name: str, keys: list[str]) -> None:
    known = find(name).load().config.keys
    assert set(keys) <= set(known)
    assert all(known[key].documentation for key in keys)
