"""Which topics a link copies, what the controller has to change, and which settings a link may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from uuid import UUID

import pytest

from barnabas.cluster.metadata.image import MetadataDelta, MetadataImage, PartitionState, Topic
from barnabas.config.mirror_settings import check_mirror
from barnabas.config.settings import check_link
from barnabas.errors import ErrorCode, KafkaError
from barnabas.mirror.link import Link
from barnabas.mirror.topics import (
    ANOTHER_ID,
    NOT_A_COPY,
    SourceTopic,
    changed_settings,
    loop,
    plan,
    provenance,
    settings_for_copy,
)
from barnabas.protocol.values import ResourceType

COPY = {"mirror.link": "eu", "mirror.source.topic.id": "id"}


def compiled(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def link(**settings: str) -> Link:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return Link.of("eu", {"bootstrap.servers": "h:1", **named}, compiled)


def image(**topics: Mapping[str, str]) -> MetadataImage:
    """Topics with one partition and these settings."""
    state = PartitionState(1, 0, (1,), (1,))
    made = tuple(Topic(name, UUID(int=at + 1), (state,)) for at, name in enumerate(topics))
    configs = {(ResourceType.TOPIC, name): settings for name, settings in topics.items()}
    return MetadataImage("c").apply(MetadataDelta(topics=made, configs=configs))


def source(*names: str, partitions: int = 1, topic_id: str = "id") -> dict[str, SourceTopic]:
    return {name: SourceTopic(name, topic_id, partitions) for name in names}


@pytest.mark.parametrize(
    ("name", "is_copied"), [("orders", True), ("orders-2", True), ("my-orders", False), ("__consumer_offsets", False)]
)
def test_patterns_match_whole_names(name: str, is_copied: bool) -> None:
    assert link(topics="orders.*,__.*").copies(name) is is_copied


def test_topics_of_the_source_are_created_and_grow() -> None:
    found = plan(link(), source("a", "b", partitions=2), image(b=COPY))
    assert [topic.name for topic in found.create] == ["a"]
    assert [topic.name for topic in found.grow] == ["b"]


def test_topics_that_are_no_copies_are_told_and_left_alone() -> None:
    found = plan(
        link(),
        source("a", "b", "c", partitions=2),
        image(a={}, b={"mirror.producer.id.end": "4"}, c={**COPY, "mirror.source.topic.id": "x"}),
    )
    assert (found.create, found.grow) == ((), ())
    assert found.refused == {"a": NOT_A_COPY, "c": ANOTHER_ID}


def test_settings_of_brokers_of_the_source_are_not_copied() -> None:
    theirs = {"retention.ms": "5", "leader.replication.throttled.replicas": "*", "unknown.here": "1", "cleanup.policy": None}
    assert settings_for_copy(theirs) == {"retention.ms": "5"}


def test_settings_follow_the_source() -> None:
    ours = {**COPY, "retention.ms": "5", "flush.ms": "1"}
    assert changed_settings(ours, {"retention.ms": "6"}) == [("retention.ms", "6"), ("flush.ms", None)]
    assert changed_settings(ours, {"retention.ms": "5", "flush.ms": "1"}) == []


def test_an_image_knows_the_producer_ids_of_promoted_copies() -> None:
    made = image(a={"mirror.producer.id.end": "7"}, b={"mirror.producer.id.end": "12"}, c={})
    assert made.producer_id_end == 12
    gone = made.apply(MetadataDelta(deleted_topics=("b",)))
    assert gone.producer_id_end == 12  # it never goes back


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"topics": "a"}, "needs bootstrap.servers"),
        ({"bootstrap.servers": "nohost"}, "host:port"),
        ({"bootstrap.servers": "h:1", "topics": "("}, "a regular expression"),
        ({"bootstrap.servers": "h:1", "topic": "a"}, "Unknown link config name: topic"),
        (
            {"bootstrap.servers": "h:1", "security.protocol": "SASL_SSL", "sasl.username": "u"},
            "needs sasl.mechanism, sasl.password",
        ),
        ({"bootstrap.servers": "h:1", "sasl.mechanism": "GSSAPI"}, "String must be one of"),
    ],
)
def test_a_link_with_wrong_settings_is_refused(settings: dict[str, str], reason: str) -> None:
    with pytest.raises(KafkaError, match=re.escape(reason)) as refused:
        check_link(settings)
    assert refused.value.code is ErrorCode.INVALID_CONFIG


INSPECTING = {"mirror.link": "link", "mirror.state": "inspecting"}
COMPARING = {**COPY, "mirror.state": "comparing", "mirror.lost.topic": "t"}
TRUNCATING = {**COMPARING, "mirror.state": "truncating"}
PROMOTING = {**COPY, "mirror.state": "promoting"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, COPY),
        ({}, {"mirror.producer.id.end": "5"}),
        (COPY, {**COPY, "mirror.link": "other"}),
        (COPY, {}),
        (COPY, {"mirror.producer.id.end": "5"}),
        (PROMOTING, {}),
        (PROMOTING, COPY),
        ({"mirror.producer.id.end": "5"}, {}),
        ({}, {"mirror.link": "link"}),
        ({}, {"mirror.link": "link", "mirror.state": "comparing"}),  # without a topic for what is cut off
        ({}, {"mirror.link": "link", "mirror.state": "truncating", "mirror.lost.topic": "t"}),
        ({}, {"mirror.link": "link", "mirror.state": "inspecting", "mirror.source.topic.id": "x"}),
        (INSPECTING, {"mirror.state": "inspecting"}),
        (INSPECTING, {**INSPECTING, "mirror.state": "truncating"}),
        (INSPECTING, {**INSPECTING, "mirror.source.topic.id": "x"}),
        (COMPARING, {}),
        (COMPARING, COPY),
        (COMPARING, {**COMPARING, "mirror.state": "inspecting"}),
        (TRUNCATING, {}),
        (TRUNCATING, {**TRUNCATING, "mirror.state": "promoting-now"}),
        (PROMOTING, {**COPY, "mirror.state": "comparing", "mirror.lost.topic": "t"}),
    ],
)
def test_mirror_settings_change_only_on_their_way(before: dict[str, str], after: dict[str, str]) -> None:
    with pytest.raises(KafkaError) as refused:
        check_mirror(before, after)
    assert refused.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (COPY, {**COPY, "retention.ms": "1"}),
        (COPY, PROMOTING),
        (PROMOTING, {**COPY, "mirror.state": "promoting-now"}),
        (PROMOTING, {"mirror.producer.id.end": "5"}),
        ({}, INSPECTING),
        ({"mirror.producer.id.end": "5"}, {"mirror.producer.id.end": "5", **INSPECTING}),
        (INSPECTING, {}),
        (INSPECTING, {**INSPECTING, "mirror.state": "comparing", "mirror.lost.topic": "t"}),
        (COMPARING, TRUNCATING),
        (COMPARING, {**COMPARING, "mirror.state": "promoting-now"}),
        (COPY, {**COPY, "mirror.state": "comparing", "mirror.lost.topic": "t"}),
        (TRUNCATING, {**COPY, "mirror.lost.topic": "t"}),
        (TRUNCATING, COMPARING),
    ],
)
def test_promotions_and_failbacks_go_their_way(before: dict[str, str], after: dict[str, str]) -> None:
    check_mirror(before, after)


# Other names, and circles


def named(*names: str, prefix: str = "b.") -> dict[str, SourceTopic]:
    return {prefix + name: SourceTopic(prefix + name, "id", 1, name) for name in names}


def test_copies_have_the_names_of_the_source_after_the_prefix() -> None:
    found = plan(link(topics="orders", cluster_link_prefix="b."), named("orders", "b.orders"), image(orders={}))
    assert [(topic.name, topic.theirs) for topic in found.create] == [("b.orders", "orders")]
    assert found.refused == {}


def test_a_copy_names_all_clusters_of_its_records() -> None:
    (topic,) = named("a.orders").values()
    first = provenance(topic, {}, "A")
    assert first == {"mirror.source.topic": "a.orders", "mirror.source.cluster.ids": "A", "mirror.source.topic.id": "id"}
    assert provenance(topic, first, "B")["mirror.source.cluster.ids"] == "B,A"
    assert "mirror.source.cluster.ids" not in provenance(topic, {}, "")


def test_records_of_this_cluster_are_not_copied_back() -> None:
    theirs = {"mirror.link": "eu", "mirror.source.cluster.ids": "B,A"}
    assert loop(theirs, "C") is None
    for cluster in ("A", "B"):
        reason = loop(theirs, cluster)
        assert reason is not None
        assert "a copy of one of this cluster, by the mirror link eu there" in reason


@pytest.mark.parametrize("prefix", ["a/b", "__", "x" * 101, "ä."])
def test_a_prefix_is_the_beginning_of_a_topic_s_name(prefix: str) -> None:
    with pytest.raises(KafkaError, match=r"cluster\.link\.prefix"):
        check_link({"bootstrap.servers": "h:1", "cluster.link.prefix": prefix})


def test_a_cluster_with_a_link_has_producer_ids_of_its_own() -> None:
    image = MetadataImage("a cluster")
    linked = image.apply(MetadataDelta(configs={(ResourceType.LINK, "l"): {"bootstrap.servers": "x:1"}}))
    other = MetadataImage("another").apply(MetadataDelta(configs={(ResourceType.LINK, "l"): {"bootstrap.servers": "x:1"}}))
    assert image.producer_id_end == 0
    assert linked.producer_id_end % 2**40 == 0
    assert 2**40 <= linked.producer_id_end < 2**61
    assert other.producer_id_end != linked.producer_id_end
    assert linked.apply(MetadataDelta(configs={(ResourceType.LINK, "l"): {}})).producer_id_end == linked.producer_id_end
