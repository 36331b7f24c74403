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
        ("broker_id", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("broker_epoch", "int64", False, 0, 32767, 32767, 32767, None, None),
        ("current_metadata_offset", "int64", False, 0, 32767, 32767, 32767, None, None),
        ("want_fence", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("want_shut_down", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("offline_log_dirs", "uuid", True, 1, 32767, 32767, 32767, 0, None),
        ("cordoned_log_dirs", "uuid", True, 2, 32767, 32767, 32767, 1, None),
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
        ("throttle_time_ms", "int32", False, 0, 32767, 32767, 32767, None, None),
        ("error_code", "int16", False, 0, 32767, 32767, 32767, None, None),
        ("is_caught_up", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("is_fenced", "bool", False, 0, 32767, 32767, 32767, None, None),
        ("should_shut_down", "bool", False, 0, 32767, 32767, 32767, None, None),
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
