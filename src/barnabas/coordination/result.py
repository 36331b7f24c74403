"""The input and output of the coordinators' cores: the client, the time, and the actions to take.

A core is called with a request and returns a `CoordinatorResult`. The runtime executes it in this order: append the records,
replay them, wait until they are committed, then send the replies and call `receive_written` of the core.

Replies to requests that wait for others (JoinGroup, SyncGroup) have a token, any object of the caller. The core only stores and
returns it.
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
    """Two clock readings: wall time for records, monotonic time for timeouts.

    A step of the wall clock must not remove members from their groups, so timeouts use the monotonic clock.
    """

    wall_ms: int  # milliseconds since 1970-01-01 UTC
    steady_ms: int  # milliseconds of the monotonic clock


MayDescribe = Callable[[Collection[str]], Collection[str]]  # returns the topic names that the client may see


def may_describe_all(names: Collection[str]) -> Collection[str]:
    return names


class Caller(NamedTuple):
    """The client behind a request."""

    api_version: int
    client_id: str
    client_host: str
    fresh_id: str = ""  # a random member id, used if this request creates a member
    may_describe: MayDescribe = may_describe_all


class Reply(NamedTuple):
    """Answer the request of `token` with `response`."""

    token: Token
    response: Any


class Producer(NamedTuple):
    """The producer of records in a transaction."""

    producer_id: int
    epoch: int


class Written:
    """An event for the core, sent when its records are committed or could not be written."""

    __slots__ = ()


class CoordinatorResult(Struct):
    """The result of one call of a core.

    `records` go into the log as one batch, of the transaction of `producer` if there is one. `replays` is False if the state
    has the changes already: the classic protocol changes members in memory and writes only the result. `notes` describe the
    events as text.
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
    """The broker settings of coordinators, named as Kafka's keys; read again each time, since some are dynamic."""

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
    """The error code for a client of a group when the log refused its records, since errors of the topic are meaningless to
    it."""
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
