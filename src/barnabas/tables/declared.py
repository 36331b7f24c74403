"""The columns of a table from the words that a user gives."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.schemas.errors import SchemaDataError
from barnabas.tables.column_types import Field, json_field
from barnabas.tables.declaration import declared
from barnabas.tables.errors import TableError
from barnabas.tables.formats import ColumnFormat, Raw
from barnabas.tables.registered_format import RegisteredFormat, newest
from barnabas.tables.row_names import KEY_WORD, RowNames
from barnabas.tables.scan import EXTRA_FIELDS, KEY, META_FIELDS, MODES, Columns

FORMATS = ("raw", "text", "json", "avro", "protobuf", "json_schema", "auto")
_OBJECT = re.compile(r"\s*json\s*\((.*)\)\s*", re.DOTALL | re.IGNORECASE)
_SCHEMA_TYPES = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}
Declaration = str | pa.Schema | Sequence[Field]


def columns_of(
    topic: str,
    *,
    format: str = "raw",  # noqa: A002 - the word that users write
    columns: Declaration | None = None,
    key: Declaration | None = None,
    registry: RegistryAddress | str | None = None,
    mode: str = "permissive",
) -> Columns:
    """The columns of a table.

    Args:
        format: of values. `raw` and `text` give one column `value`, of bytes or of text. `json` gives the declared columns; without a
            declaration, one column `value` of JSON text. `avro`, `protobuf`, `json_schema`: the newest schema of the subject
            `TOPIC-value` gives the columns. `auto`: that schema if there is a registry and the subject; else `raw`.
        columns: a text such as `id bigint, name text`, or Arrow fields.
        key: `raw` (the default, a column `_key` of bytes), `text` (a column `_key` of text), `registered` (the newest schema of the
            subject `TOPIC-key`; a schema without fields gives one column `_key`), or a declaration: one column takes the whole key,
            several columns are fields of a JSON object. `json (id bigint)`: a JSON object, also of one column. `row`: of a table of SQL
            without a primary key, whose rows have names in the column `_row`.
        registry: a URL, or an address with settings.
        mode: of records that do not fit: `permissive`, `drop` or `fail`.

    Raises:
        TableError: the words do not fit each other.
        RegistryError, RegistryUnreachable: the registry gave no answer.
    """
    if format not in FORMATS:
        raise TableError(f"the format is {format!r}; it can be {', '.join(FORMATS)}")
    if mode not in MODES:
        raise TableError(f"the mode is {mode!r}; it can be {', '.join(MODES)}")
    made = Columns(_key_format(topic, key, registry), _value_format(topic, format, _fields(columns), registry), mode)
    _check_names(made)
    return made


def _value_format(topic: str, name: str, fields: Sequence[Field] | None, registry: RegistryAddress | str | None) -> ColumnFormat:
    if name == "json":
        return one_value(json_field("value")) if fields is None else json_object(fields)
    if fields is not None:
        raise TableError(f"columns are declared, and the format is {name}; only json takes declared columns")
    if name == "text":
        return Raw("value", pa.string())
    if name == "raw" or (name == "auto" and registry is None):
        return Raw("value")
    return _registered(topic, name, _address(registry, f"the format {name}"))


def _address(registry: RegistryAddress | str | None, what: str) -> RegistryAddress:
    if registry is None:
        raise TableError(f"{what} cannot be read without the URL of a schema registry")
    return RegistryAddress(registry) if isinstance(registry, str) else registry


def _registered(topic: str, name: str, address: RegistryAddress, *, is_key: bool = False) -> ColumnFormat:
    try:
        schema = newest(address, topic, is_key=is_key)
    except SchemaDataError as error:
        if name == "auto" and not is_key:
            return Raw("value")
        raise TableError(f"the format {name} needs a schema: {error}") from None
    if name not in ("auto", _SCHEMA_TYPES.get(schema.schema_type)):
        raise TableError(f"the format is {name}, and the newest schema of {topic}-value is {_SCHEMA_TYPES[schema.schema_type]}")
    try:
        return RegisteredFormat(address, schema, is_key=is_key, name="_key" if is_key else "value")
    except SchemaDataError as error:
        raise TableError(f"the schema of {topic}-value gives no columns: {error}") from None


def _key_format(topic: str, key: Declaration | None, registry: RegistryAddress | str | None) -> ColumnFormat:
    if key is None or key == "raw":
        return Raw("_key")
    if key == "text":
        return Raw("_key", pa.string())
    if key == KEY_WORD:
        return RowNames()
    if key == "registered":
        return _registered(topic, "auto", _address(registry, "keys with schemas"), is_key=True)
    found = _OBJECT.fullmatch(key) if isinstance(key, str) else None
    return key_format(_fields(key) or []) if found is None else json_object(declared(found[1]))


def key_format(fields: Sequence[Field]) -> ColumnFormat:
    """One column takes the whole key; several are fields of a JSON object."""
    return one_value(fields[0]) if len(fields) == 1 else json_object(fields)


def one_value(field: Field) -> ColumnFormat:
    """A `ScalarFormat`, whose kernels are imported now. Raises TableError."""
    from barnabas.tables.scalar_format import ScalarFormat

    return ScalarFormat(field)


def json_object(fields: Sequence[Field]) -> ColumnFormat:
    """A `JsonFormat`, whose kernels are imported now. Raises TableError."""
    from barnabas.tables.json_format import JsonFormat

    return JsonFormat(fields)


def _fields(declaration: Declaration | None) -> Sequence[Field] | None:
    if declaration is None or not isinstance(declaration, str):
        return None if declaration is None else list(declaration)
    return declared(declaration) if declaration else []


def _check_names(columns: Columns) -> None:
    seen: set[str] = {field.name for field in (*META_FIELDS, *EXTRA_FIELDS)}
    seen |= {KEY} if columns.has_row_names else set()
    for field in (*columns.value.fields, *columns.key.fields):
        if field.name in seen:
            raise TableError(
                f"there are two columns {field.name}; each table has {', '.join(each.name for each in META_FIELDS)} too"
            )
        seen.add(field.name)
