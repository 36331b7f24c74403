"""A candidate for controller: executes the election's instructions on a store.

Its methods wait for the store, so they run on the store's thread. Callbacks run there too.

The caller passes in session events and watch events of the controller's entries (`concerns`), and calls `settle` again if the
last call ended without a decision because the store was unavailable. A call does not retry while the store is unavailable.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.cluster.controller.election import (
    BecomeController,
    Claim,
    ClaimOutcome,
    ControllerReadEvent,
    Election,
    ElectionEvent,
    ElectionInstruction,
    ReadController,
    ResignController,
    StopEvent,
    Withdraw,
)
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.store.interface import ROOT, MetadataStore, Operation, SessionEvent, StoreConflict, StoreUnavailable

logger = logging.getLogger(__name__)

CONTROLLER_PATHS = frozenset({ROOT, store_entries.CONTROLLER, store_entries.CONTROLLER_EPOCH})


class Candidate:
    """See the module.

    Args:
        on_take, on_leave: called when the broker becomes controller, and when it stops being controller. A caller that reads
        `election` after each call needs neither.
    """

    def __init__(
        self,
        store: MetadataStore,
        election: Election,
        on_take: Callable[[BecomeController], None] = lambda _: None,
        on_leave: Callable[[ResignController], None] = lambda _: None,
    ) -> None:
        self.election = election
        self.undecided = False  # the store was unavailable: call `settle` when it is back
        self._store = store
        self._on_take = on_take
        self._on_leave = on_leave

    @staticmethod
    def concerns(paths: Sequence[str]) -> bool:
        """Whether the caller must call `settle` after a change of these paths."""
        return not CONTROLLER_PATHS.isdisjoint(paths)

    def settle(self) -> None:
        """Read the controller's entry, and claim it if there is none."""
        self._carry_out([ReadController()])

    def tell(self, event: ElectionEvent) -> None:
        """Handle an event: a write was refused, or the broker stops."""
        self._carry_out(self.election.handle(event))

    def session_changed(self, event: SessionEvent) -> None:
        self._carry_out(self.election.handle(event.state))

    def stop(self) -> None:
        """Remove the controller's entry if it is this broker's, and stop being a candidate."""
        self._carry_out(self.election.handle(StopEvent()))

    def _carry_out(self, instructions: Sequence[ElectionInstruction]) -> None:
        waiting = deque(instructions)
        while waiting:
            match waiting.popleft():
                case ReadController():
                    waiting += self._read()
                case Claim(operations):
                    waiting += self.election.handle(self._commit(operations))
                case Withdraw(operations):
                    self._commit(operations)
                    waiting.append(ReadController())
                case BecomeController() as taken:
                    logger.info("event=controller-elected broker=%d epoch=%d", self.election.broker_id, taken.epoch)
                    self._on_take(taken)
                case ResignController() as left:
                    logger.info("event=controller-left broker=%d reason=%r", self.election.broker_id, left.reason)
                    self._on_leave(left)

    def _read(self) -> Sequence[ElectionInstruction]:
        # Read the epoch first: every election raises it. In the other order a controller that was elected between the two
        # readings would look like one whose epoch was raised, and its entry would be removed.
        try:
            epoch = self._store.get(store_entries.CONTROLLER_EPOCH)
            event = ControllerReadEvent(self._store.get(store_entries.CONTROLLER), epoch)
        except StoreUnavailable:
            self.undecided = True
            return ()
        self.undecided = False
        return self.election.handle(event)

    def _commit(self, operations: Sequence[Operation]) -> ClaimOutcome:
        try:
            self._store.commit(operations)
        except StoreConflict:
            return ClaimOutcome.REFUSED
        except StoreUnavailable:
            return ClaimOutcome.UNKNOWN
        return ClaimOutcome.DONE
