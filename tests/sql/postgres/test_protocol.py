"""The messages of the protocol, one by one."""

from __future__ import annotations

import ssl
from pathlib import Path
from struct import pack, unpack

import pytest

from barnabas import limits
from barnabas.sql.postgres.authentication import Trust
from barnabas.testing.certificates import Certificates
from tests.sql.postgres.running import (
    FLUSH,
    SSL_REQUEST,
    SYNC,
    TERMINATE,
    V3,
    Client,
    Running,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    running,
    startup,
)
from tests.waiting import wait_until

SLOW = "select pg_sleep(1000)"


def kinds(client: Client, *messages: bytes) -> str:
    return "".join(each.kind for each in client.round(*messages))


def test_startup_tells_settings_and_a_key(server: Running) -> None:
    with server.client(application_name="test", options="-c search_path=a\\ b --TimeZone=Europe/Zurich") as client:
        assert client.settings["server_encoding"] == client.settings["client_encoding"] == "UTF8"
        assert (client.settings["application_name"], client.settings["TimeZone"]) == ("test", "Europe/Zurich")
        assert len(client.key) == 8
        caller = server.engine.callers[-1]
        assert (caller.user, caller.database, caller.parameters["search_path"]) == ("anna", "flights", "a b")


@pytest.mark.parametrize("name", ["UTF8", "'utf-8'", "unicode", "SQL_ASCII"])
def test_names_of_utf8(server: Running, name: str) -> None:
    with server.client(client_encoding=name) as client:
        assert client.settings["client_encoding"] == "UTF8"
        assert server.engine.callers[-1].parameters["client_encoding"] == "UTF8"


def test_newer_versions_and_unknown_options_are_negotiated(server: Running) -> None:
    with server.stranger() as client:
        answers = client.start(196_608 + 2)
        assert [each.kind for each in answers[:1]] == ["R"]
        assert len(client.key) == 4 + 32
    with server.stranger() as client:
        first, *_ = client.start(196_608 + 9999, **{"_pq_.unknown": "1"})
        assert (first.kind, first.body) == ("v", pack(">II", 196_610, 1) + b"_pq_.unknown\0")
    with server.stranger() as client:
        client.send(startup(2 << 16))
        assert b"unsupported frontend protocol 2.0: server supports 3.0 to 3.2" in client.rest()


@pytest.mark.parametrize(
    ("parameters", "sqlstate"),
    [
        ({"user": ""}, "28000"),
        ({"client_encoding": "LATIN1"}, "22023"),
        ({"options": "-x"}, "22023"),
        ({"options": "-c a"}, "22023"),
        ({"replication": "database"}, "0A000"),
    ],
)
def test_a_startup_that_cannot_be_served(server: Running, parameters: dict[str, str], sqlstate: str) -> None:
    with server.stranger() as client:
        answer = client.start(V3, **parameters)[-1]
        assert (answer.kind, answer.fields["S"], answer.fields["C"]) == ("E", "FATAL", sqlstate)
        assert client.rest() == b""


def test_encryption_is_refused_without_tls(server: Running) -> None:
    with server.stranger() as client:
        for request in (SSL_REQUEST, pack(">II", 8, (1234 << 16) + 5680)):
            client.send(request)
            assert client.socket.recv(1) == b"N"
        assert client.start()[-1].kind == "Z"


def test_simple_queries(server: Running) -> None:
    with server.client() as client:
        assert kinds(client, query("select 1 as a")) == "TDCZ"
        assert kinds(client, query("")) == kinds(client, query(" ; -- nothing")) == "IZ"
        assert kinds(client, query("select 1; select 2")) == "TDCTDCZ"
        description, row, complete, _ = client.query("select 1 as a")
        assert description.body == pack(">H", 1) + b"a\0" + pack(">IhIhih", 0, 0, 23, 4, -1, 0)
        assert (row.row, complete.text) == ([b"1"], "SELECT 1")
        assert kinds(client, query("select 1; select * from nowhere; select 2")) == "TDCEZ"
        assert client.query("select $1::int")[0].fields["C"] == "42P02"


def test_positions_count_from_the_start_of_the_query(server: Running) -> None:
    with server.client() as client:
        error = next(each for each in client.query("select 'ä'; select * from nowhere") if each.kind == "E")
        assert error.fields["P"] == str(len("select 'ä'; ") + 1)
        assert error.fields["V"] == "ERROR"


def test_a_fault_of_the_engine_reveals_nothing(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    with server.client() as client:
        error = client.query("insert boom")[0]
        assert (error.fields["C"], error.fields["M"]) == ("XX000", "internal error")
        assert kinds(client, query("select 1")) == "TDCZ"
    assert "a fault of the engine" in caplog.text


def test_extended_queries(server: Running) -> None:
    with server.client() as client:
        found = client.round(
            parse("select $1::int as a", "s"), describe("S", "s"), bind(b"7", statement="s"), describe("P"), execute(), SYNC
        )
        assert "".join(each.kind for each in found) == "1tT2TDCZ"
        assert found[1].body == pack(">HI", 1, 23)
        assert found[5].row == [b"7"]
        binary = client.round(bind(pack(">i", 7), statement="s", formats=(1,), results=(1,)), execute(), SYNC)
        assert binary[1].row == [pack(">i", 7)]
        assert kinds(client, parse("create table e1 (a int)"), describe("S"), bind(), describe("P"), execute(), SYNC) == "1tn2nCZ"
        assert kinds(client, parse(""), bind(), execute(), SYNC) == "12IZ"
        assert kinds(client, close("S", "s"), close("S", "nothing"), close("P", "nothing"), SYNC) == "333Z"
        assert kinds(client, bind(b"7", statement="s"), SYNC) == "EZ"


def test_row_limits_suspend_a_portal(server: Running) -> None:
    with server.client() as client:
        client.round(query("begin"))
        found = client.round(
            parse("select * from range(7)"),
            bind(portal="p"),
            execute("p", 3),
            execute("p", 3),
            execute("p", 3),
            execute("p", 3),
            SYNC,
        )
        assert "".join(each.kind for each in found) == "12DDDsDDDsDCCZ"
        assert [each.text for each in found if each.kind == "C"] == ["SELECT 1", "SELECT 0"]
        assert (
            kinds(client, parse("select * from range(4)"), bind(portal="q"), execute("q", 4), execute("q", 4), SYNC)
            == "12DDDDsCZ"
        )
        assert kinds(client, bind(portal="p"), SYNC) == "EZ"
        assert client.query("rollback")[-1].body == b"I"


def test_portals_end_with_their_transaction(server: Running) -> None:
    with server.client() as client:
        assert kinds(client, parse("select 1", "s"), bind(portal="p", statement="s"), SYNC) == "12Z"
        error, ready = client.round(execute("p"), SYNC)
        assert (error.fields["C"], ready.body) == ("34000", b"I")
        client.query("begin")
        assert kinds(client, bind(portal="p", statement="s"), SYNC) == "2Z"
        assert kinds(client, execute("p", 1), SYNC) == "DsZ"


@pytest.mark.parametrize(
    ("messages", "sqlstate"),
    [
        ((parse("select $1::int"), bind(), execute()), "08P01"),
        ((parse("select $1::int"), bind(b"x"), execute()), "22P02"),
        ((parse("select $1::int"), bind(b"99999999999"), execute()), "22003"),
        ((parse("select $1::int"), bind(b"\0\0\0", formats=(1,)), execute()), "22P03"),
        ((parse("select $1::int"), bind(b"1", formats=(2,)), execute()), "22023"),
        ((parse("select $1::int"), bind(b"1", formats=(0, 0)), execute()), "08P01"),
        ((parse("select 1"), bind(results=(0, 0)), execute()), "08P01"),
        ((parse("select $1", "", 9_999),), "42704"),
        ((parse("select $1", "", 25), bind(b"\xff")), "22021"),
        ((parse("select 1"), bind(statement="nothing")), "26000"),
        ((describe("P", "nothing"),), "34000"),
        ((describe("S", "nothing"),), "26000"),
        ((message("D", b"Xa\0"),), "08P01"),
        ((message("P", b"no end"),), "08P01"),
        ((message("P", b"s\0select 1\0" + pack(">HI", 9, 1)),), "08P01"),
        ((message("B", b"\0\0" + pack(">HHi", 0, 1, 1000)),), "08P01"),
        ((message("E", b"\0" + pack(">iB", 1, 0)),), "08P01"),
        ((parse("select 1", "twice"), parse("select 1", "twice")), "42P05"),
        ((parse("fetch next from nothing"), describe("S")), "34000"),
        ((parse("declare"),), "42601"),
    ],
)
def test_errors_skip_to_sync(server: Running, messages: tuple[bytes, ...], sqlstate: str) -> None:
    with server.client() as client:
        found = client.round(*messages, parse("select 5"), query("select 6"), SYNC)
        assert [each.fields["C"] for each in found if each.kind == "E"] == [sqlstate]
        assert "".join(each.kind for each in found).lstrip("12").endswith("EZ")
        assert kinds(client, parse("select 1"), bind(), execute(), SYNC) == "12DCZ"


def test_flush_answers_at_once(server: Running) -> None:
    with server.client() as client:
        client.send(parse("select 1"), FLUSH)
        assert client.receive().kind == "1"
        client.send(bind(), execute(), FLUSH)
        assert [client.receive().kind for _ in range(3)] == ["2", "D", "C"]
        assert kinds(client, SYNC) == "Z"


def test_settings_that_change_are_told(server: Running) -> None:
    with server.client() as client:
        found = client.query("set TimeZone = 'Asia/Kolkata'")
        assert [(each.kind, each.text) for each in found[:1]] == [("S", "TimeZone\0Asia/Kolkata")]
        assert client.query("select timestamptz '2024-01-01 00:00:00+00'")[1].row == [b"2024-01-01 05:30:00+05:30"]


def test_warnings_about_transactions(server: Running) -> None:
    with server.client() as client:
        found = client.query("commit")
        assert "".join(each.kind for each in found) == "NCZ"
        assert (found[0].fields["S"], found[0].fields["C"]) == ("WARNING", "25P01")
        client.query("begin")
        assert client.query("begin")[0].fields["C"] == "25001"
        assert kinds(client, query("rollback")) == "CZ"
        assert kinds(client, query("insert into w values (1); begin; commit")) == "EZ"


def test_nobody_listens(server: Running) -> None:
    with server.client() as client:
        assert [each.text for each in client.query("unlisten *; unlisten a") if each.kind == "C"] == ["UNLISTEN", "UNLISTEN"]


def test_function_calls_and_copy_messages_out_of_place(server: Running) -> None:
    with server.client() as client:
        assert client.round(message("F", b"\0\0\0\1"))[0].fields["C"] == "0A000"
        assert kinds(client, message("d", b"x"), message("c"), message("f", b"x\0"), query("select 1")) == "TDCZ"


def test_copy_in_by_the_extended_protocol(server: Running) -> None:
    with server.client() as client:
        client.query("create table c1 (a int, b text)")
        client.send(parse("copy c1 from stdin"), bind(), execute(), SYNC)
        assert [client.receive().kind for _ in range(3)] == ["1", "2", "G"]
        found = client.round(message("d", b"1\ta\n2"), message("d", b"\tb\n"), FLUSH, message("c"), SYNC)
        assert [each.text for each in found if each.kind == "C"] == ["COPY 2"]
        client.send(query("copy c1 from stdin"))
        assert client.receive().kind == "G"
        assert client.round(message("f", b"enough\0"))[0].fields == {
            "S": "ERROR", "V": "ERROR", "C": "57014", "M": "COPY from stdin failed: enough"
        }  # fmt: skip
        found = client.round(query("copy c1 to stdout"))
        assert [(each.kind, each.body) for each in found[:3]] == [
            ("H", pack(">bHHH", 0, 2, 0, 0)),
            ("d", b"1\ta\n"),
            ("d", b"2\tb\n"),
        ]


def test_another_message_within_a_copy_ends_the_connection(server: Running) -> None:
    with server.client() as client:
        client.query("create table c2 (a int)")
        client.send(query("copy c2 from stdin"))
        assert client.receive().kind == "G"
        client.send(query("select 1"))
        assert b"C08P01" in client.rest()


def test_a_cancellation_needs_the_key(server: Running) -> None:
    with server.client() as client:
        client.send(query(SLOW))
        session = server.engine.sessions[-1]
        process, secret = unpack(">II", client.key)

        def ask(secret: int) -> bytes:
            with server.stranger() as other:
                other.send(pack(">IIII", 16, (1234 << 16) + 5678, process, secret))
                return other.rest()

        assert ask(secret ^ 1) == b""
        assert not session.cancelled.is_set()
        wait_until(session.sleeps.is_set)
        assert ask(secret) == b""
        answer = client.receive()
        while answer.kind != "E":
            answer = client.receive()
        assert answer.fields["C"] == "57014"
        assert client.receive().kind == "Z"
        assert ask(secret) == b""  # nothing runs: nothing happens
        assert kinds(client, query("select 1")) == "TDCZ"


def test_a_client_that_goes_away_ends_its_statement(server: Running) -> None:
    client = server.client()
    session = server.engine.sessions[-1]
    client.send(query(SLOW))
    wait_until(session.sleeps.is_set)
    assert not session.closed
    client.close()
    wait_until(lambda: session.closed)


def test_terminate_closes_the_session(server: Running) -> None:
    with server.client() as client:
        session = server.engine.sessions[-1]
        client.send(TERMINATE)
        assert client.rest() == b""
        wait_until(lambda: session.closed)


def test_a_server_that_stops_tells_its_clients() -> None:
    with running() as server:
        server.client().close()
        wait_until(lambda: server.server.connections == 0)
        idle, busy, starting = server.client(), server.client(), server.stranger()
        session = server.engine.sessions[-1]
        busy.send(query(SLOW))
        wait_until(session.sleeps.is_set)
        server.close()
        for client in (idle, busy):
            assert b"C57P01" in client.rest()
            client.close()
        starting.close()
        assert server.engine.sessions == []
        with pytest.raises(ConnectionRefusedError):
            server.stranger()


def test_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.broker.combined)
    with running(context, Trust()) as server:
        with server.stranger() as client:
            client.send(SSL_REQUEST)
            assert client.socket.recv(1) == b"S"
            trusting = ssl.create_default_context(cafile=certificates.ca_file)
            client.socket = trusting.wrap_socket(client.socket, server_hostname="localhost")
            assert client.start()[-1].kind == "Z"
            assert kinds(client, query("select repeat('x', 1000000)")) == "TDCZ"
        with server.stranger() as client:
            client.send(SSL_REQUEST + b"injected")
            assert b"received unencrypted data after SSL request" in client.rest()
        with server.stranger() as client:
            client.send(SSL_REQUEST)
            assert client.socket.recv(1) == b"S"
            client.send(b"no handshake at all, but enough bytes to see that")
            assert b"no handshake" not in client.rest()
        with server.client() as client:
            assert kinds(client, query("select 1")) == "TDCZ"
    with running(context, Trust(), requires_tls=True) as server, server.stranger() as client:
        answer = client.start()[-1]
        assert (answer.fields["C"], answer.fields["M"]) == ("28000", "the server accepts sessions over TLS only")


def test_password_messages_belong_to_the_log_in(server: Running) -> None:
    with server.client() as client:
        client.send(message("p", b"secret\0"))
        assert b"C08P01" in client.rest()


def test_statements_and_portals_have_limits(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POSTGRES_STATEMENTS", 2)
    monkeypatch.setattr(limits, "MAX_POSTGRES_PORTALS", 1)
    with server.client() as client:
        assert (
            client.round(parse("select 1", "a"), parse("select 1", "b"), parse("select 1", "c"), SYNC)[2].fields["C"] == "54000"
        )
        assert (
            kinds(
                client,
                query("deallocate a"),
            )
            == "CZ"
        )
        assert kinds(client, parse("select 1", "c"), SYNC) == "1Z"
        client.query("begin")
        assert client.round(bind(portal="p", statement="b"), bind(portal="q", statement="b"), SYNC)[1].fields["C"] == "54000"
    monkeypatch.setattr(limits, "MAX_POSTGRES_STATEMENT_CHARACTERS", 20)
    with server.client() as client:
        assert client.round(parse("select 1234567890", "a"), parse("select 1", "b"), SYNC)[1].fields["C"] == "54000"
