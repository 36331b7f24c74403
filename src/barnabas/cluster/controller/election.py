"""Who is controller: the election as events in, instructions out.

Owns what one broker knows of the office: whether it holds it, and if so since which epoch. No store, clock or thread.

Rules
  1. The office is an ephemeral entry; whoever makes it is controller until the entry goes or somebody raises the epoch.
  2. A claim raises the epoch in the same commit: [make /controller, raise /controller-epoch from the version that was read]. So
     every epoch has one controller, and a claim on an old reading is refused.
  3. `fence` is the version that /controller-epoch got by this broker's own claim. Every write of the controller checks it.
     It is never taken from a later reading: that would let a deposed controller write in its successor's name.
  4. Who is in doubt reads. After an unanswered claim, a lost connection or a refused write, nothing is done before the two entries
     were read again, and a broker that finds its own claim there holds the office.

States
    FOLLOWING    somebody else is controller, or it is not known who
    CLAIMING     a claim is under way
    LEADING      this broker is controller
    STOPPED      it does not stand any more
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
    """The entries CONTROLLER and CONTROLLER_EPOCH as they are now."""

    controller: Entry | None
    epoch: Entry | None


class ClaimOutcome(Enum):
    """What became of the claim."""

    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class WriteRefusedEvent(Struct, frozen=True):
    """A write of this controller was refused by its fence."""


class StopEvent(Struct, frozen=True):
    """The broker goes; the office is to be free at once."""


ElectionEvent = ControllerReadEvent | ClaimOutcome | SessionState | WriteRefusedEvent | StopEvent


# Instructions


class ReadController(Struct, frozen=True):
    """Read the two entries and say what they are (OfficeReadEvent)."""


class Claim(Struct, frozen=True):
    """Commit these and say what became of it (ClaimOutcome)."""

    operations: tuple[Operation, ...]


class Withdraw(Struct, frozen=True):
    """Commit these, then read the office; that it is refused or not answered makes no difference."""

    operations: tuple[Operation, ...]


class BecomeController(Struct, frozen=True):
    """This broker is controller: load everything, then act."""

    epoch: int
    fence: int


class ResignController(Struct, frozen=True):
    """It is controller no more: what it has under way fails with NOT_CONTROLLER."""

    reason: str


ElectionInstruction = ReadController | Claim | Withdraw | BecomeController | ResignController


class Election:
    """See the module.

    Args:
        incarnation: names this process, among all that ever had the broker's id.
    """

    def __init__(self, broker_id: int, incarnation: str) -> None:
        self.broker_id = broker_id
        self.incarnation = incarnation
        self.state = ElectionState.FOLLOWING
        self.controller_entry: ControllerEntry | None = None  # who is controller, as last read
        self.fence: int | None = None  # while LEADING
        self._claim = 0  # the epoch that was last claimed
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
        # Somebody raised the epoch under this controller: the entry stands for nothing, and while it stands nobody is elected.
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
                return []  # what it holds it may still hold; nothing can be written meanwhile
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
    """Free the office, but not a successor's: whoever claims it raises the epoch's version."""
    return Withdraw((Check(store_entries.CONTROLLER_EPOCH, epoch_version), Remove(store_entries.CONTROLLER)))
