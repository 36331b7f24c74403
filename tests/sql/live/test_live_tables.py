"""Rows of tables with a primary key in memory: they equal the topic after every kind of change, and only for callers who may read it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller, Session
from barnabas.sql.live.decoded import AHEAD, SHARE, DecodedRows, Made, Slices
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.sql.live.tables import Looks
from barnabas.sql.session import SqlSession
from barnabas.tables.scalar_format import ScalarFormat
from barnabas.testing import Broker
from tests.sql.live.records import records
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def engine(broker: Broker) -> Iterator[SqlEngine]:
    engine = SqlEngine(ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}))
    yield engine
    engine.close()


@pytest.fixture
def session(engine: SqlEngine) -> Iterator[SqlSession]:
    session = engine.session(Caller())
    yield session
    session.close()


def rows(session: Session, text: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
    result = session.execute(session.prepare(text), values)
    found = [row for batch in result.batches() for row in batch.to_pylist()] if result.schema is not None else []
    result.close()
    return found


def created(session: Session, name: str, options: str = "") -> None:
    rows(session, f"create table {name} (id bigint primary key, name text) {options}")
    rows(session, f"insert into {name} select range, 'name ' || range from range(20)")


def written(broker: Broker, topic: str, pairs: Sequence[tuple[bytes, bytes | None]]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in pairs:
        producer.produce(topic, value, key=key, partition=0)
    assert producer.flush(60) == 0


def held(engine: SqlEngine) -> int:
    return sum(each.rows is not None and bool(each.rows.partitions) for each in engine.shared.live._tables.values())


def test_a_row_by_its_key(engine: SqlEngine, session: SqlSession) -> None:
    created(session, "by_key")
    for text in ("select * from by_key where id = $1", "select name, id from by_key where id = $1 and name like 'n%'"):
        assert rows(session, text, [7]) == [{"id": 7, "name": "name 7"}]
        assert rows(session, text, [99]) == []
        assert rows(session, text, [None]) == []
    assert rows(session, "select count(*) as n from by_key where id = 3 or id = 4") == [{"n": 2}]
    assert rows(session, "select _offset >= 0 as o, name from by_key where id = 3") == [{"o": True, "name": "name 3"}]
    assert rows(session, "select upper(name) as u from by_key where 3 = id limit 1") == [{"u": "NAME 3"}]
    assert held(engine) == 1


def test_a_key_of_several_columns(session: SqlSession) -> None:
    rows(session, "create table pairs (a bigint, b text, v text, primary key (a, b))")
    rows(session, "insert into pairs values (1, 'x', 'one'), (1, 'y', 'two')")
    assert rows(session, "select v from pairs where b = $1 and a = 1", ["y"]) == [{"v": "two"}]
    assert rows(session, "select v from pairs where a = 1 order by v") == [{"v": "one"}, {"v": "two"}]


def test_what_other_writers_change_is_seen_at_once(broker: Broker, session: SqlSession) -> None:
    created(session, "changing")
    assert rows(session, "select name from changing where id = 1") == [{"name": "name 1"}]
    written(broker, "changing", [(b"1", b'{"name": "other"}'), (b"2", None), (b"21", b'{"name": "more"}')])
    assert rows(session, "select name from changing where id = 1") == [{"name": "other"}]
    assert rows(session, "select name from changing where id = 2") == []
    assert rows(session, "select count(*) as n from changing") == [{"n": 20}]


def test_keys_that_other_writers_write_otherwise_are_found(broker: Broker, session: SqlSession) -> None:
    created(session, "otherwise")
    written(broker, "otherwise", [(b"50.0", b'{"name": "fifty"}'), (b" 51", b'{"name": "space"}')])
    expected = rows(session, "select id, name from otherwise where id + 0 > 40 order by id")
    for row in expected:
        assert rows(session, "select id, name from otherwise where id = $1", [row["id"]]) == [row]


def test_deleted_records_and_topics_that_are_made_again(broker: Broker, session: SqlSession) -> None:
    created(session, "deleted", "with (\"cleanup.policy\" = 'compact,delete')")
    assert len(rows(session, "select * from deleted")) == 20
    with BlockingClient.to(broker.bootstrap_servers) as client:
        client.delete_records({("deleted", 0): 5})
    assert rows(session, "select min(id) as first, count(*) as n from deleted") == [{"first": 5, "n": 15}]
    rows(session, "drop table deleted")
    created(session, "deleted", "with (\"cleanup.policy\" = 'compact,delete')")
    assert len(rows(session, "select * from deleted")) == 20


@pytest.mark.parametrize("key", ["primary key", ""])
def test_a_topic_that_is_made_again_is_not_expected_to_hold_what_was_written_before(session: SqlSession, key: str) -> None:
    for _ in range(2):
        rows(session, f"create table again (id bigint {key})")
        assert rows(session, "select * from again") == []
        rows(session, "insert into again values (1)")
        rows(session, "drop table again")


def test_several_sessions_share_the_rows(engine: SqlEngine, session: SqlSession) -> None:
    created(session, "shared")
    other = engine.session(Caller())
    try:
        for number in range(100, 130):
            rows(session if number % 2 else other, "insert into shared values ($1, 'x')", [number])
            for each in (session, other):
                assert rows(each, "select id from shared where id = $1", [number]) == [{"id": number}]
    finally:
        other.close()
    assert held(engine) == 1


def test_tables_beyond_the_limits_are_read(engine: SqlEngine, session: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_BYTES", 1_000)
    created(session, "large")
    assert rows(session, "select name from large where id = 5") == [{"name": "name 5"}]
    assert held(engine) == 0


def test_only_some_tables_are_kept(engine: SqlEngine, session: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_TABLES", 2)
    for number in range(4):
        created(session, f"kept{number}")
        assert rows(session, f"select count(*) as n from kept{number}") == [{"n": 20}]
    assert held(engine) == 2


def test_open_transactions_do_not_show(broker: Broker, session: SqlSession) -> None:
    created(session, "committed")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "live"})
    producer.init_transactions(60)
    for how in ("abort", "commit"):
        producer.begin_transaction()
        producer.produce("committed", b'{"name": "new"}', key=b"1", partition=0)
        assert producer.flush(60) == 0
        assert rows(session, "select name from committed where id = 1") == [{"name": "name 1"}]
        (producer.abort_transaction if how == "abort" else producer.commit_transaction)(60)
    assert rows(session, "select name from committed where id = 1") == [{"name": "new"}]


@contextmanager
def secured() -> Iterator[tuple[Broker, ClientConfig, Callable[[str, str], None]]]:
    """A broker with users, the settings of an administrator, and a function that denies a user a topic."""
    with Broker({"allow.everyone.if.no.acl.found": True, "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                 "super.users": "User:admin"}, users={"admin": "a", "alice": "b"}) as broker:  # fmt: skip
        shown = ClientConfig.from_options({**broker.login("admin", "PLAIN"), "bootstrap.servers": broker.bootstrap_servers})

        def deny(user: str, topic: str) -> None:
            with BlockingClient(shown) as client:
                _deny(client, user, topic)

        yield broker, shown, deny


def test_a_caller_without_the_right_to_read_gets_no_row() -> None:
    with secured() as (broker, shown, deny):
        engine = SqlEngine(shown)
        try:
            admin, alice = (
                engine.session(Caller("admin")),
                engine.session(Caller("alice", settings=broker.login("alice", "PLAIN"))),
            )
            created(admin, "secret")
            assert rows(admin, "select name from secret where id = 1") == [{"name": "name 1"}]
            assert rows(alice, "select name from secret where id = 1") == [{"name": "name 1"}]
            deny("alice", "secret")
            with pytest.raises(Exception, match=r"(?i)authoriz|permission|denied"):
                rows(alice, "select name from secret where id = 1")
            assert rows(admin, "select name from secret where id = 1") == [{"name": "name 1"}]
        finally:
            engine.close()


def _deny(client: BlockingClient, user: str, topic: str) -> None:
    from barnabas.client.plans import call
    from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest

    topics, literal, read, deny = 2, 3, 3, 2
    binding = AclCreation(
        resource_type=topics, resource_name=topic, resource_pattern_type=literal, principal=f"User:{user}", host="*", operation=read,
        permission_type=deny,
    )  # fmt: skip
    (result,) = client.run(call(CreateAclsRequest(creations=[binding]))).results
    assert result.error_code == 0


class AskedLock:
    """A lock that knows which threads have asked for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.askers: set[int] = set()

    def acquire(self, timeout: float) -> bool:
        self.askers.add(threading.get_ident())
        return self.lock.acquire(timeout=timeout)

    def release(self) -> None:
        self.lock.release()


def test_a_look_serves_the_statements_that_began_before_it(broker: Broker) -> None:
    ours, looks = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers}), Looks()
    other = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers, "client.id": "other"})
    before = looks.ticket()
    assert not looks.serve(before, ours)
    number = looks.begin()
    during = looks.ticket()
    looks.end(number, ours)
    assert looks.serve(before, ours)
    assert not looks.serve(before, other), "another caller has other rights"
    assert not looks.serve(during, ours), "records may have come after the look began"
    assert not looks.serve(looks.ticket(), ours)


def test_statements_at_once_share_looks(engine: SqlEngine) -> None:
    sessions = [engine.session(Caller()) for _ in range(8)]
    created(sessions[0], "shared_looks")
    for each in sessions:
        assert rows(each, "select name from shared_looks where id = 3") == [{"name": "name 3"}]
    (followed,) = engine.shared.live._tables.values()
    before = followed.looks.ticket()
    asked = AskedLock()
    followed.turns._lock = cast("threading.Lock", asked)
    with ThreadPoolExecutor(8) as threads:
        with asked.lock:
            found = [threads.submit(rows, each, "select name from shared_looks where id = 3") for each in sessions]
            wait_until(lambda: len(asked.askers) == 8)
        assert [each.result() for each in found] == [[{"name": "name 3"}]] * 8
    assert followed.looks.ticket() == before + 1
    for each in sessions:
        each.close()


def test_rows_that_were_decoded_ahead_are_the_newest(engine: SqlEngine, session: SqlSession) -> None:
    rows(session, "create table ahead (id bigint primary key, name text) with (partitions = 3)")
    rows(session, "insert into ahead select range, 'name ' || range from range(1000)")
    one, name = "select * from ahead where id = $1", "select name from ahead where id = $1"
    wanted = {number: f"name {number}" for number in range(1000)}
    for step in range(400):
        number = step * 7 % 1000
        found = wanted.get(number)
        assert rows(session, one, [number]) == ([] if found is None else [{"id": number, "name": found}])
        assert rows(session, name, [number]) == ([] if found is None else [{"name": found}])
        if step % 50 == 10:
            rows(session, "update ahead set name = 'other' where id = $1", [number])
            wanted[number] = "other"
        if step % 50 == 20:
            rows(session, "delete from ahead where id = $1", [number])
            del wanted[number]
        if step % 50 == 30:
            rows(session, "insert into ahead values ($1, 'more')", [2_000 + step])
            assert rows(session, one, [2_000 + step]) == [{"id": 2_000 + step, "name": "more"}]
    rows(session, "alter table ahead add column size double precision")
    assert rows(session, one, [1]) == [{"id": 1, "name": "name 1", "size": None}]


def test_decoded_rows_take_little_more_memory_than_the_rows() -> None:
    live = LiveRows(ScalarFormat(pa.field("id", pa.int64())))
    count = 4 * AHEAD
    live.partitions[0] = LivePartition()
    live.take(0, records([(str(number).encode(), b"x" * 9_000, number) for number in range(count)]))
    decoded, batches = DecodedRows(), []

    def decode(records: pa.RecordBatch) -> Made:
        batches.append(records.num_rows)
        table = pa.table({"value": records.column("value")})
        return Made(Slices(table), table.nbytes)

    for turn, kind in enumerate("abcdefgh"):
        for number in range(count):
            found = decoded.of_key(live, str(number).encode(), "definition", kind, decode)
            assert found.num_rows == 1
            assert decoded.size <= SHARE * live.size + 2 * max(batches) * 10_000
        assert sum(batches) >= (turn + 1) * count
    assert max(batches) <= AHEAD + 1
    assert 1 < len(decoded._kinds) <= SHARE + 1
    assert decoded.size == sum(each.size for each in decoded._kinds.values())


def test_decoded_rows_have_what_the_rows_leave_free(
    engine: SqlEngine, session: SqlSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(session, "create table tight (id bigint primary key, name text)")
    rows(session, "insert into tight select range, 'name ' || range from range(1000)")
    one = "select name from tight where id = $1"
    live = engine.shared.live

    def taken() -> int:
        """Bytes of decoded rows after a query for each row."""
        for number in range(1000):
            assert rows(session, one, [number]) == [{"name": f"name {number}"}]
        return sum(each.size for each in live._decoded.values())

    plenty = taken()
    (followed,) = live._tables.values()
    assert followed.rows is not None
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_BYTES", followed.rows.size)
    assert 0 < taken() < plenty / 2
    assert followed.rows is not None
