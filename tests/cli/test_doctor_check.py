"""`barnabas doctor check` on the folder of a broker that was stopped, whole and damaged."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli import doctor_check
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.cluster.metadata import store_entries
from barnabas.protocol.records.record import build_batch
from barnabas.storage import checkpoints
from barnabas.storage.files import OsFiles
from barnabas.testing import Broker
from tests.cli.conftest import Command

FIRST = "0" * 20 + ".log"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a broker with two topics, stopped cleanly."""
    folder = tmp_path_factory.mktemp("template") / "data"
    with Broker(data_dir=folder) as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        client.create_topics([NewTopic("flights", 2), NewTopic("weather", 1)])
        for topic in ("flights", "weather"):
            batch = build_batch([(b"key", b"value %d" % index) for index in range(100)], timestamp_ms=1_700_000_000_000)
            client.produce(topic, 0, batch)
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "data"))


def test_a_whole_folder(command: Command, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ended = command("doctor", "check", "--data-dir", folder)
    assert ended.code == 0, ended
    (line,) = ended.lines
    assert line.startswith("3 partitions, 3 segments, 200 records, ")
    assert line.endswith(": nothing is wrong")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    found = command("doctor", "check", "--data-dir", folder, "--json").json
    assert (found["partitions"], found["records"], found["findings"], found["clean_shutdown"]) == (3, 200, [], True)


def test_damage_is_one_line_each(command: Command, folder: Path) -> None:
    log = folder / "flights-0" / FIRST
    data = bytearray(log.read_bytes())
    data[200] ^= 1
    log.write_bytes(data)
    (folder / "weather-0" / FIRST).with_suffix(".index").unlink()
    ended = command("doctor", "check", "--data-dir", folder)
    assert ended.code == 1
    assert ended.lines[0] == f"{log}, byte 0, offsets 0 to 99: the CRC does not match; these records cannot be read"
    assert ended.lines[1].startswith(f"{(folder / 'weather-0' / FIRST).with_suffix('.index')}: the file is missing; ")
    assert ended.lines[2].endswith(": 2 findings; the next start repairs 1 of them")
    repaired = command("doctor", "check", "--data-dir", folder, "--repair")
    assert repaired.code == 1
    assert repaired.lines[0].endswith(" [not repaired: their bytes are not what was written]")
    assert repaired.lines[1].endswith(" [repaired: both indexes written anew from the batches]")
    assert repaired.lines[2].endswith(": 2 findings, 1 repaired")
    assert log.read_bytes() == data
    (left,) = command("doctor", "check", "--data-dir", folder, "--json").json["findings"]
    assert (left["path"], left["position"], left["first_offset"], left["last_offset"]) == (str(log), 0, 0, 99)


def test_checkpoints_and_metadata(command: Command, folder: Path) -> None:
    (folder / checkpoints.HIGH_WATERMARKS).write_text("0\n2\nflights 0 120\ngone 3 7\n")
    shutil.rmtree(folder / "flights-1")
    shutil.copytree(folder / "weather-0", folder / "strange-0")
    (folder / "weather-0.0123456789abcdef0123456789abcdef-delete").mkdir()
    (folder / "notes").mkdir()
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert f"{folder / 'metadata.db'}: partition 1 of topic flights has no folder in the data folders that were named; " \
        "if it had records, they are not here; the next start begins an empty log" in lines  # fmt: skip
    assert f"{folder / 'notes'}: not a file of a data folder; nothing reads it" in lines
    watermarks = folder / checkpoints.HIGH_WATERMARKS
    assert f"{watermarks}, offsets 100 to 119: it has offset 120 for flights-0, which ends at 100; " \
        "offsets 100 to 119 were committed and are not there" in lines  # fmt: skip
    assert f"{watermarks}: it has offset 7 for gone-3, of which there is no folder; " \
        "if the partition was not deleted, all of its records are gone" in lines  # fmt: skip
    assert f"{folder / 'strange-0'}: the metadata has no partition 0 of topic strange; " \
        "the records are there, but no client can reach them" in lines  # fmt: skip
    assert any("-delete: a deleted partition that is not removed yet" in line for line in lines)
    assert len(lines) == 7


def test_metadata_that_is_no_database(command: Command, folder: Path) -> None:
    (folder / "metadata.db").write_bytes(b"rubbish" * 1000)
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert lines[0] == (
        f"{folder / 'metadata.db'}: file is not a database; "
        "the broker does not start with it; the topics' settings are in it, the records are not"
    )


def test_metadata_of_another_version(command: Command, folder: Path) -> None:
    database = sqlite3.connect(folder / "metadata.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert lines[0].startswith(f"{folder / 'metadata.db'}: it has format 99; this version reads ")


def test_a_running_broker_is_refused(command: Command, folder: Path) -> None:
    with (folder / ".lock").open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for options in ([], ["--repair"]):
            ended = command("doctor", "check", "--data-dir", folder, *options)
            assert ended.code == 2
            assert f"a broker is running on {folder}" in ended.err
    assert command("doctor", "check", "--data-dir", folder / "missing").code == 2
    assert command("doctor", "check").code == 2


def test_several_processes_find_the_same(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = folder / "flights-0" / FIRST
    log.write_bytes(log.read_bytes()[:-1])
    alone = command("doctor", "check", "--data-dir", folder, "--json").json
    monkeypatch.setattr(doctor_check, "SHARED_FROM_BYTES", 0)
    assert command("doctor", "check", "--data-dir", folder, "--json").json == alone
    assert len(alone["findings"]) == 1


def test_what_a_move_left_half_done(command: Command, folder: Path, tmp_path: Path) -> None:
    """The folder with the marker is the log's; a repair keeps the marker, by which the next start knows that."""
    other = tmp_path / "other"
    other.mkdir()
    for name in ("meta.properties", ".kafka_cleanshutdown", ".lock"):
        shutil.copy(folder / name, other / name)
    moved = Path(shutil.copytree(folder / "weather-0", other / "weather-0"))
    (moved / "moved.tmp").write_text("weather-0")
    (folder / "weather-0" / FIRST).write_bytes(b"what is left is not looked at")
    (other / f"flights-0.{0:032x}-future").mkdir()
    dirs = ["--data-dir", folder, "--data-dir", other]
    lines = command("doctor", "check", *dirs).lines
    assert lines[:2] == [
        f"{folder / 'weather-0'}: the partition was moved to {other}, and this is what it left; "
        "nothing is lost: the next start removes it",
        f"{moved / 'moved.tmp'}: the log was moved here from another data folder, where it may still lie; "
        "nothing is lost: the next start removes what is left there",
    ]
    assert lines[2].endswith("2 findings; the next start repairs all of them")
    (other / ".kafka_cleanshutdown").unlink()
    (copy,) = (line for line in command("doctor", "check", *dirs).lines if "-future" in line)
    assert copy.endswith(
        ": an unfinished copy of a partition on its way to this folder; nothing is lost: the next start copies it anew"
    )
    command("doctor", "check", *dirs, "--repair")
    with (
        Broker({"log.dirs": f"{folder},{other}"}, data_dir=folder) as broker,
        BlockingClient.to(broker.bootstrap_servers) as client,
    ):
        assert client.fetch("weather", 0, 0).high_watermark == 100
        assert not (folder / "weather-0").exists()
    assert command("doctor", "check", *dirs).code == 0


def test_how_far_logs_are_compacted(command: Command, folder: Path) -> None:
    checkpoint = folder / checkpoints.CLEANED_OFFSETS
    checkpoint.write_text("")  # Kafka leaves an empty file
    assert command("doctor", "check", "--data-dir", folder).code == 0
    checkpoint.write_text("0\n1\nweather 0 120\n")
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert lines[0] == (
        f"{checkpoint}: it has offset 120 for weather-0, which ends at 100; nothing is lost: the log is compacted from its start once more"
    )
    checkpoint.write_text("rubbish\n")
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert lines[0] == (
        f"{checkpoint}: it cannot be read: not a line of it: 'rubbish'; "
        "nothing is lost: compacted logs are looked at from their start once more"
    )


def test_a_deletion_that_a_stop_interrupted(command: Command, folder: Path) -> None:
    topic_id = checkpoints.read_partition_metadata(OsFiles(), folder / "weather-0" / checkpoints.PARTITION_METADATA)
    assert topic_id is not None
    database = sqlite3.connect(folder / "metadata.db")
    with database:
        database.execute("DELETE FROM entry WHERE path IN ('/topics/weather', '/partitions/weather/00000')")
        database.execute("INSERT INTO entry VALUES (?, ?, 0, 0)", (store_entries.deleted_topic_path(topic_id), b"[1]"))
    database.close()
    lines = command("doctor", "check", "--data-dir", folder).lines
    assert lines[0] == f"{folder / 'weather-0'}: topic weather was deleted; nothing is lost: the next start removes it"
    assert lines[1].endswith("1 finding; the next start repairs all of them")


def test_a_folder_that_cannot_be_written_is_checked(command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is mounted for reading only: nothing is opened for writing."""
    real = os.open

    def open_for_reading(path: str | Path, flags: int, *rest: Any, **named: Any) -> int:
        if str(path).startswith(str(folder)) and flags & os.O_ACCMODE != os.O_RDONLY:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", open_for_reading)
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    ended = command("doctor", "check", "--data-dir", folder)
    assert ended.code == 0, ended
