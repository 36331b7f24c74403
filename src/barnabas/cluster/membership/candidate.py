"""A broker standing for controller: the election's instructions carried out on a store.

Blocks as the store does: it is for the thread on which the store is used. Callbacks are called there too.

Who drives it tells it of session events and of watch events on the office (`concerns`), and calls `settle` again when the last call
ended undecided: because the store was away. Nothing is repeated within a call while the store is away.
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
        on_take, on_leave: the broker is controller from now on; it is no more. Who asks `election` after each call needs neither.
    """

    def __init__(
        self,
        store: MetadataStore,
        election: Election,
        on_take: Callable[[BecomeController], None] = lambda _: None,
        on_leave: Callable[[ResignController], None] = lambda _: None,
    ) -> None:
        self.election = election
        self.undecided = False  # the store was away: call `settle` when it is back
        self._store = store
        self._on_take = on_take
        self._on_leave = on_leave

    @staticmethod
    def concerns(paths: Sequence[str]) -> bool:
        """Whether a change of these is to be followed by `settle`."""
        return not CONTROLLER_PATHS.isdisjoint(paths)

    def settle(self) -> None:
        """Read who is controller, and stand where nobody is."""
        self._carry_out([ReadController()])

    def tell(self, event: ElectionEvent) -> None:
        """Something happened: a write was refused, the broker stops."""
        self._carry_out(self.election.handle(event))

    def session_changed(self, event: SessionEvent) -> None:
        self._carry_out(self.election.handle(event.state))

    def stop(self) -> None:
        """Give the office up where it is held, and stand no more."""
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
        # The epoch first: every election raises it, so a controller that was elected between the two readings is not taken for one
        # under whom somebody raised it, whose office is to be freed.
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
