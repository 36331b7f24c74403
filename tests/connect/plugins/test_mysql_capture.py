"""Changes of a MariaDB database become records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import pytest

from barnabas.connect.plugins.mysql_capture import source
from barnabas.connect.plugins.mysql_capture.defaults import declared_default
from barnabas.connect.plugins.mysql_capture.log_batches import LogBatches
from barnabas.connect.plugins.mysql_capture.logged import LoggedTable, truncated
from barnabas.connect.plugins.mysql_capture.server import shape_of
from barnabas.connect.plugins.mysql_capture.settings import KEYS, settings_of
from barnabas.engine.jobs import Job
from tests.connect.plugins.captures import LARGE, Capture, reason_of, values_of_a_large_transaction, with_secrets
from tests.connect.plugins.servers import MariadbServer
from tests.connect.runtime.tasks import JSON, Tasks
from tests.waiting import wait_until


class MysqlCapture(Capture):
    """A capture of a database of its own."""

    prefix = "m"
    converters: Mapping[str, str] = JSON

    def __init__(self, tasks: Tasks, server: MariadbServer) -> None:
        self.tasks, self.server = tasks, server
        self.name = f"d{crc32(tasks.name.encode())}"
        server.query(f"CREATE DATABASE {self.name}")

    def run(self, *statements: str) -> None:
        connection = self.server.connect(self.name)
        with connection.cursor() as cursor:
            for each in statements:
                cursor.execute(each)
        connection.close()

    def job(self, **config: str) -> Job:
        given = {
            "database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "root", "topic.prefix": "m",
            "database.server.id": str(crc32(self.name.encode()) or 1), "database.include.list": self.name,
            **{key.replace("_", "."): value for key, value in config.items()},
        }  # fmt: skip
        return self.tasks.job("io.debezium.connector.mariadb.MariaDbConnector", "source", given, self.converters)


@pytest.fixture
def capture(tasks: Tasks, mariadb: MariadbServer) -> MysqlCapture:
    return MysqlCapture(tasks, mariadb)


def test_rows_come_first_and_then_the_changes(capture: MysqlCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY, v varchar(10))", "INSERT INTO t VALUES (1, 'a'), (2, '')")
    with capture.tasks.running(capture.job()) as task:
        assert capture.until("t", 2, task) == [("r", None, {"id": 1, "v": "a"}), ("r", None, {"id": 2, "v": ""})]
        capture.run(
            "INSERT INTO t VALUES (3, NULL)", "UPDATE t SET v = 'b' WHERE id = 1", "DELETE FROM t WHERE id = 2",
            "UPDATE t SET id = 4 WHERE id = 3",
        )  # fmt: skip
        found = capture.until("t", 9, task)
    assert found[2:] == [
        ("c", None, {"id": 3, "v": None}),
        ("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
        ("d", {"id": 2, "v": ""}, None),
        ({"id": 2}, None),
        ("d", {"id": 3, "v": None}, None),
        ({"id": 3}, None),
        ("c", None, {"id": 4, "v": None}),
    ]
    capture.run("INSERT INTO t VALUES (5, 'x')")
    with capture.tasks.running(capture.job()) as task:
        assert capture.until("t", 10, task)[9:] == [("c", None, {"id": 5, "v": "x"})]


LOOSE = "SET time_zone = '+00:00', sql_mode = ''"  # lets zero dates in
TYPES = {
    "tinyint": ("-5", -5), "int unsigned": ("4294967295", 4294967295), "bigint unsigned": ("18446744073709551615", 18446744073709551615),
    "double": ("2.25", 2.25), "text": ("'ü\"'", 'ü"'), "blob": ("x'00ff'", "AP8="), "date": ("'2020-02-29'", 18321),
    "datetime": ("'2020-01-01 00:00:00'", 1577836800000), "datetime(6)": ("'2020-01-01 00:00:00.000001'", 1577836800000001),
    "timestamp(6) NULL": ("'2020-01-01 02:00:00.1'", "2020-01-01T02:00:00.100000Z"), "time": ("'01:00:00'", 3600000000),
    "year": ("2020", 2020), "enum('a','b')": ("'b'", "b"), "set('a','b')": ("'a,b'", "a,b"), "bit(1)": ("b'1'", True),
    "bit(9)": ("b'100000001'", "AQE="), "decimal(10,2)": ("1.5", "1.50"), "char(3)": ("'a'", "a"),
    "set('a','b') ": ("''", ""), "year ": ("0", 0), "varbinary(3)": ("x'ff'", "/w=="), "binary(2)": ("x'ff00'", "/wA="),
    "float": ("1.5", 1.5), "mediumint unsigned": ("16777215", 16777215), "time(3)": ("'-01:00:00.5'", -3600500000),
    "datetime(3)": ("'1969-12-31 23:59:59.5'", -500), "varchar(300) CHARACTER SET latin1": ("'é'", "é"), "mediumtext": ("'x'", "x"),
    "time(6)": ("'-00:00:00.000001'", -1), "time(2)": ("'-00:59:59.25'", -3599250000), "time(1) ": ("'-01:00:00'", -3600000000),
    "timestamp(2) NULL": ("'2020-01-01 02:00:00.1'", "2020-01-01T02:00:00.10Z"),
    "timestamp NULL": ("'2020-01-01 02:00:00'", "2020-01-01T02:00:00Z"),
    "decimal(40,3)": ("-1.5", "-1.500"), "date ": ("'0000-00-00'", None), "datetime(6) ": ("'0000-00-00'", None),
    "varchar(10)": ("'0000-00-00'", "0000-00-00"),
}  # fmt: skip


def test_values_have_the_forms_of_debezium_in_the_snapshot_and_in_the_log(capture: MysqlCapture) -> None:
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES))
    insert = f"INSERT INTO t VALUES (1, {', '.join(text for text, _ in TYPES.values())})"
    nulls = f"INSERT INTO t VALUES (2, {', '.join('NULL' for _ in TYPES)})"
    capture.run(LOOSE, f"CREATE TABLE t (id int, {columns})", insert, nulls)
    with capture.tasks.running(capture.job(decimal_handling_mode="string")) as task:
        capture.until("t", 2, task)
        capture.run(LOOSE, insert, nulls)
        found = capture.until("t", 4, task)
    expected = {kind: value for kind, (_, value) in TYPES.items()}
    for at in (0, 2):
        assert {kind: found[at][2][f"c{number}"] for number, kind in enumerate(TYPES)} == expected
        assert {*found[at + 1][2].values()} == {2, None}


def test_required_columns_and_defaults_are_in_schemas(capture: MysqlCapture) -> None:
    """They are those of now: another default is in the next record. A zero date is null in the log."""
    capture.run(LOOSE, "CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL DEFAULT 5, d date NOT NULL, t text DEFAULT 'it''s')")
    capture.run(LOOSE, "INSERT INTO t (id) VALUES (0)")
    capture.converters = {**JSON, "value.converter.schemas.enable": "true"}
    with capture.tasks.running(capture.job()) as task:
        wait_until(lambda: task.failure() or capture.records("t"), "the row does not come")
        capture.run(
            LOOSE, "INSERT INTO t (id) VALUES (1)", "ALTER TABLE t ALTER n SET DEFAULT 6", "INSERT INTO t (id) VALUES (2)"
        )
        wait_until(lambda: task.failure() or len(capture.records("t")) == 3, "the changes do not come")
        assert task.failure() is None
    values = [value for _, value in capture.records("t")]
    rows = [next(each for each in value["schema"]["fields"] if each["field"] == "after")["fields"] for value in values]
    said = [[(each["field"], each["optional"], each.get("default")) for each in row] for row in rows]
    assert said[0] == [("id", False, None), ("n", False, 5), ("d", False, None), ("t", True, "it's")]
    assert said[2] == [("id", False, None), ("n", False, 6), ("d", False, None), ("t", True, "it's")]
    assert [each["payload"]["after"] for each in values] == [
        {"id": at, "n": n, "d": 0, "t": "it's"} for at, n in enumerate((5, 5, 6))
    ]


@pytest.mark.parametrize(
    ("text", "extra", "is_mariadb", "expected"),
    [
        ("'it''s \\\\ \\n'", "", True, ("it's \\ \n", True)),
        ("NULL", "", True, None),
        ("-1.50", "", True, ("-1.50", True)),
        ("b'101'", "", True, ("b'101'", True)),
        ("current_timestamp()", "on update current_timestamp()", True, ("current_timestamp()", False)),
        ("it's", "", False, ("it's", True)),
        ("uuid()", "DEFAULT_GENERATED", False, ("uuid()", False)),
    ],
)
def test_defaults_of_the_catalog(text: str, extra: str, is_mariadb: bool, expected: tuple[str, bool] | None) -> None:
    assert declared_default(text, extra, is_mariadb=is_mariadb) == expected


def test_columns_are_added_while_the_capture_runs(capture: MysqlCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
        capture.run("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD v int", "INSERT INTO t VALUES (3, 4)")
        found = capture.until("t", 3, task)
    assert [after for _, _, after in found] == [{"id": 1}, {"id": 2}, {"id": 3, "v": 4}]


def test_a_large_transaction_goes_on_within(capture: MysqlCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows come once, although the task dies between two parts of it."""
    numbers = range(1, LARGE // 2 + 1)
    found = values_of_a_large_transaction(capture, monkeypatch, source, f"VALUES {', '.join(f'({each})' for each in numbers)}")
    assert found == [0, *numbers, *numbers, -1]


def test_a_key_keeps_the_name_and_the_type_that_it_had(capture: MysqlCapture) -> None:
    """The catalog of now has another name for it."""
    capture.run("CREATE TABLE t (v int, id int, PRIMARY KEY (id, v))", "INSERT INTO t VALUES (0, 0)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
    capture.run(
        "INSERT INTO t VALUES (1, 1)", "ALTER TABLE t RENAME COLUMN id TO name", "INSERT INTO t VALUES (2, 2)",
        "ALTER TABLE t MODIFY name varchar(9), RENAME COLUMN v TO w", "INSERT INTO t VALUES (3, 'x')", "DROP TABLE t",
    )  # fmt: skip
    with capture.tasks.running(capture.job()) as task:
        found = capture.until("t", 4, task)
    assert [after for _, _, after in found] == [{"v": 0, "id": 0}, {"v": 1, "id": 1}, {"v": 2, "name": 2}, {"w": 3, "name": "x"}]
    keys = [list(key.items()) for key, _ in capture.records("t")]
    assert keys == [[("id", 0), ("v", 0)], [("id", 1), ("v", 1)], [("name", 2), ("v", 2)], [("name", "x"), ("w", 3)]]


def test_truncations_have_events_if_they_are_not_skipped(capture: MysqlCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    with capture.tasks.running(capture.job(skipped_operations="none")) as task:
        capture.until("t", 1, task)
        capture.run("INSERT INTO t VALUES (1)", "TRUNCATE t", "INSERT INTO t VALUES (2)")
        found = capture.until("t", 4, task)
        assert found[1:] == [("c", None, {"id": 1}), ("t", None, None), ("c", None, {"id": 2})]
        capture.run(f"/* all */ truncate table `{capture.name}` . `t`")
        capture.until("t", 5, task)
    with capture.tasks.running(capture.job(skipped_operations="none")) as task:
        capture.run("INSERT INTO t VALUES (3)")
        assert capture.until("t", 6, task)[4:] == [("t", None, None), ("c", None, {"id": 3})]
    assert capture.records("t")[2][0] is None


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("TRUNCATE t", ("d", "t")), ("truncate  table e.`a``b`", ("e", "a`b")), ("/* c */ -- d\nTRUNCATE `t`", ("d", "t")),
        ("SET STATEMENT max_statement_time=1 FOR TRUNCATE TABLE t", ("d", "t")), ("TRUNCATE t WAIT 5", ("d", "t")),
        ("CREATE TABLE truncates (id int)", None), ("INSERT INTO t VALUES ('TRUNCATE t')", None), ("", None),
    ],
)  # fmt: skip
def test_statements_that_empty_tables(statement: str, table: tuple[str, str] | None) -> None:
    assert truncated(statement, "d") == table


def test_a_connection_that_is_lost_is_made_again(capture: MysqlCapture) -> None:
    """Each change comes, without waiting for the next ones."""
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
        capture.run("INSERT INTO t VALUES (2)")
        capture.until("t", 2, task)
        for (number,) in capture.server.query("SELECT id FROM information_schema.processlist WHERE command = 'Binlog Dump'"):
            capture.server.query(f"KILL {number}")
        capture.run("INSERT INTO t VALUES (3)")
        capture.until("t", 3, task)
        capture.run("INSERT INTO t VALUES (4)")
        found = capture.until("t", 4, task)
    assert [after for _, _, after in found] == [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}]


def test_the_ids_of_tables_are_forgotten_with_each_transaction() -> None:
    """The server gives a table another id again and again, so they would fill the memory."""
    config = KEYS.parse({"database.hostname": "h", "database.user": "u", "topic.prefix": "m", "database.server.id": "1"})
    settings = settings_of(config)
    batches = LogBatches(settings, {"file": "f", "pos": 4}, lambda table: shape_of(table, settings, {}))
    batches.table_is(7, LoggedTable("shop", "t", ("id",), ("int",), ("id",)))
    assert batches.is_captured(7)
    batches.ended(("f", 100))
    assert not batches.is_captured(7)


def test_a_password_that_changes(capture: MysqlCapture, tmp_path: Path) -> None:
    """The task fails, says why, and goes on with the new one: in the config, or in the file of the config provider."""
    user, secrets = f"u{capture.name}", tmp_path / "secrets.properties"
    capture.server.create_user(user, "one")
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job(database_user=user, database_password="one")) as task:
        capture.until("t", 1, task)
        capture.server.change_password(user, "two")
        capture.server.end_connections(user)
        assert f"Access denied for user '{user}'@" in reason_of(task)
    capture.run("INSERT INTO t VALUES (2)")
    secrets.write_text("password=two\n")
    for password in ("two", f"${{file:{secrets}:password}}"):
        with capture.tasks.running(with_secrets(capture.job(database_user=user, database_password=password))) as task:
            found = capture.until("t", 2, task)
    assert [after["id"] for _, _, after in found] == [1, 2]
