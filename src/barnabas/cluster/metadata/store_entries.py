"""The entries of the store: their paths and encodings.

    /cluster                          the cluster's id
    /controller                       the controller and its epoch (ephemeral)
    /controller-epoch                 number of elections of a controller
    /brokers/<id>                     a live broker's addresses and state (ephemeral)
    /broker-epoch                     the epoch of the last registration
    /topics/<name>                    a topic's id and its number of partitions
    /partitions/<name>/<chunk>        states of CHUNK partitions, in order
    /configs/<type>/<name>            settings of a resource
    /<kind>/<key>                     declarations: ACLs, users, tokens, quotas, marks of mirror links
    /deleted-topics/<id>              the brokers that may still have logs of a deleted topic
    /producer-ids                     the first unused producer id

Values are JSON: there are few, they change rarely, and people can repair them by hand. Names with arbitrary characters are
escaped as in a URL (%2F). Partition states are stored in chunks, because only the controller writes them and a new controller
must read them all before it can work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import BrokerRegistration, BrokerState, Kept, LogEnd, PartitionState, Resource, Topic
from barnabas.cluster.store.interface import Entry
from barnabas.config.listeners import Endpoint
from barnabas.protocol.values import ALL_BROKERS, ResourceType

USUAL_FIELDS = 5  # of an ordinary state
CHUNK = 256  # partitions in one entry: about 10 kB of JSON, well under ZooKeeper's limit of 1 MB for a node

LEFT_OUT: Sequence[Any] = ((), (), (), False, ())  # the usual values of optional fields

CLUSTER = "/cluster"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller-epoch"
PRODUCER_IDS = "/producer-ids"
BROKERS = "/brokers/"
BROKER_EPOCH = "/broker-epoch"
TOPICS = "/topics/"
PARTITIONS = "/partitions/"
CONFIGS = "/configs/"
DELETED_TOPICS = "/deleted-topics/"


_KINDS = {kind.value: kind for kind in Kind}
_OWN = re.compile(
    f"({CLUSTER}|{CONTROLLER}|{CONTROLLER_EPOCH}|{PRODUCER_IDS}|{BROKER_EPOCH}|{BROKERS}[0-9]+|{TOPICS}[^/]+|{PARTITIONS}[^/]+/[0-9]+"
    f"|{CONFIGS}[^/]+/[^/]+|{DELETED_TOPICS}[^/]+|/({'|'.join(_KINDS)})/[^/]+)"
)


class ControllerEntry(NamedTuple):
    """The controller's entry."""

    broker_id: int
    epoch: int
    incarnation: str = ""  # id of the broker's process


ANY_BROKER = -1  # stands for any broker in a deletion entry

PLAIN = re.compile(r"[A-Za-z0-9._-]")
ESCAPE = re.compile(rb"%([0-9A-F]{2})")


def is_own(path: str) -> bool:
    """Whether `path` can be an entry of barnabas: other programs may use the same store by mistake."""
    return _OWN.fullmatch(path) is not None


def broker_path(broker_id: int) -> str:
    return f"{BROKERS}{broker_id}"


def topic_path(name: str) -> str:
    return TOPICS + name


def chunk_path(name: str, chunk: int) -> str:
    return f"{PARTITIONS}{name}/{chunk:05d}"


def config_path(resource: Resource) -> str:
    kind, name = resource
    return f"{CONFIGS}{kind.name.lower()}/{escape(name) if name else '%'}"


def deleted_topic_path(topic_id: UUID) -> str:
    return f"{DELETED_TOPICS}{topic_id}"


def declaration_path(kind: Kind, key: str) -> str:
    return f"/{kind.value}/{escape(key)}"


def declaration_of_path(path: str) -> tuple[Kind, str] | None:
    """The kind and the key of the declaration at `path`; None if there can be none."""
    _, kind, key = path.split("/", 2) if path.count("/") == 2 else ("", "", "")
    return (_KINDS[kind], unescape(key)) if key and kind in _KINDS else None


def encode_deletion(brokers: Sequence[int]) -> bytes:
    return encode(brokers)


def decode_deletion(entry: Entry) -> tuple[UUID, tuple[int, ...]]:
    """The topic's id and the brokers; a standalone broker may have stored the topic's name instead, which stands for any broker."""
    brokers = decode(entry.value)
    return UUID(entry.path.removeprefix(DELETED_TOPICS)), (ANY_BROKER,) if isinstance(brokers, str) else tuple(brokers)


def escape(name: str) -> str:
    """A name as one segment of a path."""
    return "".join(c if PLAIN.match(c) else "".join(f"%{byte:02X}" for byte in c.encode()) for c in name)


def unescape(segment: str) -> str:
    return ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), segment.encode()).decode()


# json.dumps would create an encoder per call
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def encode(value: Any) -> bytes:
    return _ENCODER.encode(value).encode()


def decode(value: bytes) -> Any:
    return json.loads(value)


def encode_broker(broker: BrokerRegistration) -> bytes:
    fields: dict[str, object] = {
        "endpoints": [list(endpoint) for endpoint in broker.endpoints],
        "rack": broker.rack,
        "epoch": broker.epoch,
        "incarnation": broker.incarnation,
        "logDirs": broker.log_dirs,
        "logDirPaths": broker.log_dir_paths,
        "cordonedLogDirs": broker.cordoned,
        "state": broker.state.value,
        "kept": broker.kept.value,
    }
    if broker.log_ends:
        fields["logEnds"] = [[str(end.topic_id), *end[1:]] for end in broker.log_ends]
    if broker.offline:
        fields["offline"] = {str(topic_id): partitions for topic_id, partitions in broker.offline.items()}
    return encode(fields)


def decode_broker(entry: Entry) -> BrokerRegistration:
    fields = decode(entry.value)
    return BrokerRegistration(
        broker_id=int(entry.path.removeprefix(BROKERS)),
        endpoints=tuple(Endpoint(*endpoint) for endpoint in fields["endpoints"]),
        rack=fields["rack"],
        epoch=fields["epoch"],
        incarnation=fields.get("incarnation", ""),
        log_dirs=tuple(fields.get("logDirs", ())),
        log_dir_paths=tuple(fields.get("logDirPaths", ())),
        cordoned=tuple(fields.get("cordonedLogDirs", ())),
        state=BrokerState(fields.get("state", BrokerState.ACTIVE.value)),
        kept=Kept(fields.get("kept", Kept.ALL.value)),
        log_ends=tuple(LogEnd(UUID(topic_id), *numbers) for topic_id, *numbers in fields.get("logEnds", ())),
        offline={UUID(topic_id): tuple(numbers) for topic_id, numbers in fields.get("offline", {}).items()},
    )


def encode_controller(controller_entry: ControllerEntry) -> bytes:
    return encode(
        {"id": controller_entry.broker_id, "epoch": controller_entry.epoch, "incarnation": controller_entry.incarnation}
    )


def decode_controller(value: bytes) -> ControllerEntry:
    fields = decode(value)
    return ControllerEntry(fields["id"], fields.get("epoch", 0), fields.get("incarnation", ""))


def encode_topic(topic: Topic) -> bytes:
    return encode({"id": str(topic.topic_id), "partitions": len(topic.partitions)})


def decode_head(value: bytes) -> tuple[UUID, int]:
    """A topic's id and its number of partitions."""
    fields = decode(value)
    return UUID(fields["id"]), fields["partitions"]


def chunk_paths(name: str, partitions: int) -> list[str]:
    """The paths of the chunks for this number of partitions."""
    return [chunk_path(name, chunk) for chunk in range((partitions + CHUNK - 1) // CHUNK)]


def chunk_of(partition: int) -> int:
    """The index of the chunk with the state of a partition."""
    return partition // CHUNK


def decode_chunk(value: bytes, before: Sequence[PartitionState] = ()) -> tuple[PartitionState, ...]:
    """The states of a chunk.

    Args:
        before: the last known states of the same partitions. Unchanged states are reused, which takes a fifth of the time of
            decoding them; most states of a chunk that is read again are unchanged.
    """
    found = decode(value)
    if len(found) == len(before):
        return tuple([old if _is_unchanged(old, fields) else _state(fields) for old, fields in zip(before, found, strict=True)])
    shared: dict[PartitionState, PartitionState] = {}  # most partitions have one of a few states
    return tuple([shared.setdefault(state, state) for state in map(_state, found)])


def _is_unchanged(state: PartitionState, fields: Sequence[Any]) -> bool:
    """Whether a stored state equals a known one. Each change of a state changes its partition epoch; the other fields are compared in
    case another program wrote them."""
    leader, leader_epoch, replicas, isr, partition_epoch, *_ = fields
    return (
        state.partition_epoch == partition_epoch
        and state.leader_epoch == leader_epoch
        and state.leader == leader
        and state.isr == tuple(isr)
        and state.replicas == tuple(replicas)
    )


def chunks_of(topic: Topic, before: Topic | None = None) -> Iterator[tuple[str, bytes]]:
    """Path and value of each entry with partitions of `topic`; only the entries that differ from `before`."""
    old = () if before is None else before.partitions
    for start in range(0, len(topic.partitions), CHUNK):
        states = topic.partitions[start : start + CHUNK]
        if states != old[start : start + CHUNK]:
            yield chunk_path(topic.name, chunk_of(start)), _encode_states(states)


def _encode_states(states: Sequence[PartitionState]) -> bytes:
    """Like `encode` of the fields of all states; partitions that share a state share its text."""
    texts = {number: _state_text(_state_fields(state)) for number, state in {id(state): state for state in states}.items()}
    return b"[" + b",".join([texts[id(state)] for state in states]) + b"]"


def _state_text(fields: Sequence[Any]) -> bytes:
    """Like `encode`, but faster in the simple case: a chunk is written whole when one of its partitions changes."""
    if len(fields) != USUAL_FIELDS:
        return encode(fields)
    leader, leader_epoch, replicas, isr, partition_epoch = fields
    return f"[{leader},{leader_epoch},[{','.join(map(str, replicas))}],[{','.join(map(str, isr))}],{partition_epoch}]".encode()


def _state_fields(state: PartitionState) -> list[Any]:
    fields: list[Any] = [state.leader, state.leader_epoch, state.replicas, state.isr, state.partition_epoch]
    seldom = [state.adding, state.removing, state.eligible]
    if state.last_known:
        return [*fields, *seldom, state.is_lost, state.last_known]
    if state.is_lost:
        return [*fields, *seldom, True]
    return [*fields, *seldom] if any(seldom) else fields


def _state(fields: Sequence[Any]) -> PartitionState:
    leader, leader_epoch, replicas, isr, partition_epoch, *seldom = fields
    adding, removing, eligible, is_lost, last_known = (*seldom, *LEFT_OUT[len(seldom) :])
    return PartitionState(
        leader,
        leader_epoch,
        tuple(replicas),
        tuple(isr),
        partition_epoch,
        tuple(adding),
        tuple(removing),
        tuple(eligible),
        is_lost,
        tuple(last_known),
    )


def topic_of_path(path: str) -> str:
    """The topic of an entry under TOPICS or PARTITIONS."""
    return path.removeprefix(TOPICS) if path.startswith(TOPICS) else path.removeprefix(PARTITIONS).rpartition("/")[0]


def decode_topic(head: Entry, chunks: Iterable[Entry]) -> Topic | None:
    """A topic with its partitions, from its entry and the entries of its chunks in order; None while chunks are missing."""
    name = topic_of_path(head.path)
    topic_id, count = decode_head(head.value)
    partitions = tuple(state for chunk in chunks for state in decode_chunk(chunk.value))[:count]
    return Topic(name, topic_id, partitions) if len(partitions) == count else None


def decode_topics(topics: Iterable[Entry], chunks: Iterable[Entry]) -> list[Topic]:
    """The complete topics, from the entries under TOPICS and PARTITIONS in the order of their paths."""
    chunks_of_topic: dict[str, list[Entry]] = {}
    for chunk in chunks:
        chunks_of_topic.setdefault(topic_of_path(chunk.path), []).append(chunk)
    found = (decode_topic(head, chunks_of_topic.get(topic_of_path(head.path), ())) for head in topics)
    return [topic for topic in found if topic is not None]


def is_config_path(path: str) -> bool:
    """Whether the path is an entry of settings; watches also report parents such as /configs/broker, which have no value."""
    return path.startswith(CONFIGS) and "/" in path.removeprefix(CONFIGS)


def resource_of_path(path: str) -> Resource:
    """The resource of an entry under CONFIGS."""
    kind, _, name = path.removeprefix(CONFIGS).partition("/")
    return ResourceType[kind.upper()], ALL_BROKERS if name == "%" else unescape(name)


def decode_config(entry: Entry) -> tuple[Resource, Mapping[str, str]]:
    return resource_of_path(entry.path), decode(entry.value)
