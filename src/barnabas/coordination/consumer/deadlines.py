"""The deadlines of consumer groups, and what the shell is to tell when something was written."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from barnabas.coordination.result import Written


class Deadline(StrEnum):
    SESSION = "session"  # a member is silent
    REVOCATION = "revocation"  # a member has not given up what it was told to
    JOIN = "join"  # a classic member does not join again
    SYNC = "sync"  # a classic member does not ask for its assignment
    ASSIGNMENT = "assignment"  # the next target assignment may be made


class ConsumerTimerKey(NamedTuple):
    kind: Deadline
    group_id: str
    member_id: str = ""


class Changed(Struct, Written, frozen=True):
    """The members of a group have changed, or were to; because of a deadline, if there is a key."""

    group_id: str
    key: ConsumerTimerKey | None = None
