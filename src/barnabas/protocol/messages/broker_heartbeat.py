"""BrokerHeartbeatRequest and BrokerHeartbeatResponse. Written by tools/generate_messages.py; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from barnabas.protocol.base_message import FieldSpec, Message


class BrokerHeartbeatRequest(Message):
    __slots__ = (
        "broker_id",
        "broker_epoch",
        "current_metadata_offset",
        "want_fence",
        "want_shut_down",
        "offline_log_dirs",
        "cordoned_log_dirs",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("broker_id", "int32"),
        FieldSpec("broker_epoch", "int64"),
        FieldSpec("current_metadata_offset", "int64"),
        FieldSpec("want_fence", "bool"),
        FieldSpec("want_shut_down", "bool"),
        FieldSpec("offline_log_dirs", "uuid", is_array=True, first_version=1, tag=0),
        FieldSpec("cordoned_log_dirs", "uuid", is_array=True, first_version=2, tag=1),
    )

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: Sequence[UUID] = (),
        cordoned_log_dirs: Sequence[UUID] | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.current_metadata_offset: int = current_metadata_offset
        self.want_fence: bool = want_fence
        self.want_shut_down: bool = want_shut_down
        self.offline_log_dirs: Sequence[UUID] = offline_log_dirs
        self.cordoned_log_dirs: Sequence[UUID] | None = cordoned_log_dirs


class BrokerHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "is_caught_up",
        "is_fenced",
        "should_shut_down",
    )
    FIRST_VERSION, LAST_VERSION, FIRST_FLEXIBLE_VERSION = 0, 2, 0
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = (
        FieldSpec("throttle_time_ms", "int32"),
        FieldSpec("error_code", "int16"),
        FieldSpec("is_caught_up", "bool"),
        FieldSpec("is_fenced", "bool"),
        FieldSpec("should_shut_down", "bool"),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.is_caught_up: bool = is_caught_up
        self.is_fenced: bool = is_fenced
        self.should_shut_down: bool = should_shut_down
