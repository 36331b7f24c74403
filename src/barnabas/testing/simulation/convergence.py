"""Checks that a cluster without faults has converged, and that its replicas are equal.

At rest means: all brokers serve and have the same metadata. Every partition has a leader, and all its replicas are in sync and
complete. No move is in progress, and no broker has a log without being a replica.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.protocol.records.batch import BatchHeader, Record, iterate_records, split_batches
from barnabas.storage.markers import parse_marker
from barnabas.storage.segment import LOG_SUFFIX
from barnabas.storage.startup_scan import STRAY_FOLDER
from barnabas.testing.simulation.history import Violation

if TYPE_CHECKING:
    from barnabas.cluster.metadata.image import MetadataImage, Topic
    from barnabas.testing.simulation.node import Node

FOLDER = re.compile(r"(?P<topic>.+)-(?P<index>\d+)")
Contents = Mapping[int, tuple[bytes | None, bytes | None]]  # offset -> key and value


def unrest(nodes: Sequence[Node]) -> str:
    """The reason why the cluster is not at rest; "" if it is at rest."""
    image, reason = _common_image(nodes)
    if image is None:
        return reason
    brokers = {node.number: node.process.broker for node in nodes if node.process is not None}
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if state.leader < 0 or state.is_moving or set(state.isr) != set(state.replicas):
                return f"{topic.name}-{index} is {state}"
            ends = {}
            for replica in state.replicas:
                found = brokers[replica].partitions.get(topic.name, index)
                if found is None or found.is_offline or found.topic_id != topic.topic_id:
                    return f"{topic.name}-{index} is not there on broker {replica}"
                ends[replica] = found.log.log_end_offset, found.high_watermark
            if len({end for pair in ends.values() for end in pair}) > 1:
                return f"{topic.name}-{index} has these ends and high watermarks: {ends}"
    return ""


def is_at_rest(nodes: Sequence[Node]) -> bool:
    """Whether the cluster is at rest, as the module defines it."""
    return not unrest(nodes)


def _common_image(nodes: Sequence[Node]) -> tuple[MetadataImage | None, str]:
    """The image that all brokers share. None and the reason if images differ or a broker is down."""
    first: MetadataImage | None = None
    for node in nodes:
        if node.process is None or node.process.files.dead or not node.process.broker.ready:
            return None, f"{node.host} is not there"
        image = node.process.broker.metadata
        member = node.process.broker.member
        if member is None or member.is_down or len(image.brokers) < len(nodes):
            return None, f"{node.host} is down, or misses somebody"
        first = first or image
        for what in ("topics", "brokers", "configs", "controller_id", "deletions"):
            if getattr(image, what) != getattr(first, what):
                return None, f"{node.host} knows other {what}: {getattr(image, what)} instead of {getattr(first, what)}"
    return first, ""


def stray_folders(nodes: Sequence[Node]) -> list[str]:
    """Logs on the disks of brokers that are not replicas of the partition.

    Logs that lost their topic id in a power cut are left out, also those that were renamed because their name was used again.
    An operator must decide about them: they may be of an earlier topic with the same name.
    """
    found = []
    for node in nodes:
        assert node.process is not None, "at rest"
        image, logs = node.process.broker.metadata, node.process.broker.logs
        for folder in sorted({path.parent.name for path, _ in node.disk.files() if path.suffix == LOG_SUFFIX}):
            if STRAY_FOLDER.fullmatch(folder):
                continue
            match = FOLDER.fullmatch(folder)
            state = None if match is None else image.partition(match["topic"], int(match["index"]))
            log = None if match is None else logs.get(match["topic"], int(match["index"]))
            if log is not None and log.topic_id is None:
                continue
            if state is None or node.number not in state.replicas:
                found.append(f"{node.host}:{folder}")
    return found


def compare_replicas(nodes: Sequence[Node]) -> None:
    """Check that all replicas are equal: every record from the highest of their log start offsets on, or the last record of
    each key in a compacted topic. Raises Violation."""
    image, reason = _common_image(nodes)
    assert image is not None, reason
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            compacted = _is_compacted(nodes[0], topic.name)
            copies = {number: _contents(nodes[number - 1], topic.name, index, compacted=compacted) for number in state.replicas}
            _compare(f"{topic.name}-{index}", copies, _start(nodes, topic, index), compacted=compacted)


def _is_compacted(node: Node, topic: str) -> bool:
    assert node.process is not None, "at rest"
    return "compact" in node.process.broker.controller.topic_config(topic).cleanup_policy


def _start(nodes: Sequence[Node], topic: Topic, index: int) -> int:
    starts = []
    for number in topic.partitions[index].replicas:
        process = nodes[number - 1].process
        found = None if process is None else process.broker.partitions.get(topic.name, index)
        assert found is not None, "at rest"
        assert not found.is_offline, "at rest"
        starts.append(found.log.log_start_offset)
    return max(starts)


def _contents(node: Node, topic: str, index: int, *, compacted: bool) -> Contents:
    """All records of a log. Of a compacted log only the last ones of their keys, because each replica decides itself when it
    removes the others."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    undecided: dict[int, list[int]] = {}  # producer id -> offsets in its open transaction
    for header, record in _records(node, f"{topic}-{index}"):
        if not compacted or not header.is_control:
            found[record.offset] = _bytes(record.key), _bytes(record.value)
        if header.is_transactional and not header.is_control:
            undecided.setdefault(header.producer_id, []).append(record.offset)
        elif header.is_control and (decision := parse_marker(record)) is not None:
            ended = undecided.pop(header.producer_id, [])
            if compacted and decision[0]:
                for offset in ended:
                    del found[offset]
    return found


def _records(node: Node, folder: str) -> Iterator[tuple[BatchHeader, Record]]:
    for path, file in node.disk.files():
        if path.parent.name == folder and path.suffix == LOG_SUFFIX:
            data = memoryview(bytes(file.data))
            for position, header in split_batches(data):
                for record in iterate_records(data, position):
                    yield header, record


def _bytes(data: bytes | memoryview | None) -> bytes | None:
    return None if data is None else bytes(data)


def _compare(name: str, copies: Mapping[int, Contents], start: int, *, compacted: bool) -> None:
    (first, one), *others = copies.items()
    for number, other in others:
        for offset in sorted({*one, *other}):
            if offset < start or (compacted and (offset not in one or offset not in other)):
                continue
            if one.get(offset) != other.get(offset):
                raise Violation(f"inconsistent offsets: {name} differs at {offset} between the brokers {first} and {number}")
        if compacted and _last(one, start) != _last(other, start):
            raise Violation(f"inconsistent offsets: the last records of {name} differ between the brokers {first} and {number}")


def _last(contents: Contents, start: int) -> dict[bytes | None, bytes]:
    """The last value of each key; deleted keys are left out."""
    last = {contents[offset][0]: contents[offset][1] for offset in sorted(contents) if offset >= start}
    return {key: value for key, value in last.items() if value is not None}
