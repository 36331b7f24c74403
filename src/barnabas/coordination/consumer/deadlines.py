"""The deadlines of consumer groups, and the events after their records are written."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from barnabas.coordination.result import Written


class Deadline(StrEnum):
    SESSION = "session"  # the session of a member expired
    REVOCATION = "revocation"  # a member has not given up its revoked partitions in time
    JOIN = "join"  # a classic member has not joined again in time
    SYNC = "sync"  # a classic member has not sent SyncGroup in time
    ASSIGNMENT = "assignment"  # the group may compute its next target assignment


class ConsumerTimerKey(NamedTuple):
    kind: Deadline
    group_id: str
    member_id: str = ""


class Changed(Struct, Written, frozen=True):
    """The members of a group have changed, or the write failed; `key` is set if a deadline caused it."""

    group_id: str
    key: ConsumerTimerKey | None = None
