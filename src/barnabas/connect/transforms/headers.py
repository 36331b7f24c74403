"""Transforms of headers, whose values `header.converter` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.converters.connect_texts import parsed
from barnabas.connect.converters.header_converters import HEADERS
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import (
    REPLACE_NULL,
    Transform,
    column,
    fields_of,
    has_schema,
    metadata_of,
    struct_of,
    with_column,
)
from barnabas.connect.validators import NonEmptyList, NonNull, UniqueList, one_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Lists = list[list[dict[str, Any]]]


def _lists(records: pa.Table) -> Lists:
    return [list(each or ()) for each in column(records, "headers").to_pylist()]


def _with(records: pa.Table, lists: Iterable[Any]) -> pa.Table:
    return with_column(records, "headers", pa.array(list(lists), HEADERS))


class InsertHeader(Transform):
    """Adds a header with a constant."""

    config = (
        ConfigDef()
        .define("header", Type.STRING, importance=Importance.HIGH, validator=NonNull(), documentation="The name of the header.")
        .define(
            "value.literal",
            Type.STRING,
            importance=Importance.HIGH,
            validator=NonNull(),
            documentation="The literal value of the header.",
        )
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name, self._value = config["header"], parsed(config["value.literal"])

    def apply(self, records: pa.Table) -> pa.Table:
        header = {"key": self._name, "value": self.headers.encode(self._value.column, "")[0].as_py()}
        return _with(records, ([*each, header] for each in _lists(records)))


class DropHeaders(Transform):
    """Removes headers by name."""

    config = ConfigDef().define(
        "headers",
        Type.LIST,
        importance=Importance.HIGH,
        validator=UniqueList(may_be_empty=False),
        documentation="The name of the headers to be removed.",
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._names = set(config["headers"])
        if not self._names:
            raise ConfigError("Invalid value [] for configuration headers: Empty list")

    def apply(self, records: pa.Table) -> pa.Table:
        return _with(records, ([one for one in each if one["key"] not in self._names] for each in _lists(records)))


class HeaderFrom(Transform):
    """Copies or moves fields of the key or value to headers."""

    config = (
        ConfigDef()
        .define(
            "fields", Type.LIST, importance=Importance.HIGH, validator=NonEmptyList(),
            documentation="Field names whose values become headers.",
        )
        .define(
            "headers", Type.LIST, importance=Importance.HIGH, validator=NonEmptyList(),
            documentation="Header names, in the order of the fields.",
        )
        .define(
            "operation", Type.STRING, importance=Importance.HIGH, validator=one_of("move", "copy"),
            documentation="Whether the fields stay in the record: copy, or not: move.",
        )
        .define(**REPLACE_NULL)
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._pairs = list(zip(config["fields"], config["headers"], strict=False))
        self._moves = config["operation"] == "move"
        if not config["fields"]:
            raise ConfigError("Invalid value [] for configuration fields: Empty list")
        if len(config["fields"]) != len(config["headers"]):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")

    def apply(self, records: pa.Table) -> pa.Table:
        values = column(records, self.side)
        fields = fields_of(values, "header from")
        lists = _lists(records)
        for field, header in self._pairs:
            if field not in fields and has_schema(records, self.side) and fields:
                raise ConnectError(f"Field does not exist: {field}")
            found = fields.get(field, pa.nulls(records.num_rows))
            for row, value in enumerate(self.headers.encode(found, "").to_pylist()):
                lists[row].append({"key": header, "value": value})
        if self._moves:
            moved = {field for field, _ in self._pairs}
            kept = {name: each for name, each in fields.items() if name not in moved}
            records = with_column(records, self.side, struct_of(kept, values), metadata_of(records, self.side))
        return _with(records, lists)
