"""A database of PostgreSQL for both captures: tables, a fixed list of changes with all types, and a random workload."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.differential.capture.kinds import table_of, table_of_defaults

CLASS = "io.debezium.connector.postgresql.PostgresConnector"
PREFIX, DONE = "p", "public.done"  # the last row of a part of the changes is in the table DONE
TABLES = ("public.kinds", "public.keyed", "public.loose", "public.said")

KINDS: Mapping[str, tuple[str, ...]] = {  # values by type; all of them are in one row, or in a second one
    "int2": ("-5",), "int4": ("7",), "int8": ("9007199254740993",), "float4": ("1.5", "'NaN'"), "float8": ("0.1", "1e300", "'-Infinity'"),
    "numeric(10,2)": ("-12.345",), "numeric(5,0)": ("-128",), "money": ("12.3",), "oid": ("5",), "bool": ("true",),
    "numeric": ("1.50", "1.00", "100", "-1e30", "12345678901234567890123456789012345678901234567890.50"),
    "text": ("'ü\"\\'", "''"), "varchar(5)": ("'abc'",), "char(3)": ("'a'",), "\"char\"": ("'x'",), "bytea": ("'\\x00ff'",),
    "date": ("'2020-02-29'",), "time": ("'01:00:00'", "'24:00:00'"), "time(3)": ("'23:59:59.999'",),
    "timetz": ("'01:00:00.5+02'",), "timestamp": ("'2020-01-01 00:00:00.000001'", "'infinity'", "'-infinity'", "'20000-01-01'"),
    "timestamp(3)": ("'1969-12-31 23:59:59.5'",), "timestamp(0)": ("'2020-01-01 00:00:01.6'",),
    "timestamptz": ("'2020-01-01 02:00:00.1+02'", "'infinity'", "'0044-03-15 00:00:00.5+00 BC'", "'20044-03-15 00:00:00+00'"),
    "timestamptz(0)": ("'2020-01-01 00:00:01.6+00'",), "timestamptz(1)": ("'2020-01-01 00:00:01+00'",),
    "interval": ("'1 day 00:00:01'", "'-1 mon 3 days'", "'1 year 2 months 3.5 seconds'"),
    "json": ("'{\"a\": 1}'",), "jsonb": ("'{\"b\":1,\"a\":[1,2]}'",), "xml": ("'<a/>'",), "hstore": ("'a=>1, b=>NULL'",),
    "uuid": ("'00000000-0000-0000-0000-000000000001'",), "inet": ("'::1'",), "cidr": ("'10.0.0.0/8'",), "macaddr": ("'08:00:2b:01:02:03'",),
    "macaddr8": ("'08:00:2b:01:02:03:04:05'",), "bit(1)": ("'1'",), "bit(9)": ("'100000001'",), "varbit(20)": ("'10101'",),
    "point": ("'(-1.5,1e10)'",), "mood": ("'sad'",), "positive": ("3",), "tsvector": ("'a b'",), "int4range": ("'[1,5)'",),
    "numrange": ("'[1,2)'",), "tsrange": ("'[2020-01-01,2020-01-02)'",), "daterange": ("'[2020-01-01,2020-01-02)'",),
    "int4[]": ("'{1,NULL,3}'", "'{}'"), "text[]": ("'{\"a b\",\"q\\\"\",NULL,\"NULL\"}'",), "numeric(10,2)[]": ("'{1.5,NULL}'",),
    "date[]": ("'{2020-01-01}'",), "timestamptz[]": ("'{2020-01-01 00:00:00+00}'",), "bool[]": ("'{t,f}'",),
    "uuid[]": ("'{00000000-0000-0000-0000-000000000001}'",),
}  # fmt: skip
DEFAULTS: Mapping[str, tuple[str, ...]] = {  # defaults by type; a column with each of them may be null, another one may not
    "int2": ("5",), "int4": ("-7", "1 + 2", "'5'::int"), "int8": ("9007199254740993",), "float4": ("1.5",), "float8": ("-1", "'NaN'"),
    "numeric(10,2)": ("12.3", "random()", "1.239"), "numeric(5,0)": ("3",), "numeric": ("1.50",), "money": ("12.3",), "oid": ("5",),
    "bool": ("true", "false", "pg_is_in_recovery()"), "text": ("''", "'true'", "upper('x')", "current_user", "NULL"),
    "varchar(5)": ("'ab'",),
    "char(3)": ("'a'",), "\"char\"": ("'x'",), "bytea": ("'\\x00ff'",), "date": ("'2020-02-29'", "current_date"),
    "time": ("'01:00:00'", "current_time"), "time(3)": ("'23:59:59.999'",), "timetz": ("'01:00:00.5+02'",),
    "timestamp": ("'2020-01-01 00:00:00.000001'", "localtimestamp", "timezone('utc', now())", "'2020-01-01'::timestamp + '1 day'"),
    "timestamp(3)": ("'1969-12-31 23:59:59.5'",), "timestamptz": ("'2020-01-01 02:00:00.1+02'", "now()"),
    "interval": ("'1 day 00:00:01'", "'1 year 2 mons'", "justify_days('1 day')"), "json": ("'{\"a\": 1}'", "to_json('a'::text)"),
    "jsonb": ("'{\"b\":1}'",), "xml": ("'<a/>'",), "hstore": ("'a=>1'",),
    "uuid": ("'00000000-0000-0000-0000-000000000001'", "gen_random_uuid()"), "inet": ("'::1'",), "bit(1)": ("'1'",),
    "bit(9)": ("'100000001'",), "varbit(20)": ("'10101'",), "point": ("'(1,2)'",), "mood": ("'sad'",), "positive": ("3",),
    "tsvector": ("'a b'",), "int4range": ("'[1,5)'",), "int4[]": ("'{1,NULL}'",), "text[]": ("'{a}'",),
}  # fmt: skip
TABLE_OF_KINDS, ROWS = table_of(KINDS)
_VALUES = [value for values in DEFAULTS.values() for value in values]
CHANGING = frozenset(
    f"{letter}{at}" for at, value in enumerate(_VALUES) if re.search(r"\(\)|current|local", value) for letter in "on"
)
TABLE_OF_DEFAULTS = table_of_defaults(
    "said", DEFAULTS, "a int GENERATED ALWAYS AS IDENTITY, b serial, c positive NOT NULL, PRIMARY KEY (b, c)"
)
SCHEMA = (
    "CREATE EXTENSION hstore",
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE DOMAIN positive AS int4 CHECK (VALUE > 0)",
    TABLE_OF_KINDS,
    "CREATE TABLE keyed (a int, b text DEFAULT 'x', c numeric(6,2), big text, PRIMARY KEY (b, a))",
    "ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL",
    "CREATE TABLE loose (v text)",
    "ALTER TABLE loose REPLICA IDENTITY FULL",
    TABLE_OF_DEFAULTS,
    "CREATE TABLE done (id int PRIMARY KEY)",
    *ROWS,
    "INSERT INTO said (c) VALUES (1), (2)",
    "INSERT INTO loose VALUES ('only')",
    "INSERT INTO done VALUES (0)",
)
CHANGES = (
    "DELETE FROM kinds", *ROWS, "UPDATE kinds SET id = id + 1 WHERE id = 2",
    "INSERT INTO keyed VALUES (1, 'a', 2, repeat('y', 9000)), (2, 'b', NULL, NULL)", "UPDATE keyed SET c = c + 1",
    "UPDATE keyed SET a = 5 WHERE a = 1", "UPDATE keyed SET a = a + 1, c = 7", "DELETE FROM keyed WHERE a = 3",
    "INSERT INTO loose VALUES ('v'), (NULL)", "UPDATE loose SET v = 'w'", "DELETE FROM loose",
    "ALTER TABLE keyed REPLICA IDENTITY FULL", "UPDATE keyed SET c = 8", "UPDATE keyed SET b = 'zz'", "DELETE FROM keyed",
    "TRUNCATE keyed, loose", "INSERT INTO keyed (a) VALUES (9)", "ALTER TABLE keyed ADD COLUMN d int DEFAULT 5", "UPDATE keyed SET c = 1",
    "ALTER TABLE keyed RENAME c TO cc", "UPDATE keyed SET cc = 2", "ALTER TABLE keyed DROP COLUMN d", "UPDATE keyed SET cc = 3",
    "ALTER TABLE keyed ALTER cc TYPE text", "UPDATE keyed SET cc = 'x'", "BEGIN", "INSERT INTO keyed (a) VALUES (20)", "SAVEPOINT s",
    "INSERT INTO keyed (a) VALUES (21)", "ROLLBACK TO s", "INSERT INTO keyed (a) VALUES (22)", "COMMIT",
    "BEGIN", "INSERT INTO keyed (a) VALUES (30)", "ROLLBACK",
    "UPDATE said SET o1 = NULL, o12 = NULL, o24 = NULL WHERE c = 1", "UPDATE said SET c = 3 WHERE c = 1", "DELETE FROM said",
)  # fmt: skip


def config(port: int, slot: str, tables: str) -> dict[str, str]:
    """The config of a capture.

    Args:
        slot: its name, and that of the publication.
        tables: a regular expression.
    """
    return {
        "connector.class": CLASS, "database.hostname": "127.0.0.1", "database.port": str(port), "database.user": "postgres",
        "database.password": "none", "database.dbname": "postgres", "topic.prefix": PREFIX, "plugin.name": "pgoutput",
        "slot.name": slot, "publication.name": slot, "skipped.operations": "none", "table.include.list": tables,
        "publication.autocreate.mode": "filtered",
    }  # fmt: skip
