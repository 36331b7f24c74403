"""`barnabas doctor check`: every batch, index and checkpoint of stopped data folders, verified.

Owns the order of the work, the worker processes and the output. The checks themselves are in `storage/check` and
`cluster/offline/check.py`.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, field

from barnabas.cli.data_folder import locked
from barnabas.cli.output import Output, output_option
from barnabas.cli.types import FilePath
from barnabas.signals import die_with_parent

if TYPE_CHECKING:
    from barnabas.cluster.offline.check import StoredMetadata
    from barnabas.storage.check.directory import DataFolder
    from barnabas.storage.check.finding import Finding
    from barnabas.storage.check.partition import PartitionContext, PartitionReport
    from barnabas.storage.checkpoints import TopicPartition

SHARED_FROM_BYTES = 256 * 1024 * 1024  # below this, one process reads the files faster than a second process starts
MAX_PROCESSES = 8  # more processes read a disk no faster, and each keeps a piece of a file in memory
SHOWN_FROM_BYTES = 512 * 1024 * 1024  # below this, the progress bar would only flash
PROGRESS_INTERVAL_S = 0.2


class Checked(Struct):
    """The findings of one run."""

    folders: Sequence[DataFolder]
    metadata: StoredMetadata
    reports: Mapping[TopicPartition, PartitionReport]
    findings: list[Finding] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)  # one outcome of the repair for each finding


@click.command("check")
@click.option(
    "--data-dir",
    "data_dirs",
    type=FilePath(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    required=True,
    help="A data folder; name all of a broker's (log.dirs). Repeatable.",
)
@click.option("--repair", "repairs", is_flag=True, help="Repair what can be repaired without loss.")
@output_option
def check(output: Output, data_dirs: tuple[Path, ...], repairs: bool) -> int:
    """Verify every file of stopped data folders.

    Reads every batch (sizes, CRC, offsets, the records inside), index, snapshot, checkpoint and the metadata. Each
    finding is one line: the file, the byte position, the offsets concerned and the consequence. Without --repair the
    command writes nothing. With --repair it rewrites indexes and other files that can be derived from the batches,
    and removes files that the next start would remove. It never changes a byte of a batch.

    A killed broker leaves findings that its next start repairs by itself. They are counted too; the last line says
    how many they are.

    Exit code 0: no findings, or all were repaired. 1: findings are left. 2: a broker runs on the folder.

    \b
    barnabas doctor check --data-dir barnabas-data
    barnabas doctor check --data-dir /disk1 --data-dir /disk2 --repair
    """
    from barnabas.storage.check.repair import repair
    from barnabas.storage.files import OsFiles

    began = time.perf_counter()
    with ExitStack() as stack:
        for path in data_dirs:
            stack.enter_context(locked(path))
        checked = check_folders(data_dirs)
        if repairs:
            replacements = {path: data for report in checked.reports.values() for path, data in report.replacements.items()}
            checked.outcomes = repair(OsFiles(), checked.findings, replacements)
    elapsed = time.perf_counter() - began
    if output.as_json:
        output.json(_as_json(checked))
    else:
        _print(checked, elapsed)
    left = [outcome for outcome in checked.outcomes if not outcome.startswith("repaired")] if repairs else checked.findings
    return 1 if left else 0


def check_folders(paths: Sequence[Path]) -> Checked:
    """All findings in the data folders of one broker, sorted by file and position."""
    from barnabas.cluster.offline.check import check_topics, read_metadata
    from barnabas.storage.check.directory import check_checkpoints, check_together, read_data_folder, settle_moves
    from barnabas.storage.files import ReadingFiles

    files = ReadingFiles()
    folders = [read_data_folder(files, path) for path in paths]
    stored = [read_metadata(path) for path in paths]
    metadata = next((each for each in stored if each.exists), stored[0])
    ids = {name: topic.topic_id for name, topic in metadata.topics.items()}
    found = list(settle_moves(files, folders))
    work = [
        (key, path, folder.context(key, ids.get(key[0]), is_compacted=key[0] in metadata.compacted))
        for folder in folders
        for key, path in folder.partitions.items()
    ]
    reports = _check_all(work)
    checked = Checked(folders, metadata, reports, found)
    for folder in folders:
        found += folder.findings
        found += check_checkpoints(folder, reports)
    found += check_together(folders)
    for report in reports.values():
        found += report.findings
    found += metadata.findings
    found += check_topics(metadata, reports, folders)
    found.sort(key=lambda finding: (finding.path, finding.position or 0))
    return checked


Work = tuple["TopicPartition", Path, "PartitionContext"]


def _check_all(work: Sequence[Work]) -> dict[TopicPartition, PartitionReport]:
    sizes = {path: sum(file.stat().st_size for file in path.glob("*.log")) for _, path, _ in work}
    total = sum(sizes.values())
    # start with the largest, so that all processes end at about the same time
    work = sorted(work, key=lambda item: -sizes[item[1]])
    processes = min(os.cpu_count() or 1, MAX_PROCESSES, len(work)) if total >= SHARED_FROM_BYTES else 1
    with _progress_bar(total) as show:
        if processes <= 1:
            return _check_here(work, show)
        return _check_in_processes(work, processes, show)


def _check_here(work: Sequence[Work], show: Any) -> dict[TopicPartition, PartitionReport]:
    from barnabas.storage.check.partition import check_partition
    from barnabas.storage.files import ReadingFiles

    seen = 0

    def progress(size: int) -> None:
        nonlocal seen
        seen += size
        show(seen)

    return {key: check_partition(ReadingFiles(), path, context, progress) for key, path, context in work}


def _check_in_processes(work: Sequence[Work], processes: int, show: Any) -> dict[TopicPartition, PartitionReport]:
    spawning = multiprocessing.get_context("spawn")
    seen = spawning.Value("q", 0)
    reports = {}
    with ProcessPoolExecutor(processes, mp_context=spawning, initializer=_share, initargs=(seen,)) as pool:
        waiting = {pool.submit(_check_one, path, context): key for key, path, context in work}
        while waiting:
            done, _ = wait(waiting, PROGRESS_INTERVAL_S, FIRST_COMPLETED)
            show(seen.value)
            for future in done:
                reports[waiting.pop(future)] = future.result()
    return reports


_seen: Any = None  # in a worker process: the counter of bytes that all workers have checked
COUNT_STEP_BYTES = 4 * 1024 * 1024


def _share(seen: Any) -> None:
    global _seen
    die_with_parent()
    _seen = seen


def _check_one(path: Path, context: PartitionContext) -> PartitionReport:
    from barnabas.storage.check.partition import check_partition
    from barnabas.storage.files import ReadingFiles

    waiting = 0

    def progress(size: int) -> None:
        nonlocal waiting
        waiting += size
        if waiting >= COUNT_STEP_BYTES:
            with _seen.get_lock():
                _seen.value += waiting
            waiting = 0

    report = check_partition(ReadingFiles(), path, context, progress)
    with _seen.get_lock():
        _seen.value += waiting
    return report


@contextmanager
def _progress_bar(total: int) -> Iterator[Any]:
    """A function that takes the number of bytes done, for the progress bar."""
    if total < SHOWN_FROM_BYTES or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("checking"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)


def _print(checked: Checked, elapsed: float) -> None:
    outcomes = checked.outcomes or [""] * len(checked.findings)
    for finding, outcome in zip(checked.findings, outcomes, strict=True):
        click.echo(f"{finding} [{outcome}]" if outcome else str(finding))
    reports = checked.reports.values()
    size, records = sum(r.size_bytes for r in reports), sum(r.records for r in reports)
    left = sum(not outcome.startswith("repaired") for outcome in outcomes)
    state = "nothing is wrong" if not checked.findings else _counted(len(checked.findings), "finding")
    if checked.outcomes:
        state += f", {len(outcomes) - left} repaired"
    elif checked.findings:
        mended = sum(finding.mended for finding in checked.findings)
        of_them = "all" if mended == len(checked.findings) else str(mended) if mended else "none"
        state += f"; the next start repairs {of_them} of them"
    segments = sum(r.segments for r in reports)
    click.echo(
        f"{_counted(len(reports), 'partition')}, {_counted(segments, 'segment')}, {_counted(records, 'record')}, "
        f"{size / 1e6:.1f} MB checked in {elapsed:.1f} s: {state}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _as_json(checked: Checked) -> dict[str, Any]:
    outcomes: Sequence[str | None] = checked.outcomes or [None] * len(checked.findings)
    reports = checked.reports.values()
    return {
        "data_dirs": [str(folder.path) for folder in checked.folders],
        "clean_shutdown": all(folder.was_clean for folder in checked.folders),
        "partitions": len(reports),
        "segments": sum(r.segments for r in reports),
        "batches": sum(r.batches for r in reports),
        "records": sum(r.records for r in reports),
        "bytes": sum(r.size_bytes for r in reports),
        "findings": [
            {**finding.as_dict(), "line": str(finding), "outcome": outcome}
            for finding, outcome in zip(checked.findings, outcomes, strict=True)
        ],
    }
