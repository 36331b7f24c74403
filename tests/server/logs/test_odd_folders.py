"""Data folders as operators leave them: files missing, files of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import run
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.testing import Broker
from tests.server.clients import Client
from tests.server.in_process import running

OTHERS = {  # as if the operator chose a folder of photos as the data folder
    "photos-2019/draft.tmp": "mine", "photos-2019/00000000000000000000.log.deleted.tmp": "mine", "photos-2019/cat.deleted": "mine",
    "photos-2019/old.tmp/1.txt": "mine", "photos-2019/leader-epoch-checkpoint.tmp/1.txt": "mine", "photos-2019/1.log.cleaned": "mine",
    "draft.tmp": "mine", "meta.properties.old.tmp": "mine", "log-start-offset-checkpoint.d/1.tmp": "mine",
}  # fmt: skip
NOTES = {"notes.txt": "mine", "t-0/readme.md": "mine too", "old-backup/00000000000000000000.log": "not a batch"}


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_missing_indexes_are_made_anew(tmp_path: Path, clean: bool) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        client = Client(broker, "t").create(internal_segment_bytes="3000", index_interval_bytes="200")
        assert client.produce(40, time_ms=1_700_000_000_000, step_ms=1000, size=100) == []
        if clean:
            broker.stop()
        else:
            broker.kill()
        names = {path.name for path in client.folder.glob("*.*index")}
        assert len(names) > 6
        for path in client.folder.glob("*.*index"):
            path.unlink()
        broker.start()
        client = Client(broker, "t")
        assert client.bounds() == (0, 40)
        values = client.read_values()
        assert values == [b"%d" % number * 100 for number in range(40)]
        assert client.offset_at(1_700_000_000_000 + 1000 * 23) == 23
        broker.stop()
        assert {path.name for path in client.folder.glob("*.*index")} == names


def test_files_of_others_are_left_alone_and_named_once(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data") as broker:
        client = Client(broker, "t").create()
        assert client.produce(3) == []
        broker.stop()
        for name, text in NOTES.items():
            path = broker.data_dir / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        said = len(broker.log)
        broker.start()
        assert Client(broker, "t").read_values() == [b"0", b"1", b"2"]
        broker.stop()
        lines = [line for line in broker.log[said:].splitlines() if "left-alone" in line]
        assert len(lines) == 3
        for name in ("path={}/notes.txt", "path={}/old-backup", "directory={}/t-0 names='readme.md'"):
            assert sum(line.endswith(name.format(broker.data_dir)) for line in lines) == 1
        assert {name: (broker.data_dir / name).read_text() for name in NOTES} == NOTES


def test_no_start_and_no_repair_takes_files_of_others_for_leftovers(tmp_path: Path) -> None:
    for name, text in OTHERS.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    leftover = tmp_path / "photos-2019" / "00000000000000000000.log.deleted"
    with Broker(data_dir=tmp_path) as broker:
        broker.stop()
        assert {name: (tmp_path / name).read_text() for name in OTHERS} == OTHERS
        leftover.touch()
        run(["doctor", "check", "--data-dir", str(tmp_path), "--repair"])
        assert {name: (tmp_path / name).read_text() for name in OTHERS} == OTHERS
        assert not leftover.exists()
        leftover.touch()
        broker.start()
        assert not leftover.exists()


async def test_partitions_without_metadata_are_not_taken_for_an_empty_broker(tmp_path: Path) -> None:
    """The log directories are named in another order than before."""
    folders = [tmp_path / "one", tmp_path / "two"]
    async with running(folders) as client:
        await client.create()
        assert await client.produce(b"kept") == 0
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=r"holds a partition: is the first of log\.dirs another folder"):
            async with running(folders[::-1]):
                pass
    async with running(folders) as client:
        assert await client.fetch() == (0, [b"kept"])
