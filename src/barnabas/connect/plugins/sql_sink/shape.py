"""From the records of one topic to the rows of its table: the columns of the primary key, and the fields of the value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.plugins.databases.database import RowsUnfit

types: Any = pa.types


class Choice(Protocol):
    """Which columns a table gets: where its primary key comes from, by the words of `pk.mode`, and the fields of values; none: all."""

    @property
    def pk_mode(self) -> str: ...
    @property
    def pk_fields(self) -> Sequence[str]: ...
    @property
    def whitelist(self) -> frozenset[str]: ...


class Shaped(NamedTuple):
    """Rows of a table.

    Args:
        rows: the columns of the key first.
        keys: names of the columns of the primary key.
    """

    rows: pa.Table
    keys: Sequence[str]


def runs_of(records: pa.Table) -> Iterator[tuple[pa.Table, bool]]:
    """The records in runs, in order: of records with values, and of records without one; whether the run has values."""
    valid: Any = pc.is_valid(records.column("value"))
    has_value = valid.combine_chunks()
    if has_value.true_count in {0, len(has_value)}:
        if len(has_value):
            yield records, bool(has_value.true_count)
        return
    flags = has_value.to_numpy(zero_copy_only=False)
    bounds = [0, *((flags[1:] != flags[:-1]).nonzero()[0] + 1).tolist(), len(flags)]
    for begin, end in pairwise(bounds):
        yield records.slice(begin, end - begin), bool(flags[begin])


def rows_of(records: pa.Table, settings: Choice, *, times: Sequence[str] = (), unit: Literal["us", "ns"] = "us") -> Shaped:
    """The rows of records that have values. Raises RowsUnfit.

    Args:
        times: fields whose numbers are times since the epoch, in the unit.
    """
    value = _objects(_chunk(records, "value"))
    if not types.is_struct(value.type):
        raise RowsUnfit(
            f"the sink needs values that are structs; the value of {_place(records)} is of the type {value.type}. "
            "Set value.converter to a converter with fields, such as JsonConverter"
        )
    fields = {each.name: value.field(each.name) for each in value.type}
    fields = {name: _masked(each, value) for name, each in fields.items()}
    for name in times:
        if name in fields and types.is_integer(fields[name].type):
            numbers = fields[name].cast(pa.int64())
            fields[name] = numbers.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp("us", "UTC"), safe=False)
    keys = _keys(records, settings, fields)
    whitelist = settings.whitelist
    columns = dict(keys)
    columns |= {name: each for name, each in fields.items() if name not in columns and (not whitelist or name in whitelist)}
    if not columns:
        raise RowsUnfit(f"the record {_place(records)} has no fields for its table")
    return Shaped(pa.table(columns), tuple(keys))


def _objects(value: Any) -> Any:
    """Texts of JSON objects as structs, which a converter makes of a batch that has other values too. Others stay as they are."""
    if not types.is_string(value.type):
        return value
    try:
        parsed = [None if each is None else msgspec.json.decode(each) for each in value.to_pylist()]
        return pa.array(parsed) if all(each is None or isinstance(each, dict) for each in parsed) else value
    except (msgspec.DecodeError, pa.ArrowException, OverflowError):
        return value


def keys_of(records: pa.Table, settings: Choice) -> pa.Table:
    """The keys of the rows that records without values delete. Raises RowsUnfit."""
    return pa.table(_keys(records, settings, {}))


def _chunk(records: pa.Table, name: str) -> Any:
    column: Any = records.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _masked(field: Any, struct: Any) -> Any:
    """A field of a struct, null where the struct is null."""
    return field if struct.null_count == 0 else pc.if_else(pc.is_valid(struct), field, pa.scalar(None, field.type))


def _keys(records: pa.Table, settings: Choice, fields: dict[str, Any]) -> dict[str, Any]:
    match settings.pk_mode:
        case "none":
            return {}
        case "kafka":
            columns = ("topic", "partition", "offset")
            return {name: _chunk(records, each) for name, each in zip(settings.pk_fields, columns, strict=True)}
        case "record_value":
            return _chosen(records, settings, fields, "value")
    key = _chunk(records, "key")
    if types.is_struct(key.type):
        of_key = {each.name: _masked(key.field(each.name), key) for each in key.type}
        found = _chosen(records, settings, of_key, "key")
    elif len(settings.pk_fields) != 1:
        raise RowsUnfit(
            f"the key of {_place(records)} is of the type {key.type}: pk.fields needs exactly one name for its column; "
            f"it has {list(settings.pk_fields)}"
        )
    else:
        found = {settings.pk_fields[0]: key}
    return found


def _chosen(records: pa.Table, settings: Choice, fields: dict[str, Any], part: str) -> dict[str, Any]:
    wanted = settings.pk_fields or tuple(fields)
    if missing := [name for name in wanted if name not in fields]:
        raise RowsUnfit(f"pk.fields names {missing[0]}, which the {part} of {_place(records)} lacks; it has {list(fields)}")
    return {name: fields[name] for name in wanted}


def _place(records: pa.Table) -> str:
    topic, partition, offset = (records.column(name)[0].as_py() for name in ("topic", "partition", "offset"))
    return f"{topic}-{partition} offset {offset}"
