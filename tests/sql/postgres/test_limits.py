"""A client cannot make the listener hold memory, threads or sockets without bound."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from struct import pack

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.sql.interface import Caller, SqlError
from barnabas.sql.postgres.answers import CLEARTEXT
from barnabas.sql.postgres.authentication import LoggedIn, Login, Trust
from barnabas.sql.postgres.messages import Frames
from tests.sql.postgres.fake_engine import FakeEngine, FakeSession
from tests.sql.postgres.running import SYNC, Running, bind, execute, message, parse, query, running, startup
from tests.waiting import wait_until

CONNECTIONS = 500


def test_500_connections_at_once(server: Running) -> None:
    threads_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clients = [server.stranger() for _ in range(CONNECTIONS)]
    try:
        for client in clients:
            client.send(startup())
        for client in clients:
            while client.receive().kind != "Z":
                pass
        for client in clients:
            client.send(query("select 1"))
        assert all([client.receive().kind for _ in range(4)] == ["T", "D", "C", "Z"] for client in clients)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - threads_before
        assert grown < 400 * 1024, f"{grown} KiB"
    finally:
        for client in clients:
            client.close()
    wait_until(lambda: not server.engine.sessions)


def test_too_many_connections_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POSTGRES_CONNECTIONS", 2)
    with running() as server, server.client(), server.client() as second:
        with server.stranger() as third:
            answer = third.start()[-1]
            assert (answer.fields["S"], answer.fields["C"], answer.fields["M"]) == (
                "FATAL",
                "53300",
                "sorry, too many clients already",
            )
            assert third.rest() == b""
        second.close()
        wait_until(lambda: server.server.connections == 1)
        with server.client() as third:
            assert third.query("select 1")[1].row == [b"1"]


@pytest.mark.parametrize(
    "packet",
    [
        pack(">II", limits.MAX_POSTGRES_STARTUP_BYTES + 1, 196_608),
        pack(">II", 7, 196_608),
        pack(">II", 2**31, 196_608),
        pack(">II", 9, 196_608) + b"x",
        pack(">II", 8, (1234 << 16) + 5678),
        pack(">II", 10, (1234 << 16) + 5679) + b"xx",
        pack(">II", 14, 196_608) + b"user\0\0",
        pack(">II", 15, 196_608) + b"\xff\xfe\0x\0\0\0",
        pack(">II", 18, 196_608) + b"user\0\xff\xfe\0\0\0",
        pack(">II", 17, 196_608) + b"user\0\xff\xfe\0\0",
    ],
)
def test_a_bad_startup_packet_ends_the_connection(server: Running, packet: bytes) -> None:
    with server.stranger() as client:
        client.send(packet)
        assert b"SFATAL\0" in client.rest()


@pytest.mark.parametrize(
    "frame",
    [
        b"Q" + pack(">I", limits.MAX_POSTGRES_MESSAGE_BYTES + 1),
        b"Q" + pack(">I", 3),
        b"Q" + pack(">I", 2**32 - 1),
        b"S" + pack(">I", 20_000),
        b"?" + pack(">I", 4),
        b"\0" * 5,
    ],
)
def test_a_frame_that_lies_ends_the_connection(server: Running, frame: bytes) -> None:
    with server.client() as client:
        client.send(frame)
        rest = client.rest()
        assert b"SFATAL\0" in rest
        assert b"C08P01\0" in rest


def test_a_declared_length_allocates_nothing() -> None:
    frames = Frames(limits.MAX_POSTGRES_MESSAGE_BYTES)
    assert frames.receive(b"Q" + pack(">I", limits.MAX_POSTGRES_MESSAGE_BYTES)) == []
    assert frames.waiting == 5
    for byte in b"select 1":
        assert frames.receive(bytes([byte])) == []
    assert frames.waiting == 13


class Asks(Trust):
    """An authenticator that waits for a password."""

    def log_in(self, login: Login) -> LoggedIn:
        login.ask(CLEARTEXT)
        return super().log_in(login)


class Ends(Trust):
    """An authenticator whose log-ins have ended at once."""

    def log_in(self, login: Login) -> LoggedIn:
        return LoggedIn(login.caller(), 0.0)


def test_a_session_ends_with_its_log_in_but_not_within_a_transaction() -> None:
    with running(authenticator=Ends()) as server, server.stranger() as client:
        client.send(startup(), query("begin"))
        while client.receive().kind != "C":
            pass
        assert client.receive().body == b"T"
        assert client.query("select 1")[-1].body == b"T"
        client.send(query("commit"))
        rest = client.rest()
        assert b"C28000\0" in rest
        assert b"the log-in of this session has ended" in rest


def test_before_the_log_in_messages_are_small() -> None:
    with running(authenticator=Asks()) as server, server.stranger() as client:
        client.send(startup() + b"p" + pack(">I", limits.MAX_BEARER_BYTES + 1))
        assert b"SFATAL\0" in client.rest()


def test_a_log_in_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTGRES_STARTUP_TIMEOUT_S", 0.0)
    with running() as server, server.stranger() as client:
        client.send(startup()[:10])
        assert b"the log-in took too long" in client.rest()


def test_the_time_to_load_the_engine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_SILENT_S", 0.0)
    engine, loaded = FakeEngine(), threading.Event()

    class Loading:
        def session(self, caller: Caller) -> FakeSession:
            assert loaded.wait(30)
            return engine.session(caller)

        def close(self) -> None:
            engine.close()

    with running(engine=Loading()) as server, server.stranger() as client:
        client.send(startup())
        assert client.receive().kind == "R"
        monkeypatch.setattr(limits, "POSTGRES_STARTUP_TIMEOUT_S", 0.0)
        told = client.receive()
        assert (told.kind, told.fields["M"]) == ("N", "SQL is loading its libraries")
        loaded.set()
        assert client.receive().kind == "K"


def test_half_a_message_has_its_time(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client:
        client.query("select 1")
        monkeypatch.setattr(limits, "POSTGRES_MESSAGE_TIMEOUT_S", 0.0)
        client.send(query("select 1")[:-3])
        assert b"the rest of a message did not arrive" in client.rest()


def test_an_idle_session_ends(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client, server.client() as within:
        within.query("begin")
        monkeypatch.setattr(limits, "POSTGRES_IDLE_IN_TRANSACTION_TIMEOUT_S", 0.0)
        assert b"C25P03\0" in within.rest()
        assert client.query("select 1")[-1].kind == "Z"
        monkeypatch.setattr(limits, "POSTGRES_IDLE_TIMEOUT_S", 0.0)
        assert b"C57P05\0" in client.rest()


def test_a_copy_without_data_ends(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client:
        client.query("create table stalled (a int)")
        client.send(query("copy stalled from stdin"))
        assert client.receive().kind == "G"
        monkeypatch.setattr(limits, "POSTGRES_IDLE_IN_TRANSACTION_TIMEOUT_S", 0.0)
        assert b"C25P03\0" in client.rest()


def test_a_client_that_reads_nothing_is_dropped(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "POSTGRES_WRITE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(limits, "POSTGRES_STOP_TIMEOUT_S", 0.3)
    with server.client() as client:
        session = server.engine.sessions[-1]
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(query("select repeat('x', 1000) from range(1000000)"))
        assert not session.closed
        wait_until(lambda: session.closed)


class Counting:
    """Wraps batches, and counts those that were taken."""

    taken = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        for _ in range(60):
            self.taken += 1
            yield pa.record_batch({"a": ["x" * 100_000] * 10})


def test_rows_are_made_as_the_client_reads_them(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client:
        counting = Counting()
        session = server.engine.sessions[-1]
        execute_as_before = session.execute

        def execute_counted(prepared: object, values: object = ()) -> object:
            result = execute_as_before(prepared, values)  # type: ignore[arg-type]  # what the connection passes on
            result._batches, result.schema = counting.batches(), pa.schema([("a", pa.string())])
            return result

        monkeypatch.setattr(session, "execute", execute_counted)
        client.send(query("select 'x' as a"))
        assert client.receive().kind == "T"
        wait_until(lambda: counting.taken > 2)
        most = limits.MAX_POSTGRES_UNSENT_BYTES // 1_000_000 + 20  # and what the sockets hold
        assert counting.taken < most
        rows = 0
        while client.receive().kind == "D":
            rows += 1
        assert rows == 600


def test_messages_ahead_stop_the_reading(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POSTGRES_READ_AHEAD_BYTES", 2_000)
    with server.client() as client:
        client.send(*[query(f"select {number}") for number in range(500)])
        answers = [client.receive() for _ in range(2_000)]
        assert [each.row for each in answers if each.kind == "D"] == [[b"%d" % number] for number in range(500)]


def test_all_connections_share_the_memory_for_messages(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_POSTGRES_WAITING_BYTES", 100_000)
    with server.client() as client:
        client.send(b"Q" + pack(">I", 1_000_000) + b"x" * 500_000)
        assert b"C53200\0" in client.rest()
    wait_until(lambda: server.server.budget.held == 0)
    with server.client() as client:
        assert client.query("select 1")[1].row == [b"1"]


def test_a_large_message_fits(server: Running) -> None:
    with server.client() as client:
        text = b"x" * 20_000_000
        found = client.round(parse("select length($1) as l", "", 25), bind(text), execute(), SYNC)
        assert next(each for each in found if each.kind == "D").row == [b"20000000"]


def test_an_engine_that_is_full_says_so() -> None:
    with running() as server:

        def refuse(_: object) -> object:
            raise SqlError("53300", "there are 0 sessions already")

        server.engine.session = refuse  # type: ignore[method-assign, assignment]  # an engine without room
        with server.stranger() as client:
            answer = client.start()[-1]
            assert (answer.fields["S"], answer.fields["C"]) == ("FATAL", "53300")


def test_a_password_is_not_read_from_a_client_that_must_not_send_one(server: Running) -> None:
    with server.stranger() as client:
        client.send(startup(), message("p", b"x" * 1000))
        assert b"C08P01" in client.rest()
