"""Changes of a PostgreSQL database become records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from barnabas.connect.plugins.postgres_capture import snapshot, source
from barnabas.connect.runtime import source_task
from barnabas.connect.runtime.source_offsets import records_of
from barnabas.connect.runtime.source_task import SourceTask
from barnabas.connect.runtime.transaction import TransactionalWriter
from barnabas.engine.jobs import Job
from tests.connect.plugins.captures import LARGE, Capture, values_of_a_large_transaction
from tests.connect.plugins.servers import PostgresServer
from tests.connect.runtime.tasks import JSON, Tasks
from tests.connect.runtime.test_kills import Died, die_once
from tests.waiting import wait_until


class PostgresCapture(Capture):
    """A capture of the tables of a schema of its own."""

    prefix = "p"

    def __init__(self, tasks: Tasks, server: PostgresServer) -> None:
        self.tasks, self.server = tasks, server
        self.name = "s" + "".join(each for each in tasks.name if each.isalnum()).lower()[-40:]
        server.query(f"CREATE SCHEMA {self.name}")

    def run(self, *statements: str) -> None:
        with self.server.connect() as connection:
            connection.execute(f"SET search_path = {self.name}".encode())
            for each in statements:
                connection.execute(each.encode())

    def job(self, **config: str) -> Job:
        given = {
            "database.hostname": "127.0.0.1", "database.port": str(self.server.port), "database.user": "postgres",
            "database.dbname": "postgres", "topic.prefix": "p", "schema.include.list": self.name, "slot.name": self.name,
            "publication.name": self.name, "publication.autocreate.mode": "filtered",
            **{key.replace("_", "."): value for key, value in config.items()},
        }  # fmt: skip
        return self.tasks.job("io.debezium.connector.postgresql.PostgresConnector", "source", given, JSON)

    def drop(self) -> None:
        """Remove what the capture and its test have made."""
        self.server.query(f"DROP SCHEMA {self.name} CASCADE")
        self.server.query(f"DROP PUBLICATION IF EXISTS {self.name}")
        self.server.query(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = '{self.name}'")

    def until_streaming(self, task: Any) -> None:
        """Wait until the snapshot is behind."""
        statement = (
            "SELECT 1 FROM pg_replication_slots s JOIN pg_stat_replication r ON r.pid = s.active_pid "
            f"WHERE s.slot_name = '{self.name}' AND r.state = 'streaming'"
        )
        self.tasks.until(lambda: self.server.query(statement), task, "it does not stream")


@pytest.fixture
def capture(tasks: Tasks, postgres: PostgresServer) -> Iterator[PostgresCapture]:
    yield from capturing(tasks, postgres)


def capturing(tasks: Tasks, postgres: PostgresServer) -> Iterator[PostgresCapture]:
    """A capture for as long as a test runs."""
    made = PostgresCapture(tasks, postgres)
    yield made
    tasks.close()
    made.drop()


def test_rows_come_first_and_then_the_changes(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, '')")
    with capture.tasks.running(capture.job()) as task:
        found = capture.until("t", 2, task)
        assert found == [("r", None, {"id": 1, "v": "a"}), ("r", None, {"id": 2, "v": ""})]
        capture.run(
            "INSERT INTO t VALUES (3, NULL)", "UPDATE t SET v = 'b' WHERE id = 1", "DELETE FROM t WHERE id = 2",
            "UPDATE t SET id = 4 WHERE id = 3",
        )  # fmt: skip
        found = capture.until("t", 9, task)
    assert found[2:] == [
        ("c", None, {"id": 3, "v": None}),
        ("u", None, {"id": 1, "v": "b"}),
        ("d", {"id": 2, "v": None}, None),
        ({"id": 2}, None),
        ("d", {"id": 3, "v": None}, None),
        ({"id": 3}, None),
        ("c", None, {"id": 4, "v": None}),
    ]
    key, value = capture.records("t")[2]
    assert key == {"id": 3}
    source = value["source"]
    assert (source["connector"], source["schema"], source["table"], source["snapshot"]) == (
        "postgresql",
        capture.name,
        "t",
        "false",
    )


def test_a_publication_gets_the_tables_that_it_lacks(capture: PostgresCapture) -> None:
    capture.run(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE TABLE u (id int PRIMARY KEY)",
        f"CREATE PUBLICATION {capture.name} FOR TABLE t",
    )
    with capture.tasks.running(capture.job()) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO t VALUES (1)", "INSERT INTO u VALUES (2)")
        assert capture.until("t", 1, task) == [("c", None, {"id": 1})]
        assert capture.until("u", 1, task) == [("c", None, {"id": 2})]


def test_a_key_keeps_the_name_that_it_had(capture: PostgresCapture) -> None:
    """The catalog of now has another name for it."""
    capture.run("CREATE TABLE t (v int, id int, PRIMARY KEY (id, v))", "INSERT INTO t VALUES (0, 0)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
    capture.run("INSERT INTO t VALUES (1, 1)", "ALTER TABLE t RENAME id TO name", "INSERT INTO t VALUES (2, 2)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 3, task)
    assert [key for key, _ in capture.records("t")] == [{"id": 0, "v": 0}, {"v": 1, "id": 1}, {"name": 2, "v": 2}]


def test_a_capture_goes_on_where_it_was(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
    capture.run("INSERT INTO t VALUES (2)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 2, task)
        capture.run("INSERT INTO t VALUES (3)")
        found = capture.until("t", 3, task)
    assert [after["id"] for _, _, after in found] == [1, 2, 3]


TYPES = {
    "int2": ("-5", -5), "int4": ("7", 7), "int8": ("9007199254740993", 9007199254740993), "float4": ("1.5", 1.5), "float8": ("2.25", 2.25),
    "bool": ("'t'", True), "text": ("'ü\"'", 'ü"'), "varchar(5)": ("'abc'", "abc"), "char(3)": ("'a'", "a  "),
    "bytea": ("'\\x00ff'", "AP8="), "date": ("'2020-02-29'", 18321), "timestamp": ("'2020-01-01 00:00:00.000001'", 1577836800000001),
    "timestamp(3)": ("'1969-12-31 23:59:59.5'", -500), "timestamptz": ("'2020-01-01 02:00:00.1+02'", "2020-01-01T00:00:00.100000Z"),
    "time": ("'01:00:00'", 3600000000), "time(3)": ("'24:00:00'", 86400000), "timetz": ("'01:00:00+02'", "23:00:00Z"),
    "interval": ("'1 day 00:00:01'", 86401000000), "json": ("'{\"a\": 1}'", '{"a": 1}'), "jsonb": ("'[1]'", "[1]"),
    "uuid": ("'00000000-0000-0000-0000-000000000001'", "00000000-0000-0000-0000-000000000001"), "inet": ("'::1'", "::1"),
    "int4[]": ("'{1,NULL,3}'", [1, None, 3]), "text[]": ("'{\"a b\",\"q\\\"\",NULL,\"NULL\"}'", ["a b", 'q"', None, "NULL"]),
    "bit(1)": ("'1'", True), "bit(9)": ("'100000001'", "AQE="), "int4range": ("'[1,5)'", "[1,5)"),
    "point": ("'(1,2)'", {"x": 1.0, "y": 2.0, "wkb": "AQEAAAAAAAAAAADwPwAAAAAAAABA", "srid": None}),
    "mood": ("'sad'", "sad"), "positive": ("3", 3), "money": ("'-1234.5'", "-1234.50"), "xml": ("'<a/>'", "<a/>"),
    "date ": ("'infinity'", 2147483647), "timestamp ": ("'0044-03-15 00:00:00 BC'", -63517824000000000), "oid": ("5", 5),
    "timestamp(6)": ("'infinity'", 9223372036825200000), "timestamptz(0)": ("'20044-03-15 00:00:00+00'", "+20044-03-15T00:00:00Z"),
    "timestamptz(3)": ("'0044-03-15 00:00:00.5+00 BC'", "-0043-03-15T00:00:00.500Z"), "timestamptz(6)": ("'infinity'", "infinity"),
    "numeric": ("'12345678901234567890123456789012345678901234567890.50'", {"scale": 1, "value": "VHj54iCtsl5NIYCMzbfPb+QOdmw5"}),
    "numeric ": ("100", {"scale": 0, "value": "ZA=="}),
}  # fmt: skip


def test_values_have_the_forms_of_debezium_in_the_snapshot_and_in_the_stream(capture: PostgresCapture) -> None:
    capture.run("CREATE TYPE mood AS ENUM ('sad', 'ok')", "CREATE DOMAIN positive AS int4 CHECK (VALUE > 0)")
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES))
    values = ", ".join(text for text, _ in TYPES.values())
    nulls = ", ".join("NULL" for _ in TYPES)
    insert = (f"INSERT INTO t VALUES (1, {values})", f"INSERT INTO t VALUES (2, {nulls})")
    capture.run(f"CREATE TABLE t (id int, {columns})", *insert)
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 2, task)
        capture.run(*insert)
        found = capture.until("t", 4, task)
    expected = {kind: value for kind, (_, value) in TYPES.items()}
    for at in (0, 2):
        after = found[at][2]
        assert {kind: after[f"c{number}"] for number, kind in enumerate(TYPES)} | {"money": expected["money"]} == expected
        assert {*found[at + 1][2].values()} == {2, None}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"decimal_handling_mode": "string"}, ("1.50", "2.5", "NaN")),
        ({"decimal_handling_mode": "double"}, (1.5, 2.5, "NaN")),
    ],
)
def test_decimals(capture: PostgresCapture, config: dict[str, str], expected: tuple[Any, ...]) -> None:
    capture.run("CREATE TABLE t (a numeric(10,2), b numeric, c numeric)", "INSERT INTO t VALUES (1.5, 2.5, 'NaN')")
    with capture.tasks.running(capture.job(**config)) as task:
        [(_, _, after)] = capture.until("t", 1, task)
    assert tuple(after.values()) == expected


def test_a_decimal_without_a_form_says_what_helps(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (a numeric)", "INSERT INTO t VALUES ('NaN')")
    task = capture.tasks.start(capture.job())
    wait_until(task.failure, "it did not fail")
    assert f"the column {capture.name}.t.a has a value that has no form: decimals have no NaN" in str(task.failure())


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_large_values_that_an_update_leaves_alone(capture: PostgresCapture, identity: str) -> None:
    capture.run(
        "CREATE TABLE t (id int PRIMARY KEY, small int, large text, numbers int[])", "ALTER TABLE t ALTER large SET STORAGE EXTERNAL",
        "ALTER TABLE t ALTER numbers SET STORAGE EXTERNAL", f"ALTER TABLE t REPLICA IDENTITY {identity}",
        "INSERT INTO t SELECT 1, 1, repeat('x', 9000), array_agg(n) FROM generate_series(1, 3000) n",
    )  # fmt: skip
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
        capture.run("UPDATE t SET small = 2")
        op, before, after = capture.until("t", 2, task)[1]
    assert (op, after["small"]) == ("u", 2)
    if identity == "FULL":
        assert (before["small"], before["large"], after["large"], len(after["numbers"])) == (1, "x" * 9000, "x" * 9000, 3000)
    else:
        placeholder = "__debezium_unavailable_value"
        assert (before, after["large"], bytes(after["numbers"]).decode()) == (None, placeholder, placeholder)


def test_a_table_without_a_key(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (a int, b text)", "ALTER TABLE t REPLICA IDENTITY FULL", "INSERT INTO t VALUES (1, 'x')")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
        capture.run("UPDATE t SET b = 'y'", "DELETE FROM t")
        found = capture.until("t", 4, task)
    assert found[1:] == [
        ("u", {"a": 1, "b": "x"}, {"a": 1, "b": "y"}),
        ("d", {"a": 1, "b": "y"}, None),
        (None, None),
    ]
    assert [key for key, _ in capture.records("t")] == [None] * 4


def test_columns_come_and_go_while_the_capture_runs(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY, a int)")
    with capture.tasks.running(capture.job()) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO t VALUES (1, 1)", "ALTER TABLE t ADD b text DEFAULT 'x'", "INSERT INTO t VALUES (2, 2, 'y')")
        capture.run("ALTER TABLE t DROP a", "INSERT INTO t VALUES (3, 'z')")
        capture.run("ALTER TABLE t ALTER b DROP DEFAULT, ALTER b TYPE int USING 0", "UPDATE t SET b = 4")
        found = capture.until("t", 6, task)
    assert [after for _, _, after in found] == [
        {"id": 1, "a": 1}, {"id": 2, "a": 2, "b": "y"}, {"id": 3, "b": "z"},
        {"id": 1, "b": 4}, {"id": 2, "b": 4}, {"id": 3, "b": 4},
    ]  # fmt: skip


def test_truncations_have_events_if_they_are_not_skipped(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    with capture.tasks.running(capture.job(skipped_operations="none")) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO t VALUES (1)", "TRUNCATE t", "INSERT INTO t VALUES (2)")
        found = capture.until("t", 3, task)
    assert found == [("c", None, {"id": 1}), ("t", None, None), ("c", None, {"id": 2})]


def test_the_flat_form_has_the_rows_alone(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a')")
    with capture.tasks.running(capture.job(barnabas_format="flat")) as task:
        capture.tasks.until(lambda: capture.records("t"), task, "the row did not come")
        capture.run("UPDATE t SET v = 'b'", "DELETE FROM t")
        capture.tasks.until(lambda: len(capture.records("t")) == 3, task, "the changes did not come")
    assert capture.records("t") == [({"id": 1}, {"id": 1, "v": "a"}), ({"id": 1}, {"id": 1, "v": "b"}), ({"id": 1}, None)]


def test_tables_and_columns_are_chosen(capture: PostgresCapture) -> None:
    capture.run(
        "CREATE TABLE a (id int PRIMARY KEY, secret text)", "CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b VALUES (1)"
    )
    config = {
        "table_include_list": f"{capture.name}\\.A",
        "column_exclude_list": ".*[.]secret",
        "publication_autocreate_mode": "all_tables",
    }
    with capture.tasks.running(capture.job(**config)) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO b VALUES (2)", "INSERT INTO a VALUES (1, 'x')")
        assert capture.until("a", 1, task) == [("c", None, {"id": 1})]
    assert capture.records("b") == []


def test_a_slot_follows_the_server_while_the_captured_tables_are_quiet(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other (id int)")
    with capture.tasks.running(capture.job(table_include_list=f"{capture.name}.t")) as task:
        capture.until_streaming(task)
        capture.run("INSERT INTO other SELECT generate_series(1, 1000)")
        [(written,)] = capture.server.query("SELECT pg_current_wal_flush_lsn()")
        confirmed = f"SELECT confirmed_flush_lsn >= '{written}' FROM pg_replication_slots WHERE slot_name = '{capture.name}'"
        capture.tasks.until(lambda: capture.server.query(confirmed) == [(True,)], task, "the slot holds back WAL")
        assert capture.records("t") == []


def test_a_slot_is_not_confirmed_before_the_commit(capture: PostgresCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)")
    with capture.tasks.running(capture.job()) as task:
        capture.until_streaming(task)
    died = die_once(monkeypatch, TransactionalWriter, "write", after=False)
    capture.run("INSERT INTO t VALUES (1)")
    task = capture.tasks.start(capture.job())
    wait_until(lambda: died and task.failure() is not None, "it did not die")
    capture.tasks.stop(task)
    with capture.tasks.running(capture.job()) as task:
        assert capture.until("t", 1, task) == [("c", None, {"id": 1})]


def test_the_server_has_reports_while_the_log_takes_nothing(capture: PostgresCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it ends the connection after its wal_sender_timeout."""
    monkeypatch.setattr(source, "ROWS", 1)
    monkeypatch.setattr(source, "CONFIRM_S", 0.0)
    goes_on, real = threading.Event(), TransactionalWriter.write

    def write(self: TransactionalWriter, batches: Any) -> int:
        goes_on.wait()
        return real(self, batches)

    capture.run("CREATE TABLE t (id int)")
    reported = f"SELECT reply_time FROM pg_stat_replication JOIN pg_replication_slots ON pid = active_pid AND slot_name = '{capture.name}'"
    with capture.tasks.running(capture.job()) as task:
        capture.until_streaming(task)
        monkeypatch.setattr(TransactionalWriter, "write", write)
        try:
            capture.run(*(f"INSERT INTO t VALUES ({each})" for each in range(20)))
            capture.tasks.until(lambda: isinstance(task, SourceTask) and task._read.full(), task, "the queue is not full")
            times = [capture.server.query(reported)]
            for _ in range(2):
                capture.tasks.until(lambda: capture.server.query(reported) != times[-1], task, "the server has no report")
                times.append(capture.server.query(reported))
        finally:
            goes_on.set()
        found = capture.until("t", 20, task)
    assert [after["id"] for _, _, after in found] == list(range(20))
    assert times == sorted(times)


def test_heartbeats_run_a_statement_and_have_records(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE beats (n int)")
    config = {"heartbeat_interval_ms": "100", "heartbeat_action_query": f"INSERT INTO {capture.name}.beats VALUES (1)"}
    config |= {"table_include_list": f"{capture.name}.t", "topic_prefix": capture.name}
    with capture.tasks.running(capture.job(**config)) as task:
        topic = f"__debezium-heartbeat.{capture.name}"
        capture.tasks.until(lambda: len(list(records_of(capture.tasks._client, topic))) > 2, task, "there are no heartbeats")
    assert capture.server.query(f"SELECT count(*) > 2 FROM {capture.name}.beats") == [(True,)]
    first = next(records_of(capture.tasks._client, topic))
    assert msgspec.json.decode(first.key or b"") == {"serverName": capture.name}


def test_a_snapshot_that_was_cut_off_is_made_again(capture: PostgresCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables with a key end in the last state of each key; a table without a key has each row once."""
    monkeypatch.setattr(snapshot, "ROWS", 10)
    monkeypatch.setattr(source_task, "MOST_ROWS", 10)
    capture.run(
        "CREATE TABLE a (v int)", "INSERT INTO a SELECT generate_series(1, 25)",
        "CREATE TABLE b (id int PRIMARY KEY)", "INSERT INTO b SELECT generate_series(1, 50)",
        "CREATE TABLE c (v int)", "INSERT INTO c SELECT generate_series(1, 25)",
    )  # fmt: skip
    writes = iter(range(100))
    real = TransactionalWriter.write

    def write(self: TransactionalWriter, batches: Any) -> int:
        if next(writes) == 3:
            raise Died
        return real(self, batches)

    with monkeypatch.context() as dying:
        dying.setattr(TransactionalWriter, "write", write)
        task = capture.tasks.start(capture.job())
        wait_until(lambda: task.failure() is not None, "it did not die")
        capture.tasks.stop(task)
    assert 0 < len(capture.records("b")) < 50
    capture.run("DELETE FROM b WHERE id <= 40", "INSERT INTO a VALUES (26)", "INSERT INTO c VALUES (26)")
    with capture.tasks.running(capture.job()) as task:
        capture.run("INSERT INTO c VALUES (27)")
        capture.tasks.until(lambda: len(capture.records("c")) >= 27, task, "the rows did not come")
        capture.tasks.until(lambda: len(capture.records("a")) >= 26, task, "the rows did not come")
    for table, count in (("a", 26), ("c", 27)):
        assert [value["after"]["v"] for _, value in capture.records(table)] == list(range(1, count + 1))
    last = {key["id"]: value for key, value in capture.records("b")}
    assert sorted(each for each, value in last.items() if value is not None) == list(range(41, 51))


@pytest.mark.parametrize(
    ("before", "config", "error"),
    [
        ((), {"publication_autocreate_mode": "disabled", "publication_name": "nix"}, "has no publication nix"),
        ((), {"database_dbname": "nix"}, 'database "nix" does not exist'),
        (("SELECT pg_create_logical_replication_slot('{name}', 'test_decoding')",), {}, "has the plug-in test_decoding"),
    ],
)
def test_a_database_that_cannot_be_captured_says_why(
    capture: PostgresCapture, before: tuple[str, ...], config: dict[str, str], error: str
) -> None:
    capture.run("CREATE TABLE t (id int)", *(each.format(name=capture.name) for each in before))
    task = capture.tasks.start(capture.job(**config))
    wait_until(task.failure, "it did not fail")
    assert error in str(task.failure())


def test_a_slot_that_is_gone_is_an_error(capture: PostgresCapture) -> None:
    capture.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capture.tasks.running(capture.job()) as task:
        capture.until("t", 1, task)
    wait_until(lambda: capture.server.query("SELECT count(*) FROM pg_replication_slots WHERE active") == [(0,)])
    capture.server.query(f"SELECT pg_drop_replication_slot('{capture.name}')")
    task = capture.tasks.start(capture.job())
    wait_until(task.failure, "it did not fail")
    assert f"has no slot {capture.name} any more" in str(task.failure())


def test_a_large_transaction_goes_on_within(capture: PostgresCapture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows come once, although the task dies between two parts of it."""
    found = values_of_a_large_transaction(capture, monkeypatch, source, f"SELECT generate_series(1, {LARGE // 2})")
    assert found == [0, *range(1, LARGE // 2 + 1), *range(1, LARGE // 2 + 1), -1]


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        ({"lsn": 5}, {"lsn": 5}),
        ({"lsn_proc": 9, "lsn_commit": 7, "lsn": 9, "txId": 1, "ts_usec": 2}, {"lsn": 7}),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": True}, {"lsn": 5}),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": False}, None),
    ],
)
def test_offsets_of_debezium_are_read(offset: dict[str, Any], found: dict[str, Any] | None) -> None:
    assert source._of_debezium(offset) == found
