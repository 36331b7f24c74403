"""SQL beside a broker with `--secure`: callers log in as themselves, over HTTP and over the Postgres port."""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psycopg
import pytest

START = [
    sys.executable,
    "-m",
    "barnabas.cli",
    "start",
    "--secure",
    "--log-level",
    "error",
    "--listeners",
    "SASL_SSL://127.0.0.1:0",
]
SQL = ["--sql-listener", "https://127.0.0.1:0", "--postgres-listener", "127.0.0.1:0"]


class Place:
    """Where a secure broker's SQL is, and its users."""

    def __init__(self, folder: Path, brokers: str, http: str, postgres_port: int) -> None:
        self.admin_file = folder / "data-security" / "admin.properties"
        self.authority = str(folder / "data-security" / "ca.crt")
        self.brokers, self.http, self.port = brokers, http, postgres_port
        found = re.search(r'password="?([^";\n]+)', self.admin_file.read_text())
        assert found is not None
        self.password = found[1]

    def command(self, *words: str) -> None:
        command = [sys.executable, "-m", "barnabas.cli", *words, "-b", self.brokers, "--command-config", str(self.admin_file)]
        subprocess.run(command, check=True, timeout=60, capture_output=True, input="geheim\n", text=True)

    def asked(self, statement: str, user: str, password: str) -> tuple[int, dict[str, object]]:
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        request = Request(
            f"{self.http}/sql", statement.encode(), {"Authorization": f"Basic {login}", "Content-Type": "text/plain"}
        )
        try:
            with urlopen(request, timeout=60, context=ssl.create_default_context(cafile=self.authority)) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def connect(self, user: str, password: str) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=user, password=password, dbname="barnabas", sslmode="verify-full",
            sslrootcert=self.authority, autocommit=True,
        )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("secure")
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [*START, "--data-dir", str(folder / "data"), *SQL], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        broker, http, postgres = (process.stdout.readline().split()[-1] for _ in range(3))
        yield Place(folder, broker.partition("://")[2], http, int(postgres.rpartition(":")[2]))
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_callers_act_with_their_own_rights(place: Place) -> None:
    place.command("user", "add", "alice", "--password-file", "-")
    with place.connect("admin", place.password) as admin:
        admin.execute("create table secrets (id int primary key, v text)")
        admin.execute("insert into secrets values (1, 'x')")
        assert admin.execute("select v from secrets where id = 1").fetchall() == [("x",)]
    with place.connect("alice", "geheim") as alice:
        assert alice.execute("select current_user").fetchone() == ("alice",)
        with pytest.raises(psycopg.Error):
            alice.execute("select v from secrets where id = 1")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            alice.execute("create materialized view told as select v from secrets")
    status, answer = place.asked("select v from secrets", "alice", "geheim")
    assert status in {400, 403}, answer
    place.command("acl", "add", "--principal", "User:alice", "--operation", "read", "--topic", "secrets")
    assert place.asked("select v from secrets", "admin", place.password)[1]["rows"] == [["x"]]
    with place.connect("alice", "geheim") as alice:
        assert alice.execute("select v from secrets where id = 1").fetchall() == [("x",)]
        with pytest.raises(psycopg.Error):
            alice.execute("insert into secrets values (2, 'y')")


def test_code_needs_the_right_to_alter_the_cluster(place: Place) -> None:
    place.command("user", "add", "carl", "--password-file", "-")
    body = "create function held(a int) returns int language python as $$ return a + 1 $$"
    for kind in ("--topic", "--transactional-id"):
        for operation in ("write", "create", "describe"):
            if (kind, operation) != ("--transactional-id", "create"):
                place.command("acl", "add", "--principal", "User:carl", "--operation", operation, kind, "_barnabas_sql_functions")
    with place.connect("carl", "geheim") as carl:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="needs the right ALTER on the cluster"):
            carl.execute(body)
        carl.execute("create function in_sql(a int) returns int language sql as $$ select a + 1 $$")
        assert carl.execute("select in_sql(1)").fetchall() == [(2,)]
    with place.connect("admin", place.password) as admin:
        admin.execute(body)
    with place.connect("carl", "geheim") as carl:
        assert carl.execute("select held(1)").fetchall() == [(2,)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            carl.execute("drop function held")


def test_sessions_need_tls(place: Place) -> None:
    with pytest.raises(psycopg.OperationalError, match="the server accepts sessions over TLS only"):
        psycopg.connect(host="127.0.0.1", port=place.port, user="admin", password=place.password, sslmode="disable")


def test_wrong_passwords_are_refused(place: Place) -> None:
    assert place.asked("select 1", "admin", "wrong")[0] == 401
    assert place.asked("select 1", "admin", "wrong")[1]["sqlstate"] == "28000"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        place.connect("admin", "wrong")


def test_the_right_to_write_a_table_is_enough_for_its_sequence(place: Place) -> None:
    for user in ("ann", "bob"):
        place.command("user", "add", user, "--password-file", "-")
    with place.connect("admin", place.password) as admin:
        admin.execute("create table numbered (id serial primary key, v text)")
        admin.execute("create sequence aside")
    for operation in ("read", "write"):
        place.command("acl", "add", "--principal", "User:ann", "--operation", operation, "--topic", "numbered")
    with place.connect("ann", "geheim") as ann:
        assert ann.execute("insert into numbered (v) values ('x'), ('y') returning id").fetchall() == [(1,), (2,)]
        assert ann.execute("select nextval('numbered_id_seq')").fetchall() == [(3,)]
        for statement in (
            "select nextval('aside')",
            "select setval('numbered_id_seq', 9)",
            "alter sequence numbered_id_seq restart",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ann.execute(statement)
    with place.connect("bob", "geheim") as bob:
        for statement in ("insert into numbered (v) values ('x')", "select nextval('numbered_id_seq')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                bob.execute(statement)
    with place.connect("admin", place.password) as admin:
        assert admin.execute("select count(*) from numbered").fetchall() == [(2,)]


def test_a_job_needs_the_rights_of_its_creator_to_both_topics(place: Place) -> None:
    place.command("user", "add", "dora", "--password-file", "-")
    with place.connect("admin", place.password) as admin:
        admin.execute("create table from_here (a int)")
        admin.execute("create table to_there (a int)")
    insert = "insert into to_there select a from stream from_here"
    with place.connect("dora", "geheim") as dora:
        for topic, operation in (
            ("from_here", "read"),
            ("to_there", "describe"),
            ("to_there", "write"),
            ("_barnabas_jobs", "write"),
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match=topic):
                dora.execute(insert)
            place.command("acl", "add", "--principal", "User:dora", "--operation", operation, "--topic", topic)
        with pytest.raises(psycopg.Error):  # and the transactional id
            dora.execute(insert)
    with place.connect("admin", place.password) as admin:
        assert admin.execute("show jobs").fetchall() == []
        admin.execute("drop table from_here, to_there")
