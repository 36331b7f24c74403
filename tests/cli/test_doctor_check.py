"""`barnabas doctor check` on the folder of a broker that was stopped, whole and damaged."""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from pathlib import Path

import pytest

from barnabas.cli import doctor_check
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import NewTopic
from barnabas.protocol.records.record import build_batch
from barnabas.storage import checkpoints
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
    assert ended.lines[2].endswith(": 2 findings; the next start deals with 1 of them")
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
