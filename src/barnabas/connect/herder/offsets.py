"""Offsets of connectors: what requests about them mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from barnabas.connect.herder import errors

TOPIC, PARTITION, OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
Item = tuple[Any, Any]  # partition and offset
Place = tuple[str, int]


def items_of(body: Any) -> list[Item]:
    """Partitions and offsets of the body of a request. Raises HttpError 400, 500."""
    if not isinstance(body, dict):
        raise errors.unusable("the body is no object with offsets")
    if unknown := sorted(body.keys() - {"offsets"}):
        raise errors.unusable(f'Unrecognized field "{unknown[0]}", not marked as ignorable (one known property: "offsets")')
    listed = body.get("offsets")
    if not listed:
        raise errors.bad(errors.NOTHING_TO_ALTER)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise errors.unusable("offsets is a list of objects with partition and offset")
    for each in listed:
        if unknown := sorted(each.keys() - {"partition", "offset"}):
            raise errors.unusable(f'Unrecognized field "{unknown[0]}", not marked as ignorable')
        for name in ("partition", "offset"):
            if not isinstance(each.get(name), dict | None):
                raise errors.unusable(f"the {name} of an offset is an object")
    return [(each.get("partition"), each.get("offset")) for each in listed]


def sink_offsets(items: Sequence[Item]) -> dict[Place, int | None]:
    """Offsets by topic and partition; None removes one. Raises HttpError 400."""
    found: dict[Place, int | None] = {}
    for partition, offset in items:
        if partition is None:
            raise errors.bad("The partition for a sink connector offset cannot be null or missing")
        if partition.get(TOPIC) is None or partition.get(PARTITION) is None:
            raise errors.bad(f"The partition for a sink connector offset must contain the keys '{TOPIC}' and '{PARTITION}'")
        number = _number(partition[PARTITION])
        if number is None:
            raise errors.bad(
                f"Failed to parse the following Kafka partition value in the provided offsets: '{partition[PARTITION]}'. "
                "Partition values for sink connectors need to be integers."
            )
        place = str(partition[TOPIC]), number
        if offset is None:
            found[place] = None
            continue
        if offset.get(OFFSET) is None:
            raise errors.bad(f"The offset for a sink connector should either be null or contain the key '{OFFSET}'")
        value = _number(offset[OFFSET])
        if value is None:
            raise errors.bad(
                f"Failed to parse the following Kafka offset value in the provided offsets: '{offset[OFFSET]}'. "
                "Offset values for sink connectors need to be integers."
            )
        found[place] = value
    return found


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if len(text) < 20 and text.removeprefix("-").isascii() and text.removeprefix("-").isdecimal() else None


def shown_of_sink(offsets: Mapping[Place, int]) -> list[dict[str, Any]]:
    """Offsets of a sink as the REST interface has them."""
    return [
        {"partition": {PARTITION: partition, TOPIC: topic}, "offset": {OFFSET: offset}}
        for (topic, partition), offset in sorted(offsets.items())
    ]


def keys_of_source(records: Mapping[str, Any], connector: str) -> dict[str, Any]:
    """The keys of the records of a connector's offsets, with the partition of each."""
    found = {}
    for key in records:
        try:
            decoded = json.loads(key)
        except ValueError:
            continue
        match decoded:
            case [str(name), dict() as partition] if name == connector:
                found[key] = partition
    return found


def shown_of_source(records: Mapping[str, Any], connector: str) -> list[dict[str, Any]]:
    """Offsets of a source as the REST interface has them."""
    keys = keys_of_source(records, connector)
    return [{"partition": partition, "offset": records[key]} for key, partition in keys.items() if records[key] is not None]


def source_changes(records: Mapping[str, Any], connector: str, items: Sequence[Item]) -> dict[str, Any]:
    """The records that change; None deletes one. A partition that is known keeps its key."""
    known = {_canonical(partition): key for key, partition in keys_of_source(records, connector).items()}
    changes = {}
    for partition, offset in items:
        key = known.get(_canonical(partition))
        if key is None and offset is None:
            continue
        changes[key or msgspec.json.encode([connector, partition]).decode()] = offset
    return changes


def _canonical(partition: Mapping[str, Any]) -> str:
    return json.dumps(partition, sort_keys=True)
