"""A database of MariaDB for both captures. Debezium's connector of MySQL has a mode for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.connect.plugins.servers import MariadbServer
from tests.differential.capture.captures import Event
from tests.differential.capture.comparison import schema_differences
from tests.differential.capture.kinds import table_of, table_of_defaults

CLASS = "io.debezium.connector.mysql.MySqlConnector"
PREFIX, DONE = "m", "shop.done"
TABLES = ("shop.kinds", "shop.keyed", "shop.loose", "shop.said")

KINDS: Mapping[str, tuple[str, ...]] = {  # values by type; all of them are in one row, or in a second one
    "tinyint": ("-5",), "tinyint unsigned": ("255",), "smallint": ("-300",), "smallint unsigned": ("65535",), "mediumint": ("-8388608",),
    "mediumint unsigned": ("16777215",), "int": ("7",), "int unsigned": ("4294967295",), "bigint": ("-9007199254740993",),
    "float": ("1.5",), "double": ("0.1", "1e300"), "decimal(10,2)": ("-12.345",), "decimal(5,0)": ("-128",), "decimal(40,3)": ("1.5",),
    "varchar(9)": ("'ü\\\"'", "''"), "char(3)": ("'a'",), "text": ("'ä'",), "longtext": ("'x'",),
    "varchar(300) CHARACTER SET latin1": ("'é'",),
    "varbinary(3)": ("x'ff'",), "binary(3)": ("x'ff00'",), "blob": ("x'00ff'",), "bit(1)": ("b'1'",), "bit(9)": ("b'100000001'",),
    "date": ("'2020-02-29'",), "time": ("'01:00:00'", "'-838:59:59'"), "time(3)": ("'23:59:59.999'",), "time(6)": ("'-00:00:00.000001'",),
    "datetime": ("'2020-01-01 00:00:01'",), "datetime(3)": ("'1969-12-31 23:59:59.5'",), "datetime(6)": ("'2020-01-01 00:00:00.000001'",),
    "timestamp NULL": ("'2020-01-01 02:00:00'",), "timestamp(6) NULL": ("'2020-01-01 02:00:00.1'",), "year": ("2020",),
    "enum('a','b')": ("'b'",), "set('a','b')": ("'a,b'", "''"),
}  # fmt: skip
DEFAULTS: Mapping[str, tuple[str, ...]] = {  # defaults by type; a column with each of them may be null, another one may not
    "tinyint": ("-5",), "tinyint(1)": ("true",), "smallint unsigned": ("65535",), "mediumint": ("-8388608",), "int": ("7", "'7'", "(1+2)"),
    "int unsigned": ("4294967295",), "bigint": ("-5",), "float": ("1.5", "1e3"), "double": ("0.1",), "decimal(10,2)": ("-12.35", "7"),
    "decimal(40,3)": ("1.5",), "varchar(9)": ("'ü\\\"'", "''", "NULL"), "char(3)": ("'a'",), "bit(1)": ("b'1'", "0"),
    "bit(9)": ("b'100000001'",), "date": ("'2020-02-29'", "(curdate())"), "time": ("'01:00:00'",), "time(6)": ("'-00:00:00.000001'",),
    "datetime": ("'2020-01-01 00:00:01'", "current_timestamp", "now()"), "datetime(3)": ("'1969-12-31 23:59:59.5'",),
    "datetime(6)": ("'2020-01-01 00:00:00.000001'",), "timestamp": ("'2020-01-01 02:00:00'", "current_timestamp"),
    "timestamp(6)": ("'2020-01-01 02:00:00.1'", "current_timestamp(6)"), "year": ("2020",), "enum('a','b')": ("'b'",),
    "set('a','b')": ("'a,b'",),
}  # fmt: skip
TABLE_OF_KINDS, ROWS = table_of(KINDS)
SCHEMA = (
    TABLE_OF_KINDS,
    "CREATE TABLE keyed (a int, b varchar(9), v int, PRIMARY KEY (b, a))",
    "CREATE TABLE loose (n int, text text)",
    table_of_defaults("said", DEFAULTS, "a int DEFAULT 4, b varchar(9) DEFAULT 'q', PRIMARY KEY (b, a)"),
    "CREATE TABLE done (id int PRIMARY KEY)", "INSERT INTO said (a) VALUES (1), (2)",
    *ROWS, "INSERT INTO keyed VALUES (1, 'x', 1), (2, 'x', 2)", "INSERT INTO loose VALUES (1, 'a'), (NULL, NULL)",
)  # fmt: skip
CHANGES = (
    "DELETE FROM kinds", *ROWS, "UPDATE kinds SET c0 = 1 WHERE id = 1",
    "INSERT INTO keyed VALUES (3, 'y', 3)", "UPDATE keyed SET v = 4 WHERE a = 1",
    "UPDATE keyed SET b = 'z' WHERE a = 2", "DELETE FROM keyed WHERE a = 3",
    "INSERT INTO loose VALUES (2, 'b')", "UPDATE loose SET text = 'c' WHERE n = 1", "DELETE FROM loose WHERE n IS NULL",
    "ALTER TABLE loose ADD m int DEFAULT 5", "INSERT INTO loose (n) VALUES (9)", "ALTER TABLE keyed CHANGE v w bigint",
    "INSERT INTO keyed VALUES (4, 'q', 5000000000)", "TRUNCATE loose", "INSERT INTO loose VALUES (3, 'd', 1)",
    "BEGIN", "INSERT INTO keyed VALUES (5, 'r', 1)", "SAVEPOINT s", "INSERT INTO keyed VALUES (6, 'r', 1)", "ROLLBACK TO s",
    "UPDATE keyed SET w = 2 WHERE a = 5", "COMMIT", "BEGIN", "INSERT INTO keyed VALUES (7, 'r', 1)", "ROLLBACK",
    "UPDATE said SET o1 = NULL, o12 = NULL WHERE a = 1", "UPDATE said SET a = 3 WHERE a = 1", "DELETE FROM said",
)  # fmt: skip


def config(port: int, server_id: int, tables: str) -> dict[str, str]:
    """The config of a capture.

    Args:
        server_id: of the capture as a replica.
        tables: a regular expression.
    """
    return {
        "connector.class": CLASS, "connector.adapter": "mariadb", "database.protocol": "jdbc:mariadb",
        "database.jdbc.driver": "org.mariadb.jdbc.Driver", "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "root", "database.password": "",
        "database.server.id": str(server_id), "topic.prefix": PREFIX, "database.include.list": "shop", "table.include.list": tables,
        "skipped.operations": "none", "database.ssl.mode": "disabled", "include.schema.changes": "false",
    }  # fmt: skip


def run(server: MariadbServer, *statements: str) -> None:
    """Run statements in one session."""
    connection = server.connect()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            for each in statements:
                cursor.execute(each)
    finally:
        connection.close()


def differences(theirs: Sequence[Event], mine: Sequence[Event]) -> Iterator[str]:
    """Differences of keys, operations and rows. An older Debezium has other fields about the source and another `sequence`, and leaves out
    zeros at the end of a timestamp in a snapshot."""
    if len(theirs) != len(mine):
        yield f"count: {len(theirs)} and {len(mine)}"
    for number, (left, right) in enumerate(zip(theirs, mine, strict=False)):
        yield from (f"{number} {each}" for each in schema_differences(left, right))
        for name, one, other in zip(("key", "op", "before", "after"), _shown(left), _shown(right), strict=True):
            if left[1] is not None and left[1]["payload"]["op"] == "r":
                one, other = _without_zeros(one), _without_zeros(other)
            if isinstance(one, Mapping) and isinstance(other, Mapping):
                for field in one.keys() | other.keys():
                    if one.get(field, "(none)") != other.get(field, "(none)"):
                        yield f"{number} {name}.{field}: {one.get(field, '(none)')!r} and {other.get(field, '(none)')!r}"
            elif one != other:
                yield f"{number} {name}: {one!r} and {other!r}"


def _without_zeros(values: Any) -> Any:
    if not isinstance(values, Mapping):
        return values
    return {name: re.sub(r"(\.\d*?)0+Z$", r"\1Z", each) if isinstance(each, str) else each for name, each in values.items()}


def _shown(event: Event) -> tuple[Any, ...]:
    key, value = (None if each is None else each["payload"] for each in event)
    return key, *((None, None, None) if value is None else (value["op"], value["before"], value["after"]))
