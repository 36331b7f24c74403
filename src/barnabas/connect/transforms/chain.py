"""The transforms of a connector, in their order, each for the records that its predicate lets through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.catalog import Kind, UnknownPlugin, find
from barnabas.connect.config_types import ConfigError
from barnabas.connect.converters.header_converters import SIMPLE, HeaderConverter
from barnabas.connect.converters.unions import joined
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.interface import Predicate, Transform

NAMES = ("transforms", "predicates")


class _Step(NamedTuple):
    transform: Transform
    predicate: Predicate | None
    is_negated: bool


class Chain:
    """See the module.

    Args:
        config: of the connector. Raises ConfigError.
        headers: writes the values of headers that transforms make.
    """

    def __init__(self, config: Mapping[str, str], headers: HeaderConverter = SIMPLE) -> None:
        predicates = {alias: made_of(config, "predicates", alias, Kind.PREDICATE) for alias in aliases_of(config, "predicates")}
        self._steps = []
        for alias in aliases_of(config, "transforms"):
            wanted = config.get(f"transforms.{alias}.predicate")
            if wanted is not None and wanted not in predicates:
                raise ConfigError(
                    f"Invalid value {wanted} for configuration transforms.{alias}.predicate: The predicate must be one of the "
                    f"predicates that are defined, {', '.join(predicates) or 'and there are none'}"
                )
            negated = config.get(f"transforms.{alias}.negate", "false").strip().lower() == "true"
            predicate = None if wanted is None else predicates[wanted]
            transform = made_of(config, "transforms", alias, Kind.TRANSFORMATION)
            transform.headers = headers
            self._steps.append(_Step(transform, predicate, negated))

    def __bool__(self) -> bool:
        return bool(self._steps)

    def apply(self, records: pa.Table) -> pa.Table:
        """The records behind all transforms. Raises ConnectError."""
        for step in self._steps:
            if not records.num_rows:
                break
            try:
                records = _applied(step, records.combine_chunks())
            except (OverflowError, pa.ArrowException) as error:  # such as a time beyond the years that Python has
                raise ConnectError(f"{type(step.transform).__name__} cannot change a value: {error}") from error
        return records


def aliases_of(config: Mapping[str, str], key: str) -> list[str]:
    """The aliases in a list such as `transforms`."""
    return [each.strip() for each in config.get(key, "").split(",") if each.strip()]


def made_of(config: Mapping[str, str], key: str, alias: str, kind: Kind) -> Any:
    """The transform or predicate of an alias. Raises ConfigError."""
    prefix = f"{key}.{alias}."
    name = config.get(f"{prefix}type")
    if name is None:
        raise ConfigError(f'Missing required configuration "{prefix}type" which has no default value.')
    try:
        cls = find(name, [kind]).load()
    except UnknownPlugin as error:
        raise ConfigError(f"Invalid value {name} for configuration {prefix}type: {error}") from None
    own = {each.removeprefix(prefix): value for each, value in config.items() if each.startswith(prefix)}
    return cls(cls.config.parse(own))


def _applied(step: _Step, records: pa.Table) -> pa.Table:
    if step.predicate is None:
        return step.transform.apply(records)
    mask: Any = step.predicate.matches(records)
    if step.is_negated:
        mask = pc.invert(mask)
    true = pc.sum(mask).as_py() or 0
    if true == records.num_rows:
        return step.transform.apply(records)
    if not true:
        return records
    changed, kept = step.transform.apply(records.filter(mask)), records.filter(pc.invert(mask))
    if changed.num_rows == true:
        places = [*_places(mask), *_places(pc.invert(mask))]
        return _joined(changed, kept).take(pc.sort_indices(pa.array(places))).combine_chunks()
    return _joined(changed, kept).combine_chunks() if changed.num_rows else kept


def _places(mask: Any) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found


def _joined(one: pa.Table, other: pa.Table) -> pa.Table:
    """Records of two forms as one table: a struct has the fields of both."""
    try:
        return joined([one, other])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        rows: Any = pa.array([*one.to_pylist(), *other.to_pylist()])  # with the columns of both
        return pa.Table.from_struct_array(rows)
