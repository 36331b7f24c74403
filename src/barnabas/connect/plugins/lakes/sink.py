"""What the sinks of lake tables have in common: they gather rows, and commit them together with the offsets of their records.

Rules
  1. A commit of a table has the offsets behind its records, by connector, topic and partition. Rows that a table has by these offsets
     are left out, so records that come again after a kill, or in another task, do no harm.
  2. Offsets are read from the state of the table that the commit is checked against. If somebody else was first, both are done again.
  3. The group's offsets follow when all tables have what was gathered.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.api import Config, Identity, Sink
from barnabas.connect.errors import BadRecords, ConnectError, RetriableError
from barnabas.connect.plugins.lakes.fitting import Misfit, columns_of, fitted, lacking
from barnabas.connect.plugins.lakes.gathering import Gathering, Numbers, Place, Rows
from barnabas.connect.plugins.sql_sink.shape import Choice, keys_of, rows_of

logger = logging.getLogger(__name__)
NEEDED = ("topic", "partition", "offset", "value")
TRIES = 20  # of a commit that others were before; then the task pauses
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 1.0


class Overtaken(Exception):
    """Somebody else has changed the table meanwhile; nothing was written."""


class LakeTable(Protocol):
    """A table in the state in which it was opened."""

    @property
    def schema(self) -> pa.Schema: ...

    def add_columns(self, fields: Sequence[pa.Field[Any]]) -> None:
        """Add columns, or fields of structs. Raises Overtaken, ConnectError."""

    def offsets(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """The offsets that it has recorded for topic partitions."""

    def commit(self, rows: Rows, ends: Mapping[Place, int]) -> None:
        """Write rows and record offsets, both or none. Raises Overtaken, ConnectError."""


class LakeChoice(Choice, Protocol):
    """Settings that the sinks of lake tables have in common.

    Attributes:
        flush_size: rows after which a task commits.
        interval_s: the seconds after which it commits.
        most_bytes: that a task gathers.
        creates, evolves: whether tables and columns that are missing are made.
        upserts: whether the row with the same key is replaced.
        deletes: whether records without a value delete rows; `ignores_nulls`: whether they are left out.
    """

    flush_size: int
    interval_s: float
    most_bytes: int
    creates: bool
    evolves: bool
    upserts: bool
    deletes: bool
    ignores_nulls: bool


class LakeSink(Sink):
    """See the module. A sink opens tables, and says which records go into which ones."""

    choice: Any  # a LakeChoice, set by `open`

    def __init__(self) -> None:
        self._gathering = Gathering()
        self._schemas: dict[str, pa.Schema] = {}
        self.keys: dict[str, Sequence[str]] = {}  # the columns of the key by table, for sinks that replace rows
        self._begun_s: float | None = None

    @classmethod
    def tasks(cls, config: Config, most: int) -> list[Mapping[str, str]]:
        """The tasks share the partitions."""
        return [{}] * most

    def table(self, name: str) -> LakeTable | None:
        """Open a table; None if there is none. Raises ConnectError."""
        raise NotImplementedError

    def create(self, name: str, schema: pa.Schema) -> None:
        """Create a table, unless somebody else has. Raises ConnectError."""
        raise NotImplementedError

    def routes(self, records: pa.Table) -> Mapping[str, Numbers]:
        """The numbers of the records of each table. Raises BadRecords."""
        raise NotImplementedError

    def write(self, records: pa.Table, identity: Identity) -> None:
        if missing := [each for each in NEEDED if each not in records.column_names]:
            raise ConnectError(f"the transforms leave no column {missing[0]}, which the tables need")
        if records.num_rows:
            self._check(records)
        kept = self._kept(records)
        parts = {}
        for name, which in (self.routes(kept[0]) if kept[0].num_rows else {}).items():
            some = kept[0].take(pa.array(which, pa.int64())).combine_chunks()
            try:
                parts[name] = self._part(name, some)
            except Misfit as error:
                raise BadRecords(
                    {int(kept[1][which[row]]): f"{reason} ({name})" for row, reason in error.reasons.items()}
                ) from None
        if parts and self._begun_s is None:
            self._begun_s = time.monotonic()
        self._gathering.add(parts, identity.ranges)

    def _check(self, records: pa.Table) -> None:
        """Raises BadRecords for records that lack a key or a value which the config needs."""
        found: dict[int, str] = {}
        nulls = _nulls(records, "value")
        if nulls and not (self.choice.deletes or self.choice.ignores_nulls):
            found |= dict.fromkeys(nulls, "it has no value, which neither deletes a row nor is left out by the config")
        if self.choice.pk_mode == "record_key":
            found |= dict.fromkeys(_nulls(records, "key"), "it has no key, and pk.mode record_key needs one")
        if found:
            raise BadRecords(found)

    def _kept(self, records: pa.Table) -> tuple[pa.Table, Numbers]:
        """The records that make rows, and their numbers."""
        if self.choice.deletes or not records.column("value").null_count:
            return records, np.arange(records.num_rows)
        which = np.flatnonzero(records.column("value").is_valid().to_numpy())
        return records.take(pa.array(which, pa.int64())).combine_chunks(), which

    def _part(self, name: str, records: pa.Table) -> Rows:
        """The rows of records for a table, in its columns. Makes what the table lacks. Raises Misfit, ConnectError."""
        has_values = records.column("value").null_count < records.num_rows
        shaped = rows_of(records, self.choice) if has_values else None
        rows = keys_of(records, self.choice) if shaped is None else shaped.rows
        keys = tuple(rows.column_names) if shaped is None else tuple(shaped.keys)
        if self.choice.upserts:
            _refuse_null_keys(rows, keys)
            self.keys[name] = keys
        deletes = records.column("value").is_null().to_numpy()
        places: Any = zip(_source_topics(records), records.column("partition").to_pylist(), strict=True)
        return Rows(
            fitted(rows, self._prepared(name, rows.schema)),
            np.fromiter((self._gathering.number_of(each) for each in places), np.int64, records.num_rows),
            records.column("offset").to_numpy().astype(np.int64),
            deletes,
        )

    def _prepared(self, name: str, rows: pa.Schema) -> pa.Schema:
        """The schema of a table that has all columns of rows. Raises ConnectError."""
        schema = self._schemas.get(name)
        for _ in range(TRIES):
            if schema is not None and not lacking(rows, schema):
                break
            table = self.table(name)
            if table is None:
                self._create(name, rows)
                continue
            schema = table.schema
            if more := lacking(rows, schema):
                if not self.choice.evolves:
                    raise ConnectError(f"the table {name} has no column {_paths(more)[0]}; {self.evolving} adds it")
                try:
                    table.add_columns(more)
                except Overtaken:
                    continue
                logger.info("event=columns-added table=%s columns=%s", name, ",".join(_paths(more)))
                schema = None
        if schema is None:
            raise RetriableError(f"the table {name} is changed all the time")
        self._schemas[name] = schema
        return schema

    creating = evolving = ""  # the configs that let a sink create tables, and add columns

    def _create(self, name: str, rows: pa.Schema) -> None:
        if not self.choice.creates:
            raise ConnectError(f"there is no table {name}; {self.creating} creates it")
        columns = columns_of(rows)
        if not len(columns):
            raise ConnectError(f"the records have no field for the table {name}")
        self.create(name, columns)
        logger.info("event=table-created table=%s columns=%s", name, ",".join(columns.names))

    def pre_commit(self, offsets: Mapping[Place, int]) -> Mapping[Place, int]:
        if self._is_due():
            self.flush()
        return {place: self._gathering.durable(place, end) for place, end in offsets.items()}

    def _is_due(self) -> bool:
        gathering, choice = self._gathering, self.choice
        if not gathering.rows or self._begun_s is None:
            return False
        is_late: bool = time.monotonic() - self._begun_s >= choice.interval_s
        is_full: bool = gathering.rows >= choice.flush_size or gathering.size_bytes >= choice.most_bytes
        return is_late or is_full

    def flush(self) -> None:
        """Commit all that was gathered, table by table. Raises ConnectError; what is in its table then does not come again."""
        for name in list(self._gathering.tables):
            self._bring(name)
            self._gathering.written(name)
        self._begun_s = None

    def _bring(self, name: str) -> None:
        pause_s = FIRST_PAUSE_S
        ends = {place: self._gathering.ends[place] for place in self._gathering.places_of(name)}
        for _ in range(TRIES):
            table = self.table(name)
            if table is None:
                raise ConnectError(f"the table {name} is gone")
            known = {place: offset for place, offset in table.offsets(list(ends)).items() if offset > 0}
            rows = self._gathering.unwritten(name, known)
            if left := sum(len(each.offsets) for each in self._gathering.tables[name]) - rows.rows.num_rows:
                logger.info("event=rows-left-out table=%s count=%d reason=%r", name, left, "the table has their offsets")
            if not rows.rows.num_rows:
                return
            try:
                table.commit(
                    rows._replace(rows=fitted(rows.rows, table.schema)), {**ends, **_greater(known, ends)}
                )  # fmt: skip
            except Overtaken:
                time.sleep(random.uniform(0, pause_s))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            return
        raise RetriableError(f"others were first at each of {TRIES} commits of the table {name}")

    def close(self) -> None:
        """Records that wait come again: their offsets are not committed."""


def _greater(known: Mapping[Place, int], ends: Mapping[Place, int]) -> dict[Place, int]:
    """The offsets of a table that are ahead of what is to be written."""
    return {place: offset for place, offset in known.items() if offset > ends[place]}


def _nulls(records: pa.Table, name: str) -> list[int]:
    column: Any = records.column(name) if name in records.column_names else pa.nulls(records.num_rows)
    numbers: list[int] = np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist() if column.null_count else []
    return numbers


def _refuse_null_keys(rows: pa.Table, keys: Sequence[str]) -> None:
    """Raises Misfit for rows without a part of their key, which no row equals."""
    found = {row: f"the column {name} of its key is null" for name in keys for row in _nulls(rows, name)}
    if found:
        raise Misfit(found)


def _source_topics(records: pa.Table) -> list[Any]:
    """The topics that records were read from; transforms may have renamed them."""
    found: list[Any] = records.column("original_topic" if "original_topic" in records.column_names else "topic").to_pylist()
    return found


def _paths(fields: Sequence[pa.Field[Any]]) -> list[str]:
    found = []
    for each in fields:
        if pa.types.is_struct(each.type):
            found += [f"{each.name}.{below}" for below in _paths(list(each.type))]
        else:
            found.append(each.name)
    return found


def by_topic(records: pa.Table) -> dict[str, Numbers]:
    """The numbers of the records of each topic."""
    topics: Any = records.column("topic")
    found: list[str] = pc.unique(topics).to_pylist()
    if len(found) == 1:
        return {found[0]: np.arange(records.num_rows)}
    return {name: np.flatnonzero(pc.equal(topics, pa.scalar(name)).to_numpy(zero_copy_only=False)) for name in found}
