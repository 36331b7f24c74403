"""What the coordinators' cores take and give: who calls, what time it is, and what is to be done.

A core is called with a request and answers with an `CoordinatorResult`. The runtime carries it out in this order: append the records,
replay them, wait until they are committed, then let the replies go and tell the core with `receive_written`.

Replies to requests that wait for others (JoinGroup, SyncGroup) are addressed by a token: whatever object the caller handed in.
The core only keeps it and gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field

from barnabas.coordination.version_prefix import Record
from barnabas.errors import ErrorCode

Token = object
NO_PRODUCER = -1


class Now(NamedTuple):
    """Two readings of the clock: one is written down, the other counts.

    A step of the wall clock must not throw members out of their groups, so timeouts are counted on the steady one.
    """

    wall_ms: int  # milliseconds since 1970-01-01 UTC
    steady_ms: int  # milliseconds since some moment; never goes back


MayDescribe = Callable[[Collection[str]], Collection[str]]  # of names of topics, those that who asks may know of


def may_describe_all(names: Collection[str]) -> Collection[str]:
    return names


class Caller(NamedTuple):
    """The client behind a request."""

    api_version: int
    client_id: str
    client_host: str
    fresh_id: str = ""  # a new random name, used if this request makes a member
    may_describe: MayDescribe = may_describe_all


class Reply(NamedTuple):
    """Answer the request of `token` with `response`."""

    token: Token
    response: Any


class Producer(NamedTuple):
    """Whose transaction records belong to."""

    producer_id: int
    epoch: int


class Written:
    """Something a core wants to hear of when its records are committed, or could not be written."""

    __slots__ = ()


class CoordinatorResult(Struct):
    """What follows from one call of a core.

    `records` go into the log as one batch, of the transaction of `producer` if there is one. `replays` is False where the state
    already holds what they say: the classic protocol moves members about in memory and writes down only the result. `notes` say
    in words what happened.
    """

    response: Any = None
    records: list[Record] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    written: Written | None = None
    replays: bool = True
    producer: Producer | None = None

    def reply(self, token: Token, response: Any) -> None:
        self.replies.append(Reply(token, response))


class GroupConfig(Protocol):
    """The broker settings that coordinators obey, named as Kafka's keys; read anew each time, since some can be altered."""

    @property
    def group_initial_rebalance_delay_ms(self) -> int: ...
    @property
    def group_min_session_timeout_ms(self) -> int: ...
    @property
    def group_max_session_timeout_ms(self) -> int: ...
    @property
    def group_max_size(self) -> int: ...
    @property
    def group_consumer_assignors(self) -> tuple[str, ...]: ...
    @property
    def group_consumer_max_size(self) -> int: ...
    @property
    def group_consumer_migration_policy(self) -> str: ...
    @property
    def group_consumer_regex_refresh_interval_ms(self) -> int: ...
    @property
    def group_coordinator_rebalance_protocols(self) -> tuple[str, ...]: ...
    @property
    def offset_metadata_max_bytes(self) -> int: ...
    @property
    def offsets_commit_timeout_ms(self) -> int: ...
    @property
    def offsets_retention_minutes(self) -> int: ...
    @property
    def offsets_retention_check_interval_ms(self) -> int: ...


def response_error_of(code: ErrorCode) -> ErrorCode:
    """What a client of a group is told when the log refused its records: errors of the topic make no sense to it."""
    return _RESPONSE_ERRORS.get(code, code)


_RESPONSE_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
