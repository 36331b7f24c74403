"""Rows of live tables in files: another server begins with them, and nothing that is doubtful is taken."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.sql.engine import SqlEngine
from barnabas.sql.interface import Caller
from barnabas.sql.live import stored
from barnabas.sql.live.reading import NewRecords
from barnabas.sql.live.rows import LivePartition, LiveRows
from barnabas.sql.live.stored import AGE_S, Name, StoredRows
from barnabas.tables.row_names import RowNames
from barnabas.tables.scalar_format import ScalarFormat
from barnabas.testing import Broker
from tests.sql.live.records import records
from tests.sql.live.test_live_tables import rows

NAME: Name = ("topic", "id", "format")
KEY = ScalarFormat(pa.field("id", pa.int64()))
DAY_S = 86_400.0


def live(count: int = 5, *, seen_at_s: float = 1_000.0) -> LiveRows:
    made = LiveRows(KEY)
    made.seen_at_s = seen_at_s
    for number in (0, 2):
        made.partitions[number] = LivePartition()
    made.take(0, records([(b"%d" % each, b"value %d" % each, each) for each in range(count)]))
    made.take(0, records([(b"1", b"newer", count), (b"2", None, count + 1)]))
    made.partitions[0].position, made.partitions[0].log_start = count + 3, 1
    made.partitions[2].position = 7
    return made


@pytest.fixture(autouse=True)
def _of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LEAST_ROWS", 3)


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    files, made = StoredRows(tmp_path / "live", lambda: 1_001.0), live()
    assert not files.has(NAME)
    files.save(NAME, made)
    assert files.has(NAME)
    found = files.load(NAME, KEY, DAY_S)
    assert found is not None
    assert found.all().select(["key", "value", "offset", "timestamp"]) == made.all().select(
        ["key", "value", "offset", "timestamp"]
    )
    for number, part in made.partitions.items():
        assert (found.partitions[number].position, found.partitions[number].log_start) == (part.position, part.log_start)
    assert (found.is_canonical, found.seen_at_s) == (True, 1_000.0)
    found.take(0, records([(b"9", b"more", 20)]))
    assert found.having([b"9", b"2", b"1"]) == {b"9", b"1"}


def test_rows_with_names_keep_their_names(tmp_path: Path) -> None:
    files, made = StoredRows(tmp_path, lambda: 1_001.0), LiveRows(RowNames())
    made.partitions[1] = LivePartition()
    made.seen_at_s = 1_000.0
    made.take(1, records([(None, b"a", 0), (b"k", b"b", 1), (b"k", b"c", 2), (None, b"d", 3)], 1))
    files.save(NAME, made)
    found = files.load(NAME, RowNames(), DAY_S)
    assert found is not None
    assert list(found.partitions[1].rows) == list(made.partitions[1].rows)
    assert len(found.partitions[1].rows) == 4


def test_few_rows_old_rows_and_those_of_another_table_are_not_stored_or_not_taken(tmp_path: Path) -> None:
    now = [1_000.0]
    files = StoredRows(tmp_path, lambda: now[0])
    few = LiveRows(KEY)
    few.seen_at_s = 1_000.0
    files.save(NAME, few)
    assert not files.has(NAME)
    files.save(NAME, live(seen_at_s=1_000.0 - AGE_S))
    assert not files.has(NAME)
    files.save(NAME, live())
    assert files.load(("topic", "another id", "format"), KEY, DAY_S) is None
    for seconds, stay_s, is_taken in (
        (3_600, DAY_S, True),
        (AGE_S, DAY_S, False),
        (3_600, 4_000.0, False),
        (10, 0.0, False),
        (-1, DAY_S, False),
    ):
        now[0] = 1_000.0 + seconds
        assert (files.load(NAME, KEY, stay_s) is not None) == is_taken


@pytest.mark.parametrize("size", [0, 10, 500, -1, -20])
def test_a_damaged_file_is_told_and_left_alone(tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture) -> None:
    files = StoredRows(tmp_path, lambda: 1_001.0)
    files.save(NAME, live())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    with caplog.at_level(logging.WARNING):
        assert files.load(NAME, KEY, DAY_S) is None
    assert "event=sql-rows-not-loaded" in caplog.text


def test_a_changed_byte_is_found_wherever_it_is(tmp_path: Path) -> None:
    files = StoredRows(tmp_path, lambda: 1_001.0)
    files.save(NAME, live())
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        assert files.load(NAME, KEY, DAY_S) is None
    path.write_bytes(content)
    assert files.load(NAME, KEY, DAY_S) is not None


def test_an_unfinished_file_is_no_file_and_the_next_one_takes_its_place(tmp_path: Path) -> None:
    """As a server leaves it that is killed while it writes."""
    files = StoredRows(tmp_path, lambda: 1_001.0)
    files.save(NAME, live())
    (path,) = tmp_path.iterdir()
    path.rename(path.with_name(path.name + stored.UNFINISHED))
    assert not files.has(NAME)
    files.save(NAME, live())
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = StoredRows(tmp_path, lambda: 1_001.0)
    files.save(NAME, live())

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    files.save(NAME, live(count=9))
    assert len(list(tmp_path.iterdir())) == 1
    found = files.load(NAME, KEY, DAY_S)
    assert found is not None
    assert len(found.partitions[0].rows) == 4


def test_a_folder_that_takes_no_files_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.WARNING):
        StoredRows(tmp_path / "file", lambda: 1_001.0).save(NAME, live())
    assert "event=sql-rows-not-stored" in caplog.text


def test_few_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SQL_LIVE_TABLES", 2)
    files = StoredRows(tmp_path, lambda: 1_001.0)
    for number in range(4):
        files.save((f"topic {number}", "id", "format"), live())
    assert len(list(tmp_path.iterdir())) == 2


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_another_server_reads_what_came_since(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ClientConfig.from_options({"bootstrap.servers": broker.bootstrap_servers})
    asked: list[dict[int, int]] = []
    plain = NewRecords.fetch

    def noted(self: NewRecords, positions: Any) -> Any:
        asked.append(dict(positions))
        return plain(self, positions)

    monkeypatch.setattr(NewRecords, "fetch", noted)

    def server(*statements: str) -> list[Any]:
        engine = SqlEngine(config, live_rows=tmp_path)
        session = engine.session(Caller())
        found = [rows(session, each) for each in statements]
        session.close()
        engine.close()
        return found

    count = "select count(*) as n, sum(n) as s from stored where true"
    server("create table stored (id bigint primary key, n bigint)", "insert into stored select i, i from range(50) r(i)", count)
    assert len(list(tmp_path.iterdir())) == 1
    with BlockingClient(config) as client:
        end = client.list_offsets({("stored", 0): -1})["stored", 0].offset
    asked.clear()
    assert server(count, "select n from stored where id = 7") == [[{"n": 50, "s": 1225}], [{"n": 7}]]
    assert {positions[0] for positions in asked} == {end}
    server("delete from stored where id = 7", "update stored set n = 100 where id = 8")
    assert server(count, "select n from stored where id = 7", "insert into stored values (7, 1)", count) == [
        [{"n": 49, "s": 1225 - 7 + 92}], [], [], [{"n": 50, "s": 1225 - 7 + 92 + 1}],
    ]  # fmt: skip
    server("drop table stored", "create table stored (id bigint primary key, n bigint)")
    assert server(count) == [[{"n": 0, "s": None}]]
