"""The source of files: watches a folder or a bucket, and brings each file into a topic once."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from barnabas.connect.api import Batch, Config, Offset, Source
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.plugins.files import source_config
from barnabas.connect.plugins.files.places import opened
from barnabas.connect.plugins.files.progress import PATH, Progress, progress_of
from barnabas.connect.plugins.files.reading import Part, Reading
from barnabas.connect.plugins.files.selection import Selection, place_of
from barnabas.connect.plugins.files.source_config import DELETE, MOVE
from barnabas.connect.plugins.files.storage import Changed, Entry, Storage
from barnabas.connect.plugins.files.table_formats import Avro, Parquet

logger = logging.getLogger(__name__)


class FileSource(Source):
    """Reads the files of a folder or of an object store, each once.

    The offset of a file is in `progress.py`. A finished file is moved or deleted when its records are in the log for good.
    """

    families: ClassVar[tuple[str, ...]] = ("store.",)
    config = source_config.CONFIG
    has_struct_keys: ClassVar[bool] = False  # whether a key of one field is a struct too

    def __init__(self) -> None:
        self._closed = False
        self._known: dict[str, Progress] = {}  # by address
        self._tidied: deque[str] = deque()  # addresses of files that were moved or deleted, whose offsets are not needed any more

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """Each task reads the files whose name has its number by a checksum."""
        return [{"task.number": str(number), "task.count": str(most)} for number in range(most)]

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        return source_config.errors(config)

    @classmethod
    def check_offset(cls, config: Mapping[str, str], partition: Mapping[str, Any], offset: Offset | None) -> None:
        if set(partition) != {PATH} or not isinstance(partition[PATH], str):
            raise ConnectError('the partition of a file is {"path": its full name}')
        position = 0 if offset is None else offset.get("position")
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise ConnectError('the offset of a file is {"position": a number from 0 on}')

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        place = place_of(config["input.path"], recursive=config["input.path.walk.recursively"])
        self._storage = opened(place.root, config)
        self._policy = config["cleanup.policy"].upper()
        self._finished, self._failed = (_target(config, key) for key in ("finished.path", "error.path"))
        self._halts = config["halt.on.error"]
        self._known = {
            partition[PATH]: progress_of(partition[PATH], offset) for partition, offset in offsets if PATH in partition
        }
        self._names: dict[str, str] = {}
        self._keys = config["key.fields"]
        committed = {address for address, each in self._known.items() if each.is_done}
        selection = source_config.selection_of(config, _excluded(self._storage, [self._finished, self._failed]))
        reading = Reading(
            self._storage, config["file.buffer.size.bytes"], config["follow"], config["file.minimum.age.ms"]
        )  # fmt: skip
        form = source_config.format_of(config)
        pause_s = config["empty.poll.wait.ms"] / 1000
        while not self._closed:
            while self._tidied:
                yield self._forgotten(self._tidied[0])
                self._tidied.popleft()
            listed_s = time.monotonic()
            has_news = False
            for entry in selection.of(self._listed(selection)):
                if self._closed:
                    return
                address = self._storage.address(entry.name)
                self._names[address] = entry.name
                if address in committed:
                    committed.discard(address)
                    self._tidy_left(address, entry)
                if address in self._tidied:
                    continue  # it is another file already: its offset must be forgotten first
                for batch in self._batches(reading, form, entry):
                    has_news = True
                    yield batch
            while not has_news and not self._closed and time.monotonic() < listed_s + pause_s:
                yield None
            yield None

    def _listed(self, selection: Selection) -> Sequence[Entry]:
        try:
            return list(self._storage.entries(recursive=selection.place.is_recursive))
        except RetriableError as error:
            logger.warning("event=listing-failed reason=%r", str(error))
            return []

    def _batches(self, reading: Reading, form: Any, entry: Entry) -> Iterator[Batch]:
        address = self._storage.address(entry.name)
        known = self._known.get(address)
        if known is not None and known.fits(entry) and (known.is_done or (reading.follows and known.position >= entry.size)):
            return
        if isinstance(form, (Avro, Parquet)) and not reading.is_old(entry):
            return
        position = -1 if known is None else known.position
        try:
            parts = reading.rows(form, entry, known) if isinstance(form, (Avro, Parquet)) else reading.lines(form, entry, known)
            for part in parts:
                if self._closed:
                    return
                if part.bad and not self._halts:
                    raise ConnectError(part.bad[0][1])
                if part.progress.position != position or part.progress.is_done:
                    yield self._batch(address, part)
                position = part.progress.position
        except Changed as error:
            logger.info("event=file-changed reason=%r", str(error))  # the next listing has it as it is
        except RetriableError as error:
            logger.warning("event=file-not-read reason=%r", str(error))
        except ConnectError as error:
            if self._halts:
                raise ConnectError(f"{address} cannot be read: {error}") from None
            logger.error("event=file-set-aside file=%r reason=%r", address, str(error))
            yield self._batch(address, Part(None, Progress(max(position, 0), entry, is_done=True, failed=str(error)), []))
        except OSError as error:
            raise ConnectError(f"{address} cannot be read: {error.strerror}") from None

    def _batch(self, address: str, part: Part) -> Batch:
        progress = self._known[address] = part.progress
        bad = [(line, f"{address} {reason}") for line, reason in part.bad]
        records = part.records
        if records is not None and self._keys:
            records = with_key(records, self._keys, is_struct=self.has_struct_keys or len(self._keys) > 1)
        return Batch(
            [] if records is None else records, progress.offset, {PATH: address}, is_records=records is not None,
            rejected=bad,
        )  # fmt: skip

    def _forgotten(self, address: str) -> Batch:
        self._known.pop(address, None)
        self._names.pop(address, None)
        return Batch([], {}, {PATH: address}, forgets=True)

    def committed(self, partition: Mapping[str, Any], offset: Offset) -> None:
        if offset["done"] and partition[PATH] in self._names:
            self._tidy(partition[PATH], failed=offset.get("failed") is not None)

    def _tidy(self, address: str, *, failed: bool) -> None:
        """Move or delete a file whose records are in the log. Raises ConnectError."""
        name = self._names[address]
        if failed:
            assert self._failed is not None
            self._storage.move(name, self._failed)
        elif self._policy == MOVE:
            assert self._finished is not None
            self._storage.move(name, self._finished)
        elif self._policy == DELETE:
            self._storage.delete(name)
        else:
            return
        self._tidied.append(address)

    def _tidy_left(self, address: str, entry: Entry) -> None:
        """Tidy up a file that was finished before the task began, unless it has changed since."""
        known = self._known[address]
        if known.fits(entry):
            self._tidy(address, failed=known.failed is not None)

    def close(self) -> None:
        self._closed = True


def with_key(records: pa.Table, names: Sequence[str], *, is_struct: bool) -> pa.Table:
    """Records whose key has these fields of the value. Raises ConnectError for a field that is not there."""
    if not records.num_rows:
        return records
    value: Any = records.column("value").combine_chunks()
    there = [each.name for each in value.type] if pa.types.is_struct(value.type) else []
    if missing := [each for each in names if each not in there]:
        raise ConnectError(f"key.fields has {missing[0]}; the fields are {', '.join(there) or 'none'}")
    fields = [value.field(each) for each in names]
    return records.append_column("key", pa.StructArray.from_arrays(fields, list(names)) if is_struct else fields[0])


def _target(config: Config, key: str) -> Storage | None:
    return opened(config[key], config) if config[key] else None


def _excluded(storage: Storage, targets: Sequence[Storage | None]) -> list[str]:
    """Beginnings of names of files that were moved below the watched place itself."""
    root = storage.address("")
    found = [each.address("") for each in targets if each is not None]
    return [each.removeprefix(root) for each in found if each.startswith(root) and each != root]
