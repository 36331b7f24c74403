"""Changes of other writers: reads and decodes entries of the store, and converts them to a delta of the image.

Pure, except for reading the store. Reading and decoding may take a while (a new controller reads all partitions), so it runs on
the store's thread; the result goes to `ControllerState.observe` on the loop.

Rules
  1. Only reported changes are read: the entry of a topic, and the changed chunks of its partitions. For a topic that is not in
     the image, or has another id or count there, all chunks are read.
  2. ROOT stands for all entries; the delta then also removes the parts of the image that the store does not have.
  3. A topic with missing chunks is being deleted or created again: it stays unchanged in the image. A watch event reports the
     outcome, and then the topic is read again.

Ugly: the reads happen at different moments. Before the caller applies an observation, it checks for changes that were reported
meanwhile, and observes these again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import Changes, Kind
from barnabas.cluster.metadata.image import EMPTY, BrokerRegistration, MetadataDelta, MetadataImage, Resource, Topic
from barnabas.cluster.store.interface import ABSENT, ROOT, Entry, MetadataStore
from barnabas.protocol.values import NO_CONTROLLER


class Observation(Struct, frozen=True):
    """The entries that were read.

    Args:
        delta: relative to the given image.
        entries: all read entries by path; None for a missing one.
        is_complete: the store has no other entries.
    """

    delta: MetadataDelta
    entries: Mapping[str, Entry | None]
    is_complete: bool


def observe(store: MetadataStore, image: MetadataImage, paths: Iterable[str]) -> Observation:
    """The current entries at `paths`, compared with `image`; raises StoreUnavailable."""
    wanted = set(paths)
    if ROOT in wanted:
        return observe_all(image, store.list("/"))
    topics = sorted(
        {
            store_entries.topic_of_path(path)
            for path in wanted
            if path.startswith((store_entries.TOPICS, store_entries.PARTITIONS))
        }
    )
    wanted.update(map(store_entries.topic_path, topics))
    found = _read(store, sorted(wanted))
    missing = [path for name in topics for path in _chunks_to_read(image.topics.get(name), found[store_entries.topic_path(name)])]
    found.update(_read(store, [path for path in missing if path not in found]))
    made, deleted = [], []
    for name in topics:
        head, before = found[store_entries.topic_path(name)], image.topics.get(name)
        if head is not None:
            topic = _put_together(before, head, found)
            if topic is not None and topic != before:
                made.append(topic)
        elif before is not None:
            deleted.append(name)
    return Observation(_delta(image, found, made, deleted), found, is_complete=False)


def observe_all(image: MetadataImage, entries: Iterable[Entry]) -> Observation:
    """All entries, compared with `image`."""
    found: dict[str, Entry | None] = {entry.path: entry for entry in entries}
    topics = store_entries.decode_topics(_under(found, store_entries.TOPICS), _under(found, store_entries.PARTITIONS))
    changed = [topic for topic in topics if topic != image.topics.get(topic.name)]
    deleted = [name for name in image.topics if store_entries.topic_path(name) not in found]
    for path in _paths_of(image):
        found.setdefault(path, None)
    return Observation(_delta(image, found, changed, deleted), found, is_complete=True)


def _read(store: MetadataStore, paths: Sequence[str]) -> dict[str, Entry | None]:
    return dict(zip(paths, store.get_many(paths), strict=True)) if paths else {}


def _chunks_to_read(before: Topic | None, head: Entry | None) -> list[str]:
    if head is None:
        return []
    topic_id, count = store_entries.decode_head(head.value)
    is_known = before is not None and (before.topic_id, len(before.partitions)) == (topic_id, count)
    return [] if is_known else store_entries.chunk_paths(store_entries.topic_of_path(head.path), count)


def _put_together(before: Topic | None, head: Entry, found: Mapping[str, Entry | None]) -> Topic | None:
    """The topic from the chunks that were read; the other chunks come from the image. None while a chunk is missing."""
    name = store_entries.topic_of_path(head.path)
    topic_id, count = store_entries.decode_head(head.value)
    states = list(before.partitions) if before is not None and before.topic_id == topic_id else []
    for number, path in enumerate(store_entries.chunk_paths(name, count)):
        chunk = found.get(path)
        if chunk is not None:
            start = number * store_entries.CHUNK
            end = start + store_entries.CHUNK
            states[start:end] = store_entries.decode_chunk(chunk.value, states[start:end])
        elif path in found:
            return None
    return Topic(name, topic_id, tuple(states[:count])) if len(states) >= count else None


def _under(found: Mapping[str, Entry | None], prefix: str) -> list[Entry]:
    return [entry for path, entry in sorted(found.items()) if entry is not None and path.startswith(prefix)]


def _paths_of(image: MetadataImage) -> Iterable[str]:
    """The paths of everything in an image except topics and partitions."""
    yield from map(store_entries.broker_path, image.brokers)
    yield from map(store_entries.config_path, image.configs)
    yield from map(store_entries.deleted_topic_path, image.deletions)
    for kind, declared in image.declared.items():
        yield from (store_entries.declaration_path(kind, key) for key in declared)
    yield from (store_entries.CLUSTER, store_entries.CONTROLLER)


def _delta(
    image: MetadataImage, found: Mapping[str, Entry | None], topics: Iterable[Topic], deleted: Iterable[str]
) -> MetadataDelta:
    brokers: list[BrokerRegistration] = []
    gone: list[int] = []
    configs: dict[Resource, Mapping[str, str]] = {}
    deletions: dict[UUID, tuple[int, ...]] = {}
    controller_id: int | None = None
    cluster_id: str | None = None
    for path, entry in found.items():
        if path.startswith(store_entries.BROKERS):
            broker_id = int(path.removeprefix(store_entries.BROKERS))
            if entry is not None and (broker := store_entries.decode_broker(entry)) != image.brokers.get(broker_id):
                brokers.append(broker)
            elif entry is None and broker_id in image.brokers:
                gone.append(broker_id)
        elif store_entries.is_config_path(path):
            resource = store_entries.resource_of_path(path)
            settings = EMPTY if entry is None else store_entries.decode(entry.value)
            if settings != image.config(*resource):
                configs[resource] = settings
        elif path.startswith(store_entries.DELETED_TOPICS):
            topic_id, left = store_entries.decode_deletion(entry or Entry(path, b"[]", ABSENT))
            if left != image.deletions.get(topic_id, ()):
                deletions[topic_id] = left
        elif path == store_entries.CONTROLLER:
            leader = NO_CONTROLLER if entry is None else store_entries.decode_controller(entry.value).broker_id
            controller_id = None if leader == image.controller_id else leader
        elif path == store_entries.CLUSTER and entry is not None:
            name = store_entries.decode(entry.value)["id"]
            cluster_id = None if name == image.cluster_id else name
    return MetadataDelta(
        topics=tuple(topics),
        deleted_topics=tuple(deleted),
        configs=configs,
        brokers=tuple(brokers),
        gone_brokers=tuple(gone),
        controller_id=controller_id,
        cluster_id=cluster_id,
        deletions=deletions,
        declared=_declared(image, found),
    )


def _declared(image: MetadataImage, found: Mapping[str, Entry | None]) -> Changes:
    declared: dict[tuple[Kind, str], Any] = {}
    for path, entry in found.items():
        declaration = store_entries.declaration_of_path(path)
        if declaration is not None:
            kind, key = declaration
            value = None if entry is None else store_entries.decode(entry.value)
            if value != image.declarations(kind).get(key):
                declared[declaration] = value
    return declared
