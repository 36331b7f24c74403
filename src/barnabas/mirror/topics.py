"""What to change here so that the copies of a link have the topics, partitions and settings of the source. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from barnabas.cluster.metadata.image import MetadataImage
from barnabas.config import definitions
from barnabas.config.mirror_settings import (
    COMPARING,
    INSPECTING,
    MIRROR_KEYS,
    MIRROR_LINK,
    MIRROR_PRODUCER_ID_END,
    MIRROR_PROMOTED_ENDS,
    MIRROR_PROMOTED_TOPIC_ID,
    MIRROR_SOURCE_CLUSTERS,
    MIRROR_SOURCE_ENDS,
    MIRROR_SOURCE_TOPIC,
    MIRROR_SOURCE_TOPIC_ID,
    MIRROR_STATE,
)
from barnabas.mirror.link import Link
from barnabas.protocol.base_message import ZERO_UUID

SOURCE_TOPIC_ID = MIRROR_SOURCE_TOPIC_ID
# Settings that name brokers or features of the source cluster
OF_SOURCE_ONLY = frozenset(
    {
        *MIRROR_KEYS,
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "remote.storage.enable",
        "unclean.leader.election.enable",
        "confluent.key.schema.validation",
        "confluent.value.schema.validation",
    }
)
NOT_A_COPY = (
    "a topic of this name exists here and is not a copy; `barnabas mirror failback` makes it one if the source's is a copy of it"
)
DELETED = "was deleted in the source; its records stay here. Promote the copy with --now, or delete it"
ANOTHER_ID = "was deleted and made again in the source; delete the copy, and the link makes it again"


class SourceTopic(Struct, frozen=True):
    """A topic of the source.

    Args:
        name: that of the copy here.
        topic_id: empty if the source has no ids.
        source_name: empty if the copy has the same name.
    """

    name: str
    topic_id: str
    partitions: int
    source_name: str = ""

    @property
    def theirs(self) -> str:
        """The name in the source."""
        return self.source_name or self.name


class TopicChanges(Struct, frozen=True):
    """What the controller must do, and which topics cannot be copied, with the reason.

    Args:
        adopt: topics in a failback that are not tied to their topic in the source yet; see `adoption`.
        taken: topics whose name another topic has here; also among `refused`.
    """

    adopt: tuple[SourceTopic, ...] = ()
    create: tuple[SourceTopic, ...] = ()
    grow: tuple[SourceTopic, ...] = ()
    refused: dict[str, str] = {}
    taken: tuple[SourceTopic, ...] = ()


def id_text(topic_id: object) -> str:
    """The text of a topic's id; empty for none."""
    return "" if topic_id in (None, ZERO_UUID) else str(topic_id)


def plan(link: Link, source: Mapping[str, SourceTopic], image: MetadataImage) -> TopicChanges:
    """Compare the topics of the source, by the names of their copies, with those here."""
    adopt, create, grow, taken, refused = [], [], [], [], {}
    for name, topic in sorted(source.items()):
        if not link.copies(topic.theirs):
            continue
        ours = image.topic(name)
        settings = image.topic_config(name)
        if ours is None:
            create.append(topic)
        elif settings.get(MIRROR_LINK) != link.name:
            if MIRROR_PRODUCER_ID_END not in settings:  # otherwise it was a copy, and was promoted
                other = settings.get(MIRROR_LINK)
                refused[name] = f"the topic here is a copy of the mirror link {other}" if other else NOT_A_COPY
                taken.append(topic)
        elif settings.get(SOURCE_TOPIC_ID, "") != topic.topic_id and settings.get(MIRROR_STATE) in {INSPECTING, COMPARING}:
            adopt.append(topic)
        elif settings.get(SOURCE_TOPIC_ID, "") != topic.topic_id:
            refused[name] = ANOTHER_ID
        elif len(ours.partitions) < topic.partitions:
            grow.append(topic)
    for name in sorted(_in_failback(link, image) - source.keys()):
        refused[name] = "the source has no topic of this name; a copy with a prefix cannot be failed back"
    return TopicChanges(tuple(adopt), tuple(create), tuple(grow), refused, tuple(taken))


def provenance(topic: SourceTopic, theirs: Mapping[str, str | None], source_id: str) -> dict[str, str]:
    """The settings of a copy that name its source.

    Args:
        theirs: the settings that the topic in the source has of its own.
        source_id: the id of the source cluster; empty if it has none.
    """
    before = clusters_of(theirs)
    clusters = ",".join([source_id, *before] if source_id else before)
    found = {MIRROR_SOURCE_TOPIC: topic.theirs, MIRROR_SOURCE_CLUSTERS: clusters, MIRROR_SOURCE_TOPIC_ID: topic.topic_id}
    return {key: value for key, value in found.items() if value}


def clusters_of(settings: Mapping[str, str | None]) -> list[str]:
    """The clusters from which the records of a copy come, the nearest first."""
    return [word for word in (settings.get(MIRROR_SOURCE_CLUSTERS) or "").split(",") if word]


def loop(theirs: Mapping[str, str | None], cluster_id: str) -> str | None:
    """The reason why a topic of the source is not copied here, if its records come from this cluster."""
    if cluster_id not in clusters_of(theirs):
        return None
    return (
        f"the topic of the source is a copy of one of this cluster, by the mirror link {theirs.get(MIRROR_LINK)} there: it would be"
        " copied in a circle"
    )


def _in_failback(link: Link, image: MetadataImage) -> set[str]:
    return {
        name
        for name in image.topics
        if (settings := image.topic_config(name)).get(MIRROR_LINK) == link.name
        and settings.get(MIRROR_STATE) in {INSPECTING, COMPARING}
    }


def adoption(
    topic: SourceTopic, theirs: Mapping[str, str | None], image: MetadataImage, source_id: str = ""
) -> dict[str, str] | str:
    """The settings that tie a topic here to its topic in the source, for a failback; or the reason why it cannot be done.

    Args:
        theirs: the settings that the topic in the source has of its own.
        source_id: the id of the source cluster.
    """
    ours = image.topics[topic.name]
    if theirs.get(MIRROR_LINK) and theirs.get(MIRROR_STATE) != INSPECTING:
        return f"the topic of the source is a copy itself, of the mirror link {theirs[MIRROR_LINK]}; promote it there first"
    if theirs.get(MIRROR_PROMOTED_TOPIC_ID) != id_text(ours.topic_id) or not topic.topic_id:
        return "the topic of the source was not made as a copy of this one"
    if len(ours.partitions) > topic.partitions:
        return f"the topic of the source has {topic.partitions} partitions only"
    return {**provenance(topic, theirs, source_id), MIRROR_SOURCE_ENDS: theirs.get(MIRROR_PROMOTED_ENDS) or ""}


def settings_for_copy(theirs: Mapping[str, str | None]) -> dict[str, str]:
    """The settings of a copy: those that the source's topic has of its own, if topics here have them."""
    return {
        key: value
        for key, value in theirs.items()
        if value is not None and key in definitions.TOPIC and key not in OF_SOURCE_ONLY
    }


def changed_settings(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[tuple[str, str | None]]:
    """The settings to set here, and to remove (None), so that the copy has `theirs`."""
    kept = {key: value for key, value in ours.items() if key not in OF_SOURCE_ONLY}
    wanted = [(key, value) for key, value in sorted(theirs.items()) if kept.get(key) != value]
    return [*wanted, *((key, None) for key in sorted(kept.keys() - theirs.keys()))]
