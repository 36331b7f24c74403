"""`TimestampConverter`: times as texts, numbers and Kafka Connect's types Date, Time and Timestamp."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import REPLACE_NULL, FieldTransform, fields_of, no_values, struct_of
from barnabas.connect.transforms.java_texts import date_text, strptime_form
from barnabas.connect.validators import one_of

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
DAY_MS = 86_400_000
LARGEST = 2**63 - 1  # of 64 bits, at which numbers stay that would be larger
MS_OF = {
    "seconds": (1_000, 1),
    "milliseconds": (1, 1),
    "microseconds": (1, 1_000),
    "nanoseconds": (1, 1_000_000),
}  # numerator, denominator
KINDS: Mapping[str, pa.DataType] = {
    "string": pa.string(), "unix": pa.int64(), "Date": pa.date32(), "Time": pa.time32("ms"), "Timestamp": pa.timestamp("ms", "UTC"),
}  # fmt: skip


def utc(moment: datetime.datetime) -> datetime.datetime:
    """A time with its zone; one without a zone is in UTC."""
    return moment.astimezone(datetime.UTC) if moment.tzinfo is not None else moment.replace(tzinfo=datetime.UTC)


class TimestampConverter(FieldTransform):
    """See the module."""

    config = (
        ConfigDef()
        .define("field", Type.STRING, "", importance=Importance.HIGH, documentation="The field of the time; empty: the whole.")
        .define(
            "target.type", Type.STRING, importance=Importance.HIGH, validator=one_of(*KINDS),
            documentation="The desired representation of the time.",
        )
        .define("format", Type.STRING, "", documentation="Format of SimpleDateFormat of a text that is read or written.")
        .define(
            "unix.precision", Type.STRING, "milliseconds", importance=Importance.LOW, validator=one_of(*MS_OF),
            documentation="The unit of a number.",
        )
        .define(**REPLACE_NULL)
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._field, self._target, self._form = config["field"], config["target.type"], config["format"]
        self._unit = MS_OF[config["unix.precision"]]
        if self._target == "string" and not self._form:
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        if self._form:
            date_text(EPOCH, self._form)  # raises for a format that it does not know

    def changed(self, values: Array, records: pa.Table) -> Array:
        if not self._field:
            return self._converted(values)
        fields = fields_of(values, "converting timestamp formats")
        if self._field not in fields:
            return values
        fields[self._field] = self._converted(fields[self._field])
        return struct_of(fields, values)

    def _converted(self, values: Array) -> Array:
        if pa.types.is_null(values.type):
            return no_values(len(values), KINDS[self._target])
        made: Array = pa.array([None if each is None else self._out(each) for each in self._since_epoch_ms(values)], pa.int64())
        return self._texts(made) if self._target == "string" else _as(made, KINDS[self._target])

    def _since_epoch_ms(self, values: Array) -> list[int | None]:
        kind: Any = values.type
        if pa.types.is_temporal(kind):
            return since_epoch(values).to_pylist()
        if pa.types.is_integer(kind):
            return [None if each is None else _scaled(each, *self._unit) for each in values.to_pylist()]
        if pa.types.is_string(kind):
            reading = strptime_form(self._form) if self._form else ""
            return [None if each is None else self._read(each, reading) for each in values.to_pylist()]
        raise ConnectError(f"TimestampConverter does not support values of the type {kind} as timestamps")

    def _read(self, text: str, reading: str) -> int:
        try:
            return (utc(_parsed(text, reading)) - EPOCH) // datetime.timedelta(milliseconds=1)
        except ValueError:
            raise ConnectError(f"Could not parse timestamp: value ({text}) does not match pattern ({self._form})") from None

    def _out(self, since_ms: int) -> int:
        match self._target:
            case "unix":
                return _scaled(since_ms, *reversed(self._unit))
            case "Date":
                return since_ms // DAY_MS
            case "Time":
                return since_ms % DAY_MS
        return since_ms

    def _texts(self, values: Array) -> Array:
        try:
            texts = [
                None if each is None else date_text(EPOCH + datetime.timedelta(milliseconds=each), self._form)
                for each in values.to_pylist()
            ]
        except OverflowError:
            raise ConnectError("a timestamp is outside the years 1 to 9999") from None
        return pa.array(texts, pa.string())


def since_epoch(values: Array) -> Array:
    """Times, days and times of day as milliseconds since 1970."""
    kind: Any = values.type
    if pa.types.is_timestamp(kind):
        values = pc.floor_temporal(values, 1, "millisecond") if kind.unit in {"us", "ns"} else values
        return values.cast(pa.timestamp("ms", kind.tz)).cast(pa.int64())
    if pa.types.is_date(kind):
        return pc.multiply(values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64()), DAY_MS)
    return values.cast(pa.time32("ms"), safe=False).cast(pa.int32()).cast(pa.int64())


def moment_of(value: Any, form: str) -> datetime.datetime:
    """A time: a text in a format, milliseconds since 1970, or a time. Raises ConnectError."""
    match value:
        case datetime.datetime():
            return utc(value)
        case int() if not isinstance(value, bool):
            return EPOCH + datetime.timedelta(milliseconds=value)
        case str():
            try:
                return utc(_parsed(value, strptime_form(form)))
            except ValueError:
                raise ConnectError(f"Could not parse timestamp: value ({value}) does not match pattern ({form})") from None
    raise ConnectError(f"a timestamp is a text or a number of milliseconds; it is {value!r}")


def _as(values: Array, kind: pa.DataType) -> Array:
    """Milliseconds or days since 1970 as a type. Raises ConnectError."""
    try:
        if pa.types.is_date32(kind) or pa.types.is_time32(kind):
            values = values.cast(pa.int32())
    except pa.ArrowInvalid as error:
        raise ConnectError(f"a timestamp is out of range: {error}") from None
    made: Array = values.cast(kind)
    return made


def _scaled(value: int, numerator: int, denominator: int) -> int:
    """A number in another unit, without its rest, and of 64 bits at most, as Java's TimeUnit has it."""
    found = abs(value) * numerator // denominator * (1 if value >= 0 else -1)
    return max(-LARGEST - 1, min(LARGEST, found))


def _parsed(text: str, reading: str) -> datetime.datetime:
    """A time at the begin of a text; what follows does not matter, as in SimpleDateFormat. Raises ValueError."""
    if not reading:
        raise ValueError(text)
    try:
        return datetime.datetime.strptime(text, reading)  # noqa: DTZ007 - the caller adds the zone
    except ValueError as error:
        rest = str(error).removeprefix("unconverted data remains: ")
        if rest == str(error) or not text.endswith(rest):
            raise
        return datetime.datetime.strptime(text.removesuffix(rest), reading)  # noqa: DTZ007 - the caller adds the zone
