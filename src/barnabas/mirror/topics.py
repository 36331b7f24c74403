"""What to change here so that the copies of a link have the topics, partitions and settings of the source. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from barnabas.cluster.metadata.image import MetadataImage
from barnabas.config import definitions
from barnabas.config.settings import MIRROR_KEYS, MIRROR_LINK, MIRROR_PRODUCER_ID_END
from barnabas.mirror.link import Link
from barnabas.protocol.base_message import ZERO_UUID

SOURCE_TOPIC_ID = "mirror.source.topic.id"
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
ANOTHER_ID = "was deleted and made again in the source; delete the copy, and the link makes it again"


class SourceTopic(Struct, frozen=True):
    """A topic of the source; `topic_id` is empty if the source has no ids."""

    name: str
    topic_id: str
    partitions: int


class TopicChanges(Struct, frozen=True):
    """What the controller must do, and which topics cannot be copied, with the reason."""

    create: tuple[SourceTopic, ...] = ()
    grow: tuple[SourceTopic, ...] = ()
    refused: dict[str, str] = {}


def id_text(topic_id: object) -> str:
    """The text of a topic's id; empty for none."""
    return "" if topic_id in (None, ZERO_UUID) else str(topic_id)


def plan(link: Link, source: Mapping[str, SourceTopic], image: MetadataImage) -> TopicChanges:
    """Compare the topics of the source with those here."""
    create, grow, refused = [], [], {}
    for name, topic in sorted(source.items()):
        if not link.copies(name):
            continue
        ours = image.topic(name)
        settings = image.topic_config(name)
        if ours is None:
            create.append(topic)
        elif settings.get(MIRROR_LINK) != link.name:
            if MIRROR_PRODUCER_ID_END not in settings:  # otherwise it was a copy, and was promoted
                refused[name] = "a topic of this name exists here and is not a copy"
        elif settings.get(SOURCE_TOPIC_ID, "") != topic.topic_id:
            refused[name] = ANOTHER_ID
        elif len(ours.partitions) < topic.partitions:
            grow.append(topic)
    return TopicChanges(tuple(create), tuple(grow), refused)


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
