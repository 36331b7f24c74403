"""The offsets of the consumer groups of sinks: all of a group, changed, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.client.administration import LAST_COMMIT_WITH_NAMES, commit_offsets, coordinator_of
from barnabas.client.blocking import BlockingClient
from barnabas.client.errors import PartitionError, ResourceError
from barnabas.client.operations import refresh
from barnabas.client.plans import call
from barnabas.client.results import TopicPartition
from barnabas.error_codes import ErrorCode
from barnabas.errors import BarnabasError
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.partitions import by_topic

_BUSY = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.UNKNOWN_MEMBER_ID)
_GONE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_GROUP_ID)


def offsets_of(client: BlockingClient, group: str) -> dict[TopicPartition, int]:
    """All committed offsets of a group. Raises ClientError, KafkaError."""
    request = OffsetFetchRequest(
        group_id=group, topics=None, groups=[OffsetFetchRequestGroup(group_id=group, topics=None, member_epoch=-1)]
    )
    response = client.run(call(request, _coordinator(client, group), LAST_COMMIT_WITH_NAMES))
    answer = response.groups[0] if response.groups else response
    if answer.error_code in _GONE:
        return {}
    _raise_for(answer.error_code, group)
    return {
        (topic.name, item.partition_index): item.committed_offset
        for topic in answer.topics
        for item in topic.partitions
        if item.committed_offset >= 0
    }


class StillRuns(BarnabasError):
    """The group has members."""


class UnknownPlace(BarnabasError):
    """There is no such topic or partition."""


def set_offsets(client: BlockingClient, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit offsets for a group without members. Raises StillRuns, UnknownPlace, and as `offsets_of`."""
    if not offsets:
        return
    found = client.topics_by_name(sorted({topic for topic, _ in offsets}))
    for topic, partition in offsets:  # a commit would be tried again for a minute
        if topic not in found or partition not in found[topic].partitions:
            raise UnknownPlace(f"there is no partition {topic}-{partition}")
    try:
        client.run(commit_offsets(client.config, client.cluster, group, offsets))
    except PartitionError as error:
        if error.code != ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        raise StillRuns(group) from None


def remove_offsets(client: BlockingClient, group: str, places: Iterable[TopicPartition]) -> None:
    """Remove the offsets of some partitions. Raises as `offsets_of`."""
    topics = [
        OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in items])
        for name, items in by_topic(places).items()
    ]
    if not topics:
        return
    response = client.run(call(OffsetDeleteRequest(group_id=group, topics=topics), _coordinator(client, group)))
    if response.error_code not in _GONE:
        _raise_for(response.error_code, group)
    for topic in response.topics:
        for item in topic.partitions:
            _raise_for(item.error_code, group)


def remove_group(client: BlockingClient, group: str) -> None:
    """Remove a group with all of its offsets. Raises as `offsets_of`."""
    response = client.run(call(DeleteGroupsRequest(groups_names=[group]), _coordinator(client, group)))
    for each in response.results:
        if each.error_code not in _GONE:
            _raise_for(each.error_code, group)


def _coordinator(client: BlockingClient, group: str) -> int:
    client.run(refresh(client.config, client.cluster, []))
    return client.run(coordinator_of(client.config, group))


def _raise_for(code: int, group: str) -> None:
    if code in _BUSY:
        raise StillRuns(group)
    if code:
        raise ResourceError(ErrorCode(code), f"group {group}")
