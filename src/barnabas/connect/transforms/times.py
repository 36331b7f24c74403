"""`TimestampConverter`: times as texts, numbers and Kafka Connect's types Date, Time and Timestamp."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import FieldTransform, fields_of, struct_of
from barnabas.connect.transforms.java_texts import date_text, strptime_form
from barnabas.connect.validators import one_of

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
PER_SECOND = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
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
            "unix.precision", Type.STRING, "milliseconds", importance=Importance.LOW, validator=one_of(*PER_SECOND),
            documentation="The unit of a number.",
        )
        .define("replace.null.with.default", Type.BOOLEAN, True, documentation="Has no effect here: columns have no defaults.")
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._field, self._target, self._form = config["field"], config["target.type"], config["format"]
        self._unit = PER_SECOND[config["unix.precision"]]
        if self._target == "string" and not self._form:
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        self._reading = strptime_form(self._form) if self._form else ""

    def changed(self, values: Array, records: pa.Table) -> Array:
        if not self._field:
            return self._converted(values)
        fields = fields_of(values, "converting timestamp formats")
        if fields:
            if self._field not in fields:
                raise ConnectError(f"Unknown field: {self._field}")
            fields[self._field] = self._converted(fields[self._field])
        return struct_of(fields, values) if fields else values

    def _converted(self, values: Array) -> Array:
        made: Array = pa.array(
            [None if each is None else self._out(self._in(each)) for each in values.to_pylist()], KINDS[self._target]
        )
        return made

    def _in(self, value: Any) -> datetime.datetime:
        match value:
            case datetime.datetime():
                return utc(value)
            case datetime.date():
                return datetime.datetime.combine(value, datetime.time(), datetime.UTC)
            case datetime.time():
                return datetime.datetime.combine(EPOCH.date(), value, datetime.UTC)
            case int() if not isinstance(value, bool):
                return EPOCH + datetime.timedelta(microseconds=value * 1_000_000 // self._unit)
            case str() if self._reading:
                try:
                    return utc(datetime.datetime.strptime(value, self._reading))  # noqa: DTZ007 - the zone is added
                except ValueError:
                    raise ConnectError(
                        f"Could not parse timestamp: value ({value}) does not match pattern ({self._form})"
                    ) from None
        raise ConnectError(f"Unexpected value for a timestamp: {value!r}")

    def _out(self, moment: datetime.datetime) -> Any:
        match self._target:
            case "string":
                return date_text(moment, self._form)
            case "unix":
                since = moment - EPOCH
                return (since // datetime.timedelta(microseconds=1)) * self._unit // 1_000_000
            case "Date":
                return moment.date()
            case "Time":
                return moment.time().replace(microsecond=moment.microsecond // 1000 * 1000)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
