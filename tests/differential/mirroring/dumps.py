"""Compares logs as Apache Kafka's own tool (kafka-dump-log) reads their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.kafka import run_tool

from tests.differential.mirroring.stored import Unequal

BATCH = re.compile(r"baseOffset: (?P<first>\d+) lastOffset: (?P<last>\d+) .*isvalid: (?P<valid>true|false)")
RECORD = re.compile(r"\| offset: (?P<offset>\d+) ")
OF_ITS_PLACE = re.compile(r" (?:partitionLeaderEpoch|position): -?\d+")  # a copy has its own
HARMLESS = re.compile(r"Dumping |Log starting offset: |Snapshot end offset: |.* is empty\.$|offset: \d+ position: \d+$|"
                      r"timestamp: -?\d+ offset: \d+$|version: 0 producerId: |producerId: |$")  # fmt: skip
TIMEOUT_S = 240.0
FILES_AT_ONCE = 1000


class Dumped:
    """The output of the tool for one partition: each batch and each record by offset, without position and leader epoch."""

    def __init__(self) -> None:
        self.batches: dict[tuple[int, int], str] = {}  # by first and last offset
        self.records: dict[int, str] = {}

    def compare(self, where: str, copy: Dumped, start: int, end: int, *, compacted: bool) -> int:
        """Compare the batches that lie in [start, end); returns how many are the same.

        Raises:
            Unequal: with the first differences.
        """
        theirs, ours = self._between(start, end), copy._between(start, end)
        if compacted:
            records = self.records.keys() & copy.records.keys()
            found = [f"the record at {at}: {self.records[at]} became {copy.records[at]}" for at in sorted(records)
                     if self.records[at] != copy.records[at]]  # fmt: skip
        else:
            found = [f"the batch at {at}: {theirs.get(at)} became {ours.get(at)}" for at in sorted(theirs.keys() | ours.keys())
                     if theirs.get(at) != ours.get(at)]  # fmt: skip
            offsets = sorted(at for at in self.records.keys() | copy.records.keys() if start <= at < end)
            found += [f"the record at {at}: {self.records.get(at)} became {copy.records.get(at)}" for at in offsets
                      if self.records.get(at) != copy.records.get(at)]  # fmt: skip
        if found:
            raise Unequal(f"kafka-dump-log shows other contents of {where}: {'; '.join(found[:3])}")
        return len(theirs.items() & ours.items())

    def _between(self, start: int, end: int) -> dict[tuple[int, int], str]:
        return {at: text for at, text in self.batches.items() if at[1] >= start and at[0] < end}


def dump(folders: Sequence[Path]) -> dict[Path, Dumped]:
    """The output of the tool for the segments and indexes of partitions, by folder. The brokers must not change the files meanwhile.

    Raises:
        Unequal: the tool finds a fault in a file.
    """
    wanted = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix in wanted]
    found = {folder: Dumped() for folder in folders}
    for start in range(0, len(files), FILES_AT_ONCE):
        names = ",".join(map(str, files[start : start + FILES_AT_ONCE]))
        done = run_tool("kafka-dump-log", "--print-data-log", "--files", names, timeout_s=TIMEOUT_S)
        _take(done.stdout.splitlines(), found)
    return found


def _take(lines: Iterable[str], found: dict[Path, Dumped]) -> None:
    path, into = Path(), Dumped()
    for line in lines:
        if line.startswith("Dumping "):
            path = Path(line.removeprefix("Dumping "))
            into = found[path.parent]
        elif (batch := BATCH.match(line)) is not None:
            if batch["valid"] != "true":
                raise Unequal(f"{path}: {line}")
            into.batches[int(batch["first"]), int(batch["last"])] = OF_ITS_PLACE.sub("", line)
        elif (record := RECORD.match(line)) is not None:
            into.records[int(record["offset"])] = line
        elif HARMLESS.match(line) is None:
            raise Unequal(f"kafka-dump-log says of {path}: {line}")
