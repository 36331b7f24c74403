"""The election of the controller: events in, instructions out.

Owns one broker's view of the election: whether it is controller, and since which epoch. It uses no store, clock or thread.

Rules
  1. The controller's entry is ephemeral; the broker that creates it is controller until the entry is removed or another broker
     raises the epoch.
  2. A claim raises the epoch in the same commit: [make /controller, raise /controller-epoch from the version that was read].
     So every epoch has one controller, and the store refuses a claim that is based on old entries.
  3. `fence` is the version that this broker's own claim gave to /controller-epoch. Every write of the controller checks it.
     The fence never comes from a later read: otherwise a deposed controller could write with its successor's fence.
  4. After an unanswered claim, a lost connection or a refused write, a broker first reads the two entries again. If it finds
     its own claim, it is controller.

States
    FOLLOWING    another broker is controller, or the controller is unknown
    CLAIMING     a claim is in progress
    LEADING      this broker is controller
    STOPPED      it is no candidate any more
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from msgspec import Struct

from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.store_entries import ControllerEntry
from barnabas.cluster.store.interface import ABSENT, Check, Entry, Operation, Put, Remove, SessionState


class ElectionState(Enum):
    FOLLOWING = "following"
    CLAIMING = "claiming"
    LEADING = "leading"
    STOPPED = "stopped"


# Events


class ControllerReadEvent(Struct, frozen=True):
    """The current entries CONTROLLER and CONTROLLER_EPOCH."""

    controller: Entry | None
    epoch: Entry | None


class ClaimOutcome(Enum):
    """The result of the claim."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteRefusedEvent(Struct, frozen=True):
    """The fence refused a write of this controller."""


class StopEvent(Struct, frozen=True):
    """The broker stops; the controller's entry must be removed at once."""


ElectionEvent = ControllerReadEvent | ClaimOutcome | SessionState | WriteRefusedEvent | StopEvent


# Instructions


class ReadController(Struct, frozen=True):
    """Read the two entries and report them (ControllerReadEvent)."""


class Claim(Struct, frozen=True):
    """Commit these operations and report the result (ClaimOutcome)."""

    operations: tuple[Operation, ...]


class Withdraw(Struct, frozen=True):
    """Commit these operations, then read the entries, even if the commit was refused or got no answer."""

    operations: tuple[Operation, ...]


class BecomeController(Struct, frozen=True):
    """This broker is controller: load everything, then act."""

    epoch: int
    fence: int


class ResignController(Struct, frozen=True):
    """This broker is not controller any more: its running commands fail with NOT_CONTROLLER."""

    reason: str


ElectionInstruction = ReadController | Claim | Withdraw | BecomeController | ResignController


class Election:
    """See the module.

    Args:
        incarnation: unique id of this process among all processes with the broker's id.
    """

    def __init__(self, broker_id: int, incarnation: str) -> None:
        self.broker_id = broker_id
        self.incarnation = incarnation
        self.state = ElectionState.FOLLOWING
        self.controller_entry: ControllerEntry | None = None  # as last read
        self.fence: int | None = None  # while LEADING
        self._claim = 0  # the epoch of the last claim
        self._claimed_fence = 0

    @property
    def is_leading(self) -> bool:
        return self.state is ElectionState.LEADING

    def handle(self, event: ElectionEvent) -> list[ElectionInstruction]:
        if self.state is ElectionState.STOPPED:
            return []
        match event:
            case ControllerReadEvent(controller, epoch):
                return self._read(controller, epoch)
            case ClaimOutcome():
                return self._claimed(event)
            case SessionState():
                return self._session(event)
            case WriteRefusedEvent():
                return [*self._leave("another controller was elected"), ReadController()]
            case StopEvent():
                return self._stop()
            case _:
                assert_never(event)

    def _read(self, controller: Entry | None, epoch: Entry | None) -> list[ElectionInstruction]:
        self.controller_entry = None if controller is None else store_entries.decode_controller(controller.value)
        current = 0 if epoch is None else int(store_entries.decode(epoch.value))
        version = ABSENT if epoch is None else epoch.version
        if controller is None or self.controller_entry is None:
            return [*self._leave("its entry is gone"), self._stand(current, version)]
        if not self._is_mine(self.controller_entry):
            left = self._leave(f"broker {self.controller_entry.broker_id} was elected")
            self.state = ElectionState.FOLLOWING
            return left
        if (self.controller_entry.epoch, current, version) == (self._claim, self._claim, self._claimed_fence):
            return self._lead()
        # The epoch was raised although this controller's entry exists: the entry is void, but it blocks every election.
        left = self._leave(f"the epoch was raised to {current}")
        self.state = ElectionState.FOLLOWING
        return [*left, _withdraw(version)]

    def _is_mine(self, controller_entry: ControllerEntry) -> bool:
        return (controller_entry.broker_id, controller_entry.incarnation) == (self.broker_id, self.incarnation)

    def _stand(self, epoch: int, version: int) -> Claim:
        self.state = ElectionState.CLAIMING
        self._claim = epoch + 1
        self._claimed_fence = version + 1  # ABSENT is -1: the first version is 0
        controller_entry = store_entries.encode_controller(ControllerEntry(self.broker_id, self._claim, self.incarnation))
        return Claim(
            (
                Put(store_entries.CONTROLLER, controller_entry, ABSENT, ephemeral=True),
                Put(store_entries.CONTROLLER_EPOCH, store_entries.encode(self._claim), version),
            )
        )

    def _claimed(self, outcome: ClaimOutcome) -> list[ElectionInstruction]:
        if self.state is not ElectionState.CLAIMING:
            return []
        if outcome is ClaimOutcome.DONE:
            self.controller_entry = ControllerEntry(self.broker_id, self._claim, self.incarnation)
            return self._lead()
        self.state = ElectionState.FOLLOWING
        return [ReadController()]

    def _lead(self) -> list[ElectionInstruction]:
        if self.state is ElectionState.LEADING:
            return []
        self.state = ElectionState.LEADING
        self.fence = self._claimed_fence
        return [BecomeController(self._claim, self._claimed_fence)]

    def _leave(self, reason: str) -> list[ElectionInstruction]:
        if self.state is not ElectionState.LEADING:
            return []
        self.state = ElectionState.FOLLOWING
        self.fence = None
        return [ResignController(reason)]

    def _session(self, state: SessionState) -> list[ElectionInstruction]:
        match state:
            case SessionState.CONNECTED:
                return [ReadController()]
            case SessionState.SUSPENDED:
                return []  # this broker may still be controller, but it can write nothing in the meantime
            case SessionState.EXPIRED | SessionState.CLOSED:
                self.controller_entry = None
                left = self._leave("its session ended")
                self.state = ElectionState.FOLLOWING
                return left

    def _stop(self) -> list[ElectionInstruction]:
        fence = self.fence
        left = self._leave("the broker stops")
        self.state = ElectionState.STOPPED
        return left if fence is None else [*left, _withdraw(fence)]


def _withdraw(epoch_version: int) -> Withdraw:
    """Remove the controller's entry, but never that of a successor: every claim raises the version of the epoch's entry."""
    return Withdraw((Check(store_entries.CONTROLLER_EPOCH, epoch_version), Remove(store_entries.CONTROLLER)))
