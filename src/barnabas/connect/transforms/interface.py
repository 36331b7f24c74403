"""What a transform and a predicate are, and what those of fields have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Type
from barnabas.connect.converters.header_converters import SIMPLE, HeaderConverter
from barnabas.connect.converters.json_schema import WITHOUT_SCHEMA
from barnabas.connect.errors import ConnectError

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array, Metadata

    Field = pa.Field[Any]


REPLACE_NULL: Mapping[str, Any] = {
    "name": "replace.null.with.default", "type": Type.BOOLEAN, "default": True,
    "documentation": "Without effect: the converter's key of this name says it.",
}  # fmt: skip


class Transform:
    """Changes records.

    Attributes:
        config: the definitions of its keys.
        side: the column that it changes, `key` or `value`, for one with both variants.
        headers: writes the values of headers that it makes.
        runs_code_of_users: whether making it runs code that a config names; then only a task makes it.
    """

    config: ClassVar[ConfigDef] = ConfigDef()
    side: ClassVar[str] = "value"
    headers: HeaderConverter = SIMPLE
    runs_code_of_users: ClassVar[bool] = False

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises ConfigError, ConnectError for a config that cannot work."""

    def apply(self, records: pa.Table) -> pa.Table:
        """Records of the form in `connect/api.py`, whose columns have one chunk each. Raises ConnectError."""
        raise NotImplementedError


class FieldTransform(Transform):
    """Changes the keys or values of records. Null ones stay null."""

    def apply(self, records: pa.Table) -> pa.Table:
        return with_column(records, self.side, self.changed(column(records, self.side), records), self.metadata(records))

    def metadata(self, records: pa.Table) -> Metadata:
        """That of the changed column."""
        return metadata_of(records, self.side)

    def changed(self, values: Array, records: pa.Table) -> Array:
        """The column in its other form."""
        raise NotImplementedError


class Predicate:
    """Says which records a transform gets."""

    config: ClassVar[ConfigDef] = ConfigDef()

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises ConfigError."""

    def matches(self, records: pa.Table) -> Array:
        """A boolean for each record."""
        raise NotImplementedError


def column(records: pa.Table, name: str) -> Array:
    """A column as one array; nulls if the records lack it."""
    if name not in records.column_names:
        return pa.nulls(records.num_rows)
    chunks: Any = records.column(name)
    found: Array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
    return found


def metadata_of(records: pa.Table, name: str) -> Metadata:
    """What the schema of a column has beside its type, such as a name (`json_schema.py`)."""
    return records.schema.field(name).metadata if name in records.column_names else None


def has_schema(records: pa.Table, name: str) -> bool:
    """Whether the fields of a column are those of a schema, not those that its records happen to have."""
    return WITHOUT_SCHEMA not in (metadata_of(records, name) or {})


def with_column(records: pa.Table, name: str, values: Array, metadata: Metadata = None) -> pa.Table:
    """The records with a column set or added, and its metadata."""
    field = pa.field(name, values.type, metadata=dict(metadata) if metadata else None)
    if name in records.column_names:
        return records.set_column(records.column_names.index(name), field, values)
    return records.append_column(field, values)


def fields_of(values: Array, purpose: str) -> dict[str, Array]:
    """The fields of a column of structs, by name. Raises ConnectError for another type."""
    if pa.types.is_null(values.type):
        return {}
    if not pa.types.is_struct(values.type):
        raise ConnectError(f"Only Struct objects supported for [{purpose}], found: {values.type}")
    structs: Any = values
    return dict(zip([each.name for each in structs.type], structs.flatten(), strict=True))


def struct_of(fields: Mapping[str, Array], like: Array, kinds: Mapping[str, Field] | None = None) -> Array:
    """A column of structs, null where another column is null.

    Args:
        like: fields that keep their names and types also keep whether they may be null, and their metadata.
        kinds: those of other fields; else they may be null.
    """
    mask: Any = pc.is_null(like)
    known = {**fields_by_name(like.type), **(kinds or {})}
    made: Array
    if not fields:
        made = pa.array([None if each else {} for each in mask.to_pylist()], pa.struct([]))
    else:
        made = pa.StructArray.from_arrays(
            list(fields.values()), fields=[_kind(name, each, known) for name, each in fields.items()], mask=mask
        )
    return made


def fields_by_name(kind: Any) -> dict[str, Field]:
    """The fields of a type; none of one that is no struct."""
    return {each.name: each for each in kind} if pa.types.is_struct(kind) else {}


def _kind(name: str, values: Array, known: Mapping[str, Field]) -> Field:
    field = known.get(name)
    if field is None:
        return pa.field(name, values.type)
    return pa.field(name, values.type, field.nullable, field.metadata if field.type == values.type else None)


def no_values(count: int, kind: Any) -> Array:
    """A column of nulls."""
    made: Array = pa.nulls(count, kind)
    return made


def mapped(values: Array, change: Callable[[Any], Any], kind: pa.DataType) -> Array:
    """Each value that is not null, changed one by one."""
    made: Array = pa.array([None if each is None else change(each) for each in values.to_pylist()], kind)
    return made
