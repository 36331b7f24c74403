"""The requests of `barnabas mirror`: settings and status of links, from every broker of a cluster, and promotion."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from barnabas.cli.broker_connections import Brokers
from barnabas.cli.errors import Failure
from barnabas.cli.resources import Change, Operation, alter_settings
from barnabas.cli.wire import Wire
from barnabas.config.mirror_settings import MIRROR_PROMOTED_TOPIC_ID, MIRROR_SOURCE_TOPIC_ID, OF_LINK
from barnabas.error_codes import ErrorCode, code_name
from barnabas.mirror.promotion import promoted_settings
from barnabas.mirror.status import (
    LINK_STATUS,
    NO_ANSWER,
    PREFIX,
    LinkStatus,
    LinkTimes,
    PartitionStatus,
    decode_link,
    decode_partition,
)
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.values import ResourceType

LOOK_AGAIN_S = 0.05
# Producers of the source may go on here with ids that no copy has yet, and those of this cluster may go on at the source after a failback.
SPARE_PRODUCER_IDS = 1_000_000
SPARE_LEADER_EPOCHS = 1_000  # the source may elect leaders that the link does not hear of
READY = "ready"
FIRST_ANSWER_WITHIN_S = 12.0  # brokers try for 10 s before they tell why the source does not answer
GROUPS_WITHIN_S = 10.0
GROUPS_LATE = "the offsets of groups were not copied a last time: consumers may read again what they have read at the source"


class LinkView(Struct):
    """A link as all brokers together see it."""

    name: str
    settings: dict[str, str | None]
    errors: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    not_followed: dict[str, str] = field(default_factory=dict)
    partitions: list[PartitionStatus] = field(default_factory=list)
    times: list[LinkTimes] = field(default_factory=list)
    group_rounds: list[int] = field(default_factory=list)  # of each broker

    @property
    def is_paused(self) -> bool:
        return self.settings.get("paused") == "true"

    @property
    def topics(self) -> list[str]:
        return sorted({each.topic for each in self.partitions})


def link_names(wire: Wire) -> list[str]:
    """The links of the cluster; raises Failure if the brokers know no links."""
    answer = wire.request(ListConfigResourcesRequest(resource_types=[int(ResourceType.LINK)]))
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise Failure("this cluster has no mirror links: they need barnabas as the target")
    if answer.error_code:
        raise Failure(f"cannot list the mirror links: {code_name(answer.error_code)}")
    return sorted(resource.resource_name for resource in answer.config_resources)


def view(brokers: Brokers, name: str) -> LinkView:
    """Ask every broker about a link; raises Failure if there is no such link."""
    found = LinkView(name, {})
    for _, wire in brokers:
        resource = DescribeConfigsResource(resource_type=ResourceType.LINK, resource_name=name, configuration_keys=None)
        (result,) = wire.request(DescribeConfigsRequest(resources=[resource])).results
        if result.error_code:
            raise Failure(f"mirror link {name}: {result.error_message or code_name(result.error_code)}")
        _add(found, {item.name: item.value for item in result.configs})
    found.partitions.sort(key=lambda each: (each.topic, each.partition))
    return found


def _add(found: LinkView, values: Mapping[str, str | None]) -> None:
    for key, value in values.items():
        if key == LINK_STATUS:
            link: LinkStatus = decode_link(value or "")
            if link.error and link.error not in found.errors:
                found.errors.append(link.error)
            found.refused.update(link.refused)
            found.not_followed.update(link.not_followed)
            found.times.append(link.times)
            found.group_rounds.append(link.group_rounds)
        elif key.startswith(PREFIX):
            found.partitions.append(decode_partition(value or ""))
        else:
            found.settings[key] = value


def first_complaints(brokers: Brokers, name: str) -> list[str]:
    """Wait until a link that was just made has heard of its source; returns what is wrong: with the source, or with topics."""
    deadline = time.monotonic() + FIRST_ANSWER_WITHIN_S
    while True:
        found = view(brokers, name)
        has_begun = len(found.times) == len(list(brokers)) and NO_ANSWER not in found.errors
        if found.is_paused or has_begun or time.monotonic() >= deadline:
            break
        time.sleep(LOOK_AGAIN_S)
    errors = [] if found.is_paused else [f"the source: {error}" for error in found.errors]
    return errors + [f"topic {topic} is not copied: {reason}" for topic, reason in sorted(found.refused.items())]


def alter_link(wire: Wire, name: str, changes: Iterable[Change]) -> None:
    """Change settings of a link; raises Failure if the broker refuses."""
    alter_settings(wire, ResourceType.LINK, name, changes, validate_only=False)


def delete_link(brokers: Brokers, name: str) -> None:
    """Delete a link: a link without settings does not exist. Raises Failure if topics are copies of it."""
    settings = view(brokers, name).settings
    alter_link(brokers.first, name, [Change(key, Operation.DELETE, None) for key in settings])


class Promoted(Struct):
    """A promotion that is complete.

    Args:
        partitions: as they were when the copies were ready.
        has_groups: whether the offsets of groups were copied a last time, or none are copied.
    """

    partitions: list[PartitionStatus]
    has_groups: bool


def promote_copies(brokers: Brokers, name: str, topics: Sequence[str], *, now: bool, wait_s: float) -> Promoted:
    """Promote copies of a link from the first step to the last.

    Args:
        now: without what the source still has.
        wait_s: for each step.

    Raises:
        Failure: a step takes too long; the same call goes on where it stopped.
    """
    start_promotion(brokers.first, topics, now=now)
    ready = wait_ready(brokers, name, topics, wait_s)
    has_groups = now or wait_groups(brokers, name, wait_s)
    finish_promotion(brokers, name, ready, wait_s)
    return Promoted(ready, has_groups)


def start_promotion(wire: Wire, topics: Sequence[str], *, now: bool) -> None:
    """Have the leaders of copies stop at the end of the source, or where they are."""
    state = "promoting-now" if now else "promoting"
    for topic in topics:
        alter_settings(wire, ResourceType.TOPIC, topic, [Change("mirror.state", Operation.SET, state)], validate_only=False)


def wait_ready(brokers: Brokers, name: str, topics: Sequence[str], wait_s: float) -> list[PartitionStatus]:
    """Wait until each partition of the topics may be opened for writers.

    Raises:
        Failure: the time is over; the text says what each partition waits for.
    """
    expected = _partition_counts(brokers.first, topics)
    deadline = time.monotonic() + wait_s
    while True:
        found = view(brokers, name)
        ours = [each for each in found.partitions if each.topic in expected]
        late = [each for each in ours if each.state != READY]
        if not late and len(ours) == sum(expected.values()):
            return ours
        if time.monotonic() >= deadline:
            raise Failure(_too_late(found, late, sum(expected.values()) - len(ours)))
        time.sleep(LOOK_AGAIN_S)


def wait_groups(brokers: Brokers, name: str, wait_s: float) -> bool:
    """Wait until every broker has copied the offsets of its groups once more; whether it did in time.

    The copies must be ready. A round that had begun before counts for nothing, so two must end. A broker that starts meanwhile tells no
    rounds at first.
    """
    wanted = [each + 2 for each in view(brokers, name).group_rounds]
    deadline = time.monotonic() + min(wait_s, GROUPS_WITHIN_S)
    while time.monotonic() < deadline:
        rounds = view(brokers, name).group_rounds
        if len(rounds) == len(wanted) and all(each < 0 or each >= least for each, least in zip(rounds, wanted, strict=True)):
            return True
        time.sleep(LOOK_AGAIN_S)
    return False


def _too_late(found: LinkView, late: Sequence[PartitionStatus], absent: int) -> str:
    waiting = [f"{each.topic}-{each.partition} {each.reason or f'lacks {max(each.lag, 0)} records'}" for each in late[:5]]
    if absent:
        waiting.append(f"{absent} partitions have no leader")
    why = "; ".join([*found.errors, *waiting])
    return f"not ready in time: {why}. The topics stay read-only: repeat the command, or give --now to go on without the source"


def _partition_counts(wire: Wire, topics: Sequence[str]) -> dict[str, int]:
    names = [MetadataRequestTopic(name=topic) for topic in topics]
    answer = wire.request(MetadataRequest(topics=names, allow_auto_topic_creation=False))
    for topic in answer.topics:
        if topic.error_code:
            raise Failure(f"topic {topic.name}: {code_name(topic.error_code)}")
    return {topic.name: len(topic.partitions) for topic in answer.topics}


def _setting(wire: Wire, topic: str, key: str) -> str | None:
    """A setting of a topic; None if it has none of this name."""
    resource = DescribeConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=[key])
    (result,) = wire.request(DescribeConfigsRequest(resources=[resource])).results
    if result.error_code:
        raise Failure(f"topic {topic}: {result.error_message or code_name(result.error_code)}")
    return next((item.value for item in result.configs if item.name == key), None)


def finish_promotion(brokers: Brokers, name: str, partitions: Sequence[PartitionStatus], wait_s: float) -> None:
    """Open topics for writers, and wait until all leaders accept them. Producers get ids from now on that no record of the copies has,
    and leader epochs are above those of the source.

    Raises:
        Failure: a leader does not know of the change in time.
    """
    copies: dict[str, list[PartitionStatus]] = defaultdict(list)
    for each in partitions:
        copies[each.topic].append(each)
    for topic, theirs in copies.items():
        settings = promoted_settings(theirs, spare_ids=SPARE_PRODUCER_IDS, spare_epochs=SPARE_LEADER_EPOCHS)
        changes = [Change(key, Operation.DELETE, None) for key in sorted(OF_LINK)]
        changes += [Change(key, Operation.SET, value) for key, value in settings.items()]
        if source_id := _setting(brokers.first, topic, MIRROR_SOURCE_TOPIC_ID):
            changes.append(Change(MIRROR_PROMOTED_TOPIC_ID, Operation.SET, source_id))
        alter_settings(brokers.first, ResourceType.TOPIC, topic, changes, validate_only=False)
    deadline = time.monotonic() + wait_s
    while late := [each for each in view(brokers, name).partitions if each.topic in copies]:
        if time.monotonic() >= deadline:
            raise Failure(f"promoted, but the leader of {late[0].topic}-{late[0].partition} does not accept writers yet")
        time.sleep(LOOK_AGAIN_S)
