"""Predicates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import ConfigError, Importance, Type
from barnabas.connect.java_patterns import java_pattern
from barnabas.connect.transforms.interface import Predicate, column
from barnabas.connect.validators import NonEmptyString

if TYPE_CHECKING:
    from barnabas.connect.converters.interface import Array


class TopicNameMatches(Predicate):
    """Is true for records whose topic fits to a regular expression."""

    config = ConfigDef().define(
        "pattern", Type.STRING, importance=Importance.MEDIUM, validator=NonEmptyString(),
        documentation="A regular expression that the whole name of the topic is compared with.",
    )  # fmt: skip

    def __init__(self, config: Mapping[str, Any]) -> None:
        try:
            self._pattern = java_pattern(config["pattern"])
        except re.error as error:
            raise ConfigError(f"Invalid value {config['pattern']} for configuration pattern: {error}") from None

    def matches(self, records: pa.Table) -> Array:
        topics: list[Any] = column(records, "topic").to_pylist()
        made: Array = pa.array([self._pattern.fullmatch(each) is not None for each in topics], pa.bool_())
        return made


class HasHeaderKey(Predicate):
    """Is true for records with a header of a name."""

    config = ConfigDef().define(
        "name", Type.STRING, importance=Importance.MEDIUM, validator=NonEmptyString(), documentation="The header name."
    )

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._name = config["name"]

    def matches(self, records: pa.Table) -> Array:
        lists = column(records, "headers").to_pylist()
        made: Array = pa.array([any(one["key"] == self._name for one in each or ()) for each in lists], pa.bool_())
        return made


class RecordIsTombstone(Predicate):
    """Is true for records without a value."""

    def matches(self, records: pa.Table) -> Array:
        made: Array = pc.is_null(column(records, "value"))
        return made
