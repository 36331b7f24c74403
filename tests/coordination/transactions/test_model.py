"""Producers, zombies, failovers and lost answers in any order, against what must hold of every transaction.

The model knows what each producer was told and what stands in the partitions; nothing of how the coordinator works.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.coordination.transactions.data_types import Initialised
from barnabas.coordination.transactions.transaction import Owner, State
from barnabas.errors import ErrorCode
from tests.coordination.transactions.driver import TIMEOUT_MS, A, B, C, Driver

PARTITIONS = (A, B, C)
pick_partitions = st.sets(st.sampled_from(PARTITIONS), min_size=1)


class Transactions(RuleBasedStateMachine):
    """`given` are all owners that the id ever had, oldest first, each as somebody was told."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.given: list[Owner] = []
        self.added: dict[Owner, set[tuple[str, int]]] = {}  # partitions that each owner may write to
        self.ends: dict[Owner, bool] = {}  # the promised end for each owner: commit or abort

    def told(self, owner: Owner) -> None:
        if owner not in self.given:
            self.given.append(owner)

    @rule(known=st.integers(0, 3))
    def init(self, known: int) -> None:
        expected = self.given[-known] if 0 < known <= len(self.given) else Owner(-1, -1)
        found = self.driver.init(expected=expected)
        if isinstance(found, Initialised):
            self.told(found.owner)
            assert found.owner == self.given[-1]
        else:
            assert found is ErrorCode.CONCURRENT_TRANSACTIONS or (
                found is ErrorCode.PRODUCER_FENCED and expected.producer_id != -1
            )

    @rule(back=st.integers(1, 3), partitions=pick_partitions)
    def add(self, back: int, partitions: set[tuple[str, int]]) -> None:
        if back > len(self.given):
            return
        asking = self.given[-back]
        code = self.driver.add(asking, *partitions)
        if code is ErrorCode.NONE:
            assert back == 1
            assert asking not in self.ends
            self.added.setdefault(asking, set()).update(partitions)
        elif back > 1:
            assert code in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING}

    @rule(back=st.integers(1, 3), commit=st.booleans())
    def end(self, back: int, commit: bool) -> None:
        if back > len(self.given):
            return
        asking = self.given[-back]
        found = self.driver.end(asking, commit=commit)
        if isinstance(found, Owner):
            self.told(found)
            assert self.ends.setdefault(asking, commit) == commit

    @rule(partitions=pick_partitions)
    def markers_arrive(self, partitions: set[tuple[str, int]]) -> None:
        self.driver.write_markers(sorted(partitions))

    @rule()
    def all_markers_arrive(self) -> None:
        """Then nothing is left undecided half-way."""
        self.driver.write_markers()
        found = self.driver.shard.transactions.get("t")
        assert found is None or found.state not in {State.PREPARE_COMMIT, State.PREPARE_ABORT}

    @rule()
    def the_coordinator_moves(self) -> None:
        self.driver.load()

    @rule(passed_ms=st.sampled_from([1, TIMEOUT_MS // 2, TIMEOUT_MS]))
    def time_passes(self, passed_ms: int) -> None:
        self.driver.pass_time(passed_ms)

    @invariant()
    def markers_keep_promises(self) -> None:
        """The markers of one transaction agree, stand past its owner's epoch, and are what the owner was promised."""
        decided: dict[Owner, bool] = {}
        for _, marker in self.driver.marked:
            ended = Owner(marker.producer_id, marker.producer_epoch - 1)  # each end increases the epoch
            assert decided.setdefault(ended, marker.commit) == marker.commit
            assert self.ends.get(ended, False) == marker.commit or not marker.commit
        for owner, commit in self.ends.items():
            assert decided.get(owner, commit) == commit

    @invariant()
    def a_complete_transaction_is_marked_everywhere(self) -> None:
        found = self.driver.shard.transactions.get("t")
        for owner, partitions in self.added.items():
            ended_here = found is not None and owner in {
                Owner(found.producer_id, found.producer_epoch - 1),
                Owner(found.producer_id, found.producer_epoch),
            }
            is_open = (
                found is not None and ended_here and found.state in {State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT}
            )
            if not is_open:
                marked = {where for where, m in self.driver.marked if Owner(m.producer_id, m.producer_epoch - 1) == owner}
                assert partitions <= marked, f"{owner} wrote to {partitions}, and markers are in {marked}"

    @invariant()
    def replaying_the_log_gives_the_same(self) -> None:
        known = dict(self.driver.shard.transactions)
        again = Driver.replayed(self.driver)
        assert {name: each.owner for name, each in again.items()} == {name: each.owner for name, each in known.items()}
        assert {name: each.state for name, each in again.items()} == {name: each.state for name, each in known.items()}


TestTransactions = Transactions.TestCase
TestTransactions.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
