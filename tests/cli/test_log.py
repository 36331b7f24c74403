"""`barnabas log dump` and `doctor` on folders made here, whole and damaged."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from uuid import UUID

import pytest

from barnabas.cli.dump import OFFSET_ENTRY, TIME_ENTRY, read_entries
from barnabas.protocol.records.record import Record, build_batch
from barnabas.storage import checkpoints
from barnabas.storage.files import OsFiles
from tests.cli.conftest import Command

TOPIC_ID = UUID(int=7)
BASE = "0" * 20


def batch(base_offset: int, *values: bytes) -> bytes:
    records = [
        Record(base_offset + n, 1_700_000_000_000 + base_offset + n, b"k", value, (("h", b"1"),))
        for n, value in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=base_offset))


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A folder with the partition flights-0: two batches of two records, indexes, an epoch, checkpoints."""
    files, folder = OsFiles(), tmp_path / "data"
    partition = folder / "flights-0"
    partition.mkdir(parents=True)
    first, second = batch(0, b"a", b"b"), batch(2, b"c", b"d")
    (partition / f"{BASE}.log").write_bytes(first + second)
    (partition / f"{BASE}.index").write_bytes(OFFSET_ENTRY.pack(3, len(first)))
    (partition / f"{BASE}.timeindex").write_bytes(TIME_ENTRY.pack(1_700_000_000_003, 3))
    checkpoints.write_partition_metadata(files, partition / checkpoints.PARTITION_METADATA, TOPIC_ID)
    checkpoints.write_leader_epochs(files, partition / checkpoints.LEADER_EPOCHS, [(0, 0)])
    checkpoints.write_properties(files, folder / checkpoints.META_PROPERTIES, {"version": "1", "cluster.id": "c", "node.id": "5"})
    files.replace_file(folder / checkpoints.RECOVERY_POINTS, checkpoints.encode_offsets({("flights", 0): 4}))
    (folder / ".kafka_cleanshutdown").touch()
    return folder


def test_a_data_folder(command: Command, data_folder: Path) -> None:
    described = command("log", "dump", data_folder, "--json").json
    assert described["meta"]["node.id"] == "5"
    assert described["clean_shutdown"] is True
    (partition,) = described["partitions"]
    assert (partition["topic"], partition["end_offset"], partition["recovery_point"]) == ("flights", 4, 4)
    assert partition["topic_id"] == checkpoints.encode_uuid(TOPIC_ID)
    ended = command("log", "dump", data_folder)
    assert ended.code == 0
    assert any(line.split()[:2] == ["flights", "0"] for line in ended.lines)


def test_a_partition(command: Command, data_folder: Path) -> None:
    described = command("log", "dump", data_folder / "flights-0", "--json").json
    (segment,) = described["segments"]
    assert (segment["batches"], segment["records"], segment["index_entries"], segment["time_index_entries"]) == (2, 4, 1, 1)
    assert described["leader_epochs"] == [{"epoch": 0, "start_offset": 0}]
    assert "LEADER EPOCH" in command("log", "dump", data_folder / "flights-0").text


def test_batches(command: Command, data_folder: Path) -> None:
    dumped = command("log", "dump", data_folder / f"flights-0/{BASE}.log", "--json").json
    assert [(b["base_offset"], b["last_offset"], b["crc"]) for b in dumped["batches"]] == [(0, 1, "ok"), (2, 3, "ok")]
    assert "POSITION" in command("log", "dump", data_folder / "flights-0", "--batches").text


def test_records(command: Command, data_folder: Path) -> None:
    ended = command("log", "dump", data_folder / "flights-0", "--records", "-f", r"%t:%p %o %T %k=%v %h\n")
    assert ended.lines[2] == "flights:0 2 1700000000002 k=c h=1"
    dumped = command("log", "dump", data_folder / "flights-0", "--records", "--json")
    assert [json.loads(line)["value"] for line in dumped.lines] == ["a", "b", "c", "d"]


def test_single_files(command: Command, data_folder: Path) -> None:
    folder = data_folder / "flights-0"
    assert command("log", "dump", folder / f"{BASE}.index", "--json").json == [
        {"offset": 3, "position": len(batch(0, b"a", b"b"))}
    ]
    assert command("log", "dump", folder / f"{BASE}.timeindex", "--json").json == [{"timestamp": 1_700_000_000_003, "offset": 3}]
    assert command("log", "dump", folder / checkpoints.LEADER_EPOCHS, "--json").json == [{"epoch": 0, "start_offset": 0}]
    points = command("log", "dump", data_folder / checkpoints.RECOVERY_POINTS, "--json").json
    assert points == [{"topic": "flights", "partition": 0, "offset": 4}]
    assert command("log", "dump", data_folder / ".kafka_cleanshutdown").code == 2


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("file", "change", "problem"),
    [
        ("log", lambda path: damage(path, -1), "CRC of the batch at offset 2 does not match"),
        ("log", lambda path: path.write_bytes(path.read_bytes()[:-1]), "are not a whole batch"),
        ("log", lambda path: path.write_bytes(path.read_bytes() + b"\0" * 7), "the last 7 bytes are not a whole batch"),
        ("log", lambda path: path.write_bytes(path.read_bytes() + batch(0, b"again")), "offset 0 where 4 or more is expected"),
        ("log", lambda path: damage(path, 16), "a batch of format 3"),
        ("index", lambda path: path.write_bytes(OFFSET_ENTRY.pack(3, 5)), "no batch begins at byte 5"),
        ("index", lambda path: path.write_bytes(OFFSET_ENTRY.pack(9, 0)), "where the batch ends with 1"),
        ("timeindex", lambda path: path.write_bytes(TIME_ENTRY.pack(5, 3)), "comes before"),
    ],
)
def test_damage_is_told(command: Command, data_folder: Path, file: str, change: object, problem: str) -> None:
    assert callable(change)
    change(data_folder / f"flights-0/{BASE}.{file}")
    ended = command("log", "dump", data_folder)
    assert ended.code == 1
    assert problem in ended.err
    checks = {f["check"]: f["status"] for f in command("doctor", "--data-dir", data_folder, "--no-broker", "--json").json}
    assert checks["logs"] == "failed"


def test_a_checkpoint_that_does_not_parse_is_told(command: Command, data_folder: Path) -> None:
    (data_folder / checkpoints.RECOVERY_POINTS).write_text("0\n2\nflights 0 4\n")
    ended = command("log", "dump", data_folder)
    assert ended.code == 1
    assert checkpoints.RECOVERY_POINTS in ended.err
    assert command("log", "dump", data_folder / checkpoints.RECOVERY_POINTS).code == 1


def test_zeros_that_kafka_reserves_are_no_entries(tmp_path: Path) -> None:
    path = tmp_path / "x.index"
    path.write_bytes(OFFSET_ENTRY.pack(3, 100) + b"\0" * 64)
    assert read_entries(path, OFFSET_ENTRY) == [(3, 100)]
    path.write_bytes(b"\0" * 64)
    assert read_entries(path, OFFSET_ENTRY) == []
    assert read_entries(tmp_path / "missing", struct.Struct(">q")) == []


def test_other_folders_are_bad_input(command: Command, tmp_path: Path) -> None:
    assert command("log", "dump", tmp_path).code == 2
    assert command("log", "dump", tmp_path / "missing").code == 2
    assert command("log", "dump", tmp_path, "--records").code == 2
    assert command("log", "dump", tmp_path, "--records", "--batches").code == 2


def test_doctor_finds_a_folder_well(command: Command, data_folder: Path) -> None:
    ended = command("doctor", "--data-dir", data_folder, "--no-broker", "--json")
    checks = {finding["check"]: finding["status"] for finding in ended.json}
    assert checks["logs"] == checks["last stop"] == checks["data folder"] == "ok"
    assert command("doctor", "--data-dir", data_folder / "missing", "--no-broker").code == 2


def test_doctor_warns_of_a_stop_that_was_not_clean(command: Command, data_folder: Path) -> None:
    (data_folder / ".kafka_cleanshutdown").unlink()
    checks = {f["check"]: f["status"] for f in command("doctor", "--data-dir", data_folder, "--no-broker", "--json").json}
    assert checks["last stop"] == "warning"
