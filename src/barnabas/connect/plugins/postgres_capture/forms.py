"""The forms of PostgreSQL's values in records, as Debezium has them: from columns of texts to columns of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.converters.json_text import two_complement
from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.debezium.table_columns import Filling, decimal_parameters
from barnabas.connect.plugins.postgres_capture import texts, times
from barnabas.connect.plugins.postgres_capture.settings import Settings

if TYPE_CHECKING:
    Array = pa.Array[Any]

Convert = Callable[[Any], Any]
DATA = "io.debezium.data."
VARIABLE = pa.struct([pa.field("scale", pa.int32(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
POINT = pa.struct([
    pa.field("x", pa.float64(), nullable=False), pa.field("y", pa.float64(), nullable=False), pa.field("wkb", pa.binary()),
    pa.field("srid", pa.int32()),
])  # fmt: skip
WKB = Struct("<BIdd")  # of a point
EXACT = Context(prec=150_000)  # PostgreSQL's numeric has at most 147,455 digits
MOST_DIGITS = 76  # of Arrow's decimals


class PgType(NamedTuple):
    """A type of the database.

    Args:
        name: in the catalog, without its schema; of a domain that of its base.
        modifier: length or precision; -1 for none.
        is_enum: whether it is an enumeration.
        element: of an array.
        labels: of an enumeration.
    """

    name: str
    modifier: int = -1
    is_enum: bool = False
    element: PgType | None = None
    labels: tuple[str, ...] = ()


class Form(NamedTuple):
    """The form of a column.

    Args:
        kind: its type.
        convert: from texts, as PostgreSQL writes them.
        name: of its schema in Kafka Connect.
        placeholder: the text for a large value that is not sent; None: null.
        nothing: the text that stands for a value of a required column that is not there; None: as `nothing_of` has it.
        parameters: of its schema.
    """

    kind: Any
    convert: Convert
    name: str | None = None
    placeholder: str | None = None
    nothing: str | None = None
    parameters: Mapping[str, str] | None = None


def form_of(of: PgType, settings: Settings) -> Form:
    """The form of a type. Types that are not known here are texts, as PostgreSQL writes them."""
    if of.element is not None:
        return _array(form_of(of.element._replace(modifier=of.modifier), settings), settings)
    if of.is_enum:
        return Form(pa.string(), _same, f"{DATA}Enum", parameters={"allowed": ",".join(of.labels)})
    if of.name in _SIMPLE:
        return _SIMPLE[of.name]
    if made := _FACTORIES.get(of.name):
        return made(of, settings)
    return Form(pa.string(), _same, _TEXT_NAMES.get(of.name), settings.placeholder)


def _same(column: Any) -> Any:
    return column


def _cast(kind: Any) -> Form:
    return Form(kind, lambda column: column.cast(kind))


_SIMPLE: Mapping[str, Form] = {
    "int2": _cast(pa.int16()), "int4": _cast(pa.int32()), "int8": _cast(pa.int64()), "oid": _cast(pa.int64()),
    "float4": _cast(pa.float32()), "float8": _cast(pa.float64()),
    "bool": Form(pa.bool_(), lambda column: pc.equal(column, pa.scalar("t"))),
}  # fmt: skip
_TEXT_NAMES = {
    "json": f"{DATA}Json", "jsonb": f"{DATA}Json", "uuid": f"{DATA}Uuid", "xml": f"{DATA}Xml", "ltree": f"{DATA}Ltree",
    "tsvector": f"{DATA}Tsvector",
}  # fmt: skip


def _numeric(of: PgType, settings: Settings) -> Form:
    if settings.decimals == "string":
        return Form(pa.string(), _same, None, settings.placeholder)
    if settings.decimals == "double":
        return _cast(pa.float64())
    precision, scale = (of.modifier - 4) >> 16 & 0xFFFF, ((of.modifier - 4 & 0x7FF) ^ 1024) - 1024
    if of.modifier < 0 or precision > MOST_DIGITS or not 0 <= scale <= precision:
        number = int.from_bytes(settings.placeholder.encode(), "big", signed=True)
        return Form(VARIABLE, _variable, f"{DATA}VariableScaleDecimal", str(number), "0")
    return _decimal(precision, scale)


def _decimal(precision: int, scale: int) -> Form:
    kind: Any = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return Form(kind, lambda column: _exact(column, kind), parameters=decimal_parameters(kind))


def _exact(column: Any, kind: Any) -> Any:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise _no_number(column, error) from None


def _variable(column: Any) -> Array:
    found: list[dict[str, Any] | None] = []
    for each in column.to_pylist():
        if each is None:
            found.append(None)
            continue
        number = Decimal(each)
        if not number.is_finite():
            raise _no_number(column, each)
        scale = max(0, -int(number.normalize(EXACT).as_tuple().exponent))
        unscaled = int(number.scaleb(scale, EXACT))
        found.append({"scale": scale, "value": two_complement(unscaled)})
    return pa.array(found, VARIABLE)


def _no_number(column: Any, reason: object) -> ConnectError:
    odd = [each for each in column.to_pylist() if each is not None and not Decimal(each).is_finite()]
    shown = odd[0] if odd else reason
    return ConnectError(f"decimals have no {shown} with decimal.handling.mode=precise: set it to string or double")


def _money(_of: PgType, settings: Settings) -> Form:
    inner = _numeric(PgType("numeric", (19 << 16 | 2) + 4), settings)
    convert = inner.convert
    return inner._replace(convert=lambda column: convert(pc.replace_substring_regex(column, "[$,]", "")), parameters=None)


def _bytea(_of: PgType, settings: Settings) -> Form:
    return Form(pa.binary(), _bytes, None, f"\\x{settings.placeholder.encode().hex()}")


def _bytes(column: Any) -> Array:
    return pa.array([None if each is None else bytes.fromhex(each[2:]) for each in column.to_pylist()], pa.binary())


def _point(_of: PgType, _settings: Settings) -> Form:
    return Form(POINT, _points, f"{DATA}geometry.Point", nothing="(0,0)")


def _points(column: Any) -> Array:
    found = [None if each is None else [float(part) for part in each[1:-1].split(",")] for each in column.to_pylist()]
    return pa.array(
        [None if each is None else {"x": each[0], "y": each[1], "wkb": WKB.pack(1, 1, *each)} for each in found], POINT
    )


def _bits(of: PgType, _settings: Settings) -> Form:
    if of.name == "bit" and of.modifier == 1:
        return Form(pa.bool_(), lambda column: pc.equal(column, pa.scalar("1")))

    def convert(column: Any) -> Array:
        values = column.to_pylist()
        packed = [None if each is None else int(each or "0", 2).to_bytes(-(-len(each) // 8), "little") for each in values]
        return pa.array(packed, pa.binary())

    return Form(pa.binary(), convert, f"{DATA}Bits", parameters=None if of.modifier < 0 else {"length": str(of.modifier)})


def _hstore(_of: PgType, settings: Settings) -> Form:
    def convert(column: Any) -> Array:
        values = [None if each is None else texts.pairs(each) for each in column.to_pylist()]
        return pa.array([None if each is None else msgspec.json.encode(each).decode() for each in values], pa.string())

    return Form(pa.string(), convert, f"{DATA}Json", f'"{settings.placeholder}"=>""', "")


def _time(of: PgType, settings: Settings) -> Form:
    return Form(*times.form(of.name, of.modifier, settings.times, settings.intervals))


_FACTORIES: Mapping[str, Callable[[PgType, Settings], Form]] = {
    "numeric": _numeric, "money": _money, "bytea": _bytea, "bit": _bits, "varbit": _bits, "hstore": _hstore, "point": _point,
    **dict.fromkeys(("date", "time", "timetz", "timestamp", "timestamptz", "interval"), _time),
}  # fmt: skip


def _array(element: Form, settings: Settings) -> Form:
    kind: Any = pa.list_(Filling().field("item", element.kind, element.name, element.parameters))

    def convert(column: Any) -> Array:
        lists = [None if each is None else texts.elements(each) for each in column.to_pylist()]
        flat = pa.array([each for some in lists if some is not None for each in some], pa.string())
        ends, at = [0], 0
        for each in lists:
            at += 0 if each is None else len(each)
            ends.append(at)
        mask = pa.array([each is None for each in lists], pa.bool_())
        offsets: Any = pa.array(ends, pa.int32())
        return pa.ListArray.from_arrays(offsets, element.convert(flat), type=kind, mask=mask)

    placeholder = element.placeholder
    if pa.types.is_integer(element.kind) or pa.types.is_floating(element.kind):
        placeholder = ",".join(str(each) for each in settings.placeholder.encode())
    elif placeholder is not None:
        placeholder = '"' + placeholder.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return Form(kind, convert, None, None if placeholder is None else f"{{{placeholder}}}")
