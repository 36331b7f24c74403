"""`barnabas log dump`: the contents of a data folder's files, read without a broker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from barnabas.cli.errors import BadInput
from barnabas.cli.lazy import HELP_OPTIONS
from barnabas.cli.output import Output, output_option, print_fields, report_failures
from barnabas.cli.records import OUTPUT_FORMAT, printer_for
from barnabas.cli.types import FilePath
from barnabas.digits import INT64, is_number

if TYPE_CHECKING:
    from barnabas.cli.dump import PartitionFolder

PARTITION_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "bytes": "BYTES", "start_offset": "START", "end_offset": "END",
                     "high_watermark": "HIGH WATERMARK", "recovery_point": "RECOVERY POINT", "count": "SEGMENTS"}  # fmt: skip
SEGMENT_COLUMNS = {"segment": "SEGMENT", "bytes": "BYTES", "batches": "BATCHES", "records": "RECORDS", "first_offset": "FIRST",
                   "last_offset": "LAST", "max_timestamp": "LATEST TIMESTAMP", "codecs": "CODECS", "index_entries": "INDEX",
                   "time_index_entries": "TIME INDEX"}  # fmt: skip
BATCH_COLUMNS = {"position": "POSITION", "bytes": "BYTES", "base_offset": "FIRST", "last_offset": "LAST", "records": "RECORDS",
                 "codec": "CODEC", "timestamp_type": "TIME", "max_timestamp": "LATEST TIMESTAMP", "leader_epoch": "LEADER EPOCH",
                 "producer_id": "PRODUCER", "producer_epoch": "EPOCH", "base_sequence": "SEQUENCE", "kind": "KIND",
                 "crc": "CRC"}  # fmt: skip
OFFSET_COLUMNS = {"offset": "OFFSET", "position": "POSITION"}
TIME_COLUMNS = {"timestamp": "TIMESTAMP", "offset": "OFFSET"}
PRODUCER_COLUMNS = {"producer_id": "PRODUCER", "epoch": "EPOCH", "last_sequence": "LAST SEQUENCE", "last_offset": "LAST OFFSET",
                    "transaction_first_offset": "OPEN SINCE"}  # fmt: skip
EPOCH_COLUMNS = {"epoch": "LEADER EPOCH", "start_offset": "START OFFSET"}
CHECKPOINT_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "offset": "OFFSET"}


@click.group(context_settings=HELP_OPTIONS)
def log() -> None:
    """Show the files of a data folder."""


@log.command("dump")
@click.argument("paths", nargs=-1, required=True, type=FilePath(exists=True, path_type=Path), metavar="PATH...")
@click.option("--batches", is_flag=True, help="For partitions and .log files: every batch.")
@click.option("--records", is_flag=True, help="For partitions and .log files: every record.")
@click.option("-f", "--format", "format_name", type=OUTPUT_FORMAT, default="%o %T %k %v\\n", show_default=True,
              metavar="text|json|hex|TEMPLATE",
              help="Output format of --records, as in consume.")  # fmt: skip
@click.option("--skip-crc", is_flag=True, help="Do not check the CRC of the batches.")
@output_option
def dump(output: Output, paths: tuple[Path, ...], batches: bool, records: bool, format_name: str, skip_crc: bool) -> int:
    """Show the contents of data folders, partition folders or single files.

    Changes nothing and needs no broker. For a data folder it shows the partitions, for a partition the segments, for a .log
    file the batches, and for .index, .timeindex, .snapshot and checkpoint files the entries. Exit code 1 means that the files
    are not consistent.

    \b
    barnabas log dump data/
    barnabas log dump data/flights-0 --records --format json
    """
    if batches and records:
        raise click.UsageError("--batches and --records exclude each other")
    problems: list[str] = []
    for path in paths:
        if records:
            _print_records(path, "json" if output.as_json else format_name)
        elif batches or path.suffix == ".log":
            problems += _dump_batches(output, path, check_crc=not skip_crc)
        elif path.is_dir():
            problems += _dump_folder(output, path, check_crc=not skip_crc)
        else:
            problems += _dump_file(output, path)
    return report_failures(problems)


def _dump_folder(output: Output, path: Path, *, check_crc: bool) -> list[str]:
    from barnabas.cli import dump

    partition = dump.open_partition_folder(path)
    if partition is not None:
        described = partition.describe(check_crc=check_crc)
        if output.as_json:
            output.json(described)
        else:
            _print_partition(output, described)
        return [f"{path}: {problem}" for problem in described["problems"]]
    if not dump.is_data_folder(path):
        raise BadInput(f"{path} is neither a data folder nor a partition's")
    described = dump.describe_data_folder(path, check_crc=check_crc)
    if output.as_json:
        output.json(described)
    else:
        _print_data_folder(output, described)
    return [f"{path}: {problem}" for problem in described["problems"]]


def _print_data_folder(output: Output, described: dict[str, Any]) -> None:
    print_fields({**described["meta"], "shut down cleanly": described["clean_shutdown"]})
    if described["pending_deletes"]:
        print_fields({"still to be deleted": described["pending_deletes"]})
    rows = [{**p, "count": len(p["segments"])} for p in described["partitions"]]
    output.table(rows, PARTITION_COLUMNS, empty="no partitions")


def _print_partition(output: Output, described: dict[str, Any]) -> None:
    print_fields({name: described[name] for name in ("topic", "partition", "topic_id", "start_offset", "end_offset", "bytes")})
    output.table(described["segments"], SEGMENT_COLUMNS, empty="no segments")
    if described["leader_epochs"]:
        output.table(described["leader_epochs"], EPOCH_COLUMNS)
    for snapshot in described["snapshots"]:
        output.table(
            snapshot["producers"], PRODUCER_COLUMNS, title=snapshot["snapshot"], empty=f"{snapshot['snapshot']}: no producers"
        )


def _segments(path: Path) -> list[Path]:
    from barnabas.cli import dump

    if path.suffix == ".log":
        return [path]
    partition: PartitionFolder | None = dump.open_partition_folder(path)
    if partition is None:
        raise BadInput(f"{path} is neither a partition's folder nor a .log file")
    return partition.segment_paths()


def _dump_batches(output: Output, path: Path, *, check_crc: bool) -> list[str]:
    from barnabas.cli import dump

    problems: list[str] = []
    for segment_path in _segments(path):
        segment = dump.read_segment(segment_path, check_crc=check_crc)
        rows = [_batch_row(batch) for batch in segment.batches]
        if output.as_json:
            output.json({"segment": str(segment_path), "batches": rows, "problems": segment.problems})
        else:
            output.table(rows, BATCH_COLUMNS, title=str(segment_path), empty=f"{segment_path}: no batches")
        problems += [f"{segment_path}: {problem}" for problem in segment.problems]
    return problems


def _batch_row(batch: Any) -> dict[str, Any]:
    from barnabas.cli.dump import codec_name

    header = batch.header
    kind = "control" if header.is_control else "transaction" if header.is_transactional else None
    produced = header.producer_id >= 0
    return {
        "position": batch.position,
        "bytes": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "codec": codec_name(header),
        "timestamp_type": "append" if header.has_log_append_time else "create",
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.partition_leader_epoch,
        "producer_id": header.producer_id if produced else None,
        "producer_epoch": header.producer_epoch if produced else None,
        "base_sequence": header.base_sequence if produced else None,
        "kind": kind,
        "crc": "ok" if batch.crc_matches else "wrong",
    }


class StoredRecord(NamedTuple):
    """A record of a file, with the methods of confluent_kafka's Message that the printers of `consume` call."""

    folder: str
    stored: Any
    has_log_append_time: bool

    def topic(self) -> str:
        return self.folder.rpartition("-")[0]

    def partition(self) -> int:
        return int(self.folder.rpartition("-")[2])

    def offset(self) -> int:
        return int(self.stored.offset)

    def key(self) -> bytes | None:
        return None if self.stored.key is None else bytes(self.stored.key)

    def value(self) -> bytes | None:
        return None if self.stored.value is None else bytes(self.stored.value)

    def headers(self) -> list[tuple[str, bytes | None]]:
        return list(self.stored.headers)

    def timestamp(self) -> tuple[int, int]:
        return (2 if self.has_log_append_time else 1), self.stored.timestamp


def _print_records(path: Path, format_name: str) -> None:
    printer = printer_for(format_name, key_separator=None, null_marker=None)
    for segment_path in _segments(path):
        for record in _records_of(segment_path):
            sys.stdout.buffer.write(printer(record))
    sys.stdout.buffer.flush()


def _records_of(path: Path) -> Iterator[StoredRecord]:
    """The records that clients wrote to a segment, without transaction markers."""
    from barnabas.cli import dump
    from barnabas.protocol.records.record import iterate_records

    folder = path.resolve().parent.name
    segment = dump.read_segment(path)
    with dump.mapped(path) as data:
        for batch in segment.batches:
            if not batch.header.is_control and batch.crc_matches:
                for record in iterate_records(data, batch.position):
                    yield StoredRecord(folder, record, batch.header.has_log_append_time)


def _dump_file(output: Output, path: Path) -> list[str]:
    """Print an index, snapshot or checkpoint file; returns its problems."""
    from barnabas.cli import dump
    from barnabas.errors import CorruptLog

    try:
        rows, columns = _rows_of(path)
    except CorruptLog as error:
        return [str(error)]
    output.table(rows, columns, title=None if output.as_json else str(path), empty=f"{path}: empty")
    log_path = path.with_suffix(".log")
    if path.suffix in {".index", ".timeindex"} and log_path.exists():
        return [f"{log_path}: {problem}" for problem in dump.read_segment(log_path).problems]
    return []


def _rows_of(path: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from barnabas.cli import dump
    from barnabas.storage import checkpoints
    from barnabas.storage.files import OsFiles

    files = OsFiles()
    if path.suffix in {".index", ".timeindex"} and is_number(path.stem, INT64):
        base = int(path.stem)
        if path.suffix == ".index":
            return [
                {"offset": base + key, "position": p} for key, p in dump.read_entries(path, dump.OFFSET_ENTRY)
            ], OFFSET_COLUMNS
        return [{"timestamp": t, "offset": base + key} for t, key in dump.read_entries(path, dump.TIME_ENTRY)], TIME_COLUMNS
    if path.suffix == ".snapshot":
        return dump.read_snapshot(path), PRODUCER_COLUMNS
    if path.name == checkpoints.LEADER_EPOCHS:
        return [{"epoch": e, "start_offset": o} for e, o in checkpoints.read_leader_epochs(files, path)], EPOCH_COLUMNS
    if path.name in dump.CHECKPOINTS.values():
        offsets = checkpoints.read_offsets(files, path)
        return [{"topic": t, "partition": p, "offset": o} for (t, p), o in sorted(offsets.items())], CHECKPOINT_COLUMNS
    raise BadInput(f"{path} is not a file of a log; those are .log, .index, .timeindex, .snapshot and the checkpoints")
