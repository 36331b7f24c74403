"""A query for plain columns of one row by its key, as it runs without DuckDB and without a thread.

It is a special case of `select.py`: `select.run` gives the same rows, and runs the query whenever something here is not at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from barnabas.client.config import ClientConfig
from barnabas.errors import BarnabasError
from barnabas.sql.catalog.topics import TopicRelation
from barnabas.sql.interface import Looks
from barnabas.sql.live.at_once import AtOnce, Question
from barnabas.sql.live.decoded import Made
from barnabas.sql.live.stored import Name
from barnabas.sql.live.tables import Followed, LiveTables, name_of
from barnabas.sql.planning.point import Point
from barnabas.sql.planning.query import QueryPlan, check_values
from barnabas.sql.writing.fitting import shown_labels
from barnabas.tables.column_types import mark_of
from barnabas.tables.formats import ColumnFormat
from barnabas.tables.json_encoding import text_of
from barnabas.tables.json_format import JsonFormat
from barnabas.tables.memory_scan import MemoryScan, can_be_made


class NotAtHand(Exception):
    """The general way must make the rows."""


class KeyRead:
    """Such a query. `of` makes it.

    Args:
        relation: that it reads.
        outputs: the columns that it asks for.
    """

    def __init__(self, plan: QueryPlan, relation: TopicRelation, outputs: Sequence[str]) -> None:
        self._plan, self.relation, self.schema = plan, relation, plan.schema
        self._names, self._outputs = tuple(plan.inputs[0].schema.names), tuple(outputs)
        self.kind = self._names, self._outputs, self.schema.serialize().to_pybytes()
        self._named: tuple[UUID, Name] | None = None
        self._json_names = _json_names(relation.layout.key, plan.point)

    @classmethod
    def of(cls, plan: QueryPlan) -> KeyRead | None:
        """The plan as such a query; None if it needs more."""
        point = plan.point
        if point is None or point.outputs is None or plan.changes:
            return None
        (made,) = plan.inputs
        relation = made.relation
        if not isinstance(relation, TopicRelation) or made.is_pending or relation.layout.mode != "permissive":
            return None
        return cls(plan, relation, point.outputs) if can_be_made(relation.layout, made.schema.names) else None

    def key(self, values: Sequence[Any]) -> bytes | None:
        """The key of the record; None if the values are not of the columns' types."""
        point = self._plan.point
        assert point is not None
        try:
            check_values(self._plan.parameters, values)
            found = point.key_values(values)
            if found is None:
                return None
            if self._json_names is not None:
                named = dict(zip([field.name for field, _, _ in point.values], found, strict=True))
                return text_of({name: named[name] for name in self._json_names})
            if len(found) == 1:
                field = point.values[0][0]
                payload = self.relation.layout.key.payload_of(field.name, found[0])
                if payload is not None:
                    return payload
            batch = point.key(values)
            return None if batch is None else _payload(self.relation.layout.key.encode(batch)[0])
        except (BarnabasError, pa.ArrowException, ValueError, OverflowError):
            return None

    def name(self, topic_id: UUID) -> Name:
        """Of the live table."""
        if self._named is None or self._named[0] != topic_id:
            self._named = topic_id, name_of(self.relation, topic_id)
        return self._named[1]

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of records, one of each. Raises NotAtHand."""
        table = MemoryScan(self.relation.topic, self.relation.layout, self._names, records).table()
        columns = [shown_labels(table.column(name), field) for name, field in zip(self._outputs, self.schema, strict=True)]
        if table.num_rows != records.num_rows or [each.type for each in columns] != self.schema.types:
            raise NotAtHand
        made = pa.Table.from_arrays(columns, schema=self.schema).combine_chunks()
        return made.to_batches()[0]


def _json_names(key: ColumnFormat, point: Point | None) -> Sequence[str] | None:
    """The names in a key that is a JSON object of these values as they are; None for other keys. Arrow would take ten times as long."""
    if point is None or not isinstance(key, JsonFormat) or any(mark_of(each) for each in key.fields):
        return None
    if not all(pt.is_signed_integer(each.type) or pt.is_string(each.type) for each in key.fields):
        return None
    names = [each.name for each in key.fields]
    return names if set(names) == {field.name for field, _, _ in point.values} else None


def _payload(scalar: Any) -> bytes | None:
    found: bytes | None = scalar.as_py()
    return found


class RowOfKey(msgspec.Struct, frozen=True):
    """A run of a `KeyRead`, with all that a look needs. It keeps the seam `OneRow`.

    Args:
        config: of the caller's clients.
        awaited: offsets that the rows must reach, by partition.
    """

    read: KeyRead
    key: bytes
    config: ClientConfig
    live: LiveTables
    followed: Followed
    topic_id: UUID
    awaited: Mapping[int, int]

    @property
    def schema(self) -> pa.Schema:
        return self.read.schema

    @property
    def kind(self) -> Hashable:
        return self.read.kind

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of records, one of each. Raises NotAtHand."""
        return self.read.rows(records)

    def ask(
        self, looks: Looks, kind: Hashable, make: Callable[[pa.RecordBatch], Sequence[bytes]], answer: Callable[[bool, Any], None]
    ) -> bool:
        """Whether `answer` will be called, in the event loop."""
        assert isinstance(looks, AtOnce)
        relation = self.read.relation
        look = looks.look(self.config, self.live, self.followed, relation.topic, self.topic_id)

        def made(records: pa.RecordBatch) -> Made:
            forms = make(records)
            return Made(forms, sum(map(len, forms)))

        return look is not None and look.ask(Question(self.key, self.awaited, relation.definition, kind, made, answer))
