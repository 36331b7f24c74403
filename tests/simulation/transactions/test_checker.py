"""The checker of transactions, on histories made by hand: each anomaly is told by its name, and what is allowed passes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.transactions.ledger import Ledger, Outcome, Owner, Seen, Transaction
from barnabas.testing.simulation.transactions.verdict import Verdict

A, B, KEYED = ("a", 0), ("b", 0), ("keyed", 0)
FIRST, SECOND = Owner(1, 0), Owner(1, 1)


class Story:
    """A history as it goes on; each step is a second."""

    def __init__(self) -> None:
        self.ledger = Ledger([A, B, KEYED], ["keyed"])
        self.now_s = 0.0
        self.contents: dict[TopicPartition, list[Seen]] = {A: [], B: [], KEYED: []}
        self._ends = dict.fromkeys(self.contents, 0)

    def tick(self) -> float:
        self.now_s += 1.0
        return self.now_s

    def begin(self, writer: str = "w", owner: Owner = FIRST) -> Transaction:
        return self.ledger.began(writer, owner, self.tick())

    def write(
        self,
        transaction: Transaction,
        place: TopicPartition,
        *,
        key: bytes | None = None,
        source: bytes | None = None,
        seen: bool = True,
    ) -> Seen:
        """One acknowledged record; `seen` by readers of committed records at the end."""
        offset = self._ends[place]
        self._ends[place] += 1
        value = f"{place[0]}{offset}".encode()
        self.ledger.sending(transaction, place, value, key=key, source=source)
        self.ledger.acknowledged(transaction, place, offset, [value], self.tick())
        record = Seen(offset, value, key)
        if seen:
            self.contents[place].append(record)
        return record

    def end(self, transaction: Transaction, outcome: Outcome) -> None:
        if outcome is not Outcome.ABORTED:
            self.ledger.asking_commit(transaction, self.tick())
        self.ledger.ended(transaction, outcome, self.tick())

    def read(self, place: TopicPartition, record: Seen, by: Transaction | None = None) -> None:
        self.ledger.read_committed(place, [record], high_watermark=99, stable=99, log_start=0, by=by)

    def judge(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        Verdict(self.ledger, self.contents, offsets or {}).check()


@pytest.fixture
def story() -> Story:
    return Story()


def test_transactions_that_commit_and_abort_pass(story: Story) -> None:
    one, other = story.begin(), story.begin("v")
    story.write(one, A)
    story.write(other, A, seen=False)
    record = story.write(one, B)
    story.end(one, Outcome.COMMITTED)
    story.end(other, Outcome.ABORTED)
    story.read(B, record)
    story.judge()


def test_write_cycles_of_two_producers_are_what_the_protocol_allows(story: Story) -> None:
    one, other = story.begin(), story.begin("v")
    story.write(one, A)
    story.write(other, A)
    story.write(other, B)
    story.write(one, B)
    story.end(one, Outcome.COMMITTED)
    story.end(other, Outcome.COMMITTED)
    story.judge()


@pytest.mark.parametrize(("outcome", "name"), [(Outcome.ABORTED, "aborted read"), (None, "pre-committed read")])
def test_reads_of_what_is_not_committed(story: Story, outcome: Outcome | None, name: str) -> None:
    transaction = story.begin()
    record = story.write(transaction, A)
    if outcome is not None:
        story.end(transaction, outcome)
    with pytest.raises(Violation, match=name):
        story.read(A, record)


@pytest.mark.parametrize(("outcome", "name"), [(Outcome.UNKNOWN, "torn transaction"), (Outcome.COMMITTED, "lost write")])
def test_half_of_a_transaction(story: Story, outcome: Outcome, name: str) -> None:
    transaction = story.begin()
    story.write(transaction, A)
    story.write(transaction, B, seen=False)
    story.end(transaction, outcome)
    with pytest.raises(Violation, match=name):
        story.judge()


def test_nothing_or_all_of_what_has_an_unknown_end(story: Story) -> None:
    for seen in (False, True):
        transaction = story.begin()
        story.write(transaction, A, seen=seen)
        story.write(transaction, B, seen=seen)
        story.end(transaction, Outcome.UNKNOWN)
    story.judge()


def test_an_aborted_transaction_that_is_there_at_the_end(story: Story) -> None:
    transaction = story.begin()
    story.write(transaction, A)
    story.end(transaction, Outcome.ABORTED)
    with pytest.raises(Violation, match="aborted read"):
        story.judge()


def test_a_write_cycle_of_one_transactional_id(story: Story) -> None:
    one, other = story.begin(), story.begin()
    story.write(one, A)
    story.write(other, A)
    story.write(other, B)
    story.write(one, B)
    story.end(one, Outcome.COMMITTED)
    story.end(other, Outcome.COMMITTED)
    with pytest.raises(Violation, match=r"write cycle \(G0\)"):
        story.judge()


def test_a_transaction_that_had_ended_before_another_began(story: Story) -> None:
    one = story.begin()
    story.write(one, B, seen=False)
    story.end(one, Outcome.COMMITTED)
    late = story.begin("v")
    story.write(late, B)
    story.end(late, Outcome.COMMITTED)
    story.contents[B].append(Seen(9, b"b0", None))
    with pytest.raises(Violation, match="had ended before"):
        story.judge()


def test_circular_information_flow(story: Story) -> None:
    one, other = story.begin(), story.begin("v")
    first, second = story.write(one, A), story.write(other, B)
    story.ledger.asking_commit(one, story.tick())
    story.ledger.asking_commit(other, story.tick())
    story.read(A, first, by=other)
    story.read(B, second, by=one)
    story.end(one, Outcome.COMMITTED)
    story.end(other, Outcome.COMMITTED)
    with pytest.raises(Violation, match=r"circular information flow \(G1c\)"):
        story.judge()


def test_a_zombie_is_told_nothing(story: Story) -> None:
    story.ledger.owns("w", "old", FIRST, story.tick())
    zombie = story.begin()
    record = story.write(zombie, A)
    story.ledger.owns("w", "new", SECOND, story.tick())
    with pytest.raises(Violation, match="zombie: a batch"):
        story.write(zombie, A)
    story.ledger.asking_commit(zombie, story.tick())
    with pytest.raises(Violation, match="zombie: the record"):
        story.read(A, record)
    with pytest.raises(Violation, match="zombie: a commit"):
        story.ledger.ended(zombie, Outcome.COMMITTED, story.tick())
    with pytest.raises(Violation, match="were both told"):
        story.ledger.owns("w", "third", SECOND, story.tick())


def test_an_offset_holds_one_value_and_a_value_lies_at_one_offset(story: Story) -> None:
    transaction = story.begin()
    record, other = story.write(transaction, A), story.write(transaction, A)
    story.ledger.asking_commit(transaction, story.tick())
    with pytest.raises(Violation, match="offset 1 holds"):
        story.read(A, Seen(1, record.value, None))
    with pytest.raises(Violation, match="was read at 7 too"):
        story.read(A, Seen(7, other.value, None))
    with pytest.raises(Violation, match="nobody sent it there"):
        story.read(A, Seen(8, b"b0", None))
    with pytest.raises(Violation, match="the log ends at 1"):
        story.ledger.ends_at(A, 1)


def test_of_a_compacted_partition_the_last_committed_record_of_a_key_is_there(story: Story) -> None:
    for seen in (False, True):
        transaction = story.begin()
        story.write(transaction, KEYED, key=b"k", seen=seen)
        story.end(transaction, Outcome.COMMITTED)
    story.judge()
    story.contents[KEYED].clear()
    with pytest.raises(Violation, match="the last record of b'k'"):
        story.judge()


@pytest.mark.parametrize(
    ("committed", "copies", "name"),
    [(1, 1, ""), (1, 2, "copied 2 times"), (1, 0, "not copied"), (0, 1, "torn transaction"), (2, 1, "torn transaction")],
)
def test_copies_are_made_exactly_once(story: Story, committed: int, copies: int, name: str) -> None:
    transaction = story.begin("writer")
    record = story.write(transaction, A)
    story.end(transaction, Outcome.COMMITTED)
    for _ in range(max(copies, 1)):
        copy = story.begin("copier")
        story.write(copy, B, source=record.value if copies else None)
        copy.offsets[A] = 1
        story.end(copy, Outcome.COMMITTED)
    if not name:
        story.judge({A: committed})
        return
    with pytest.raises(Violation, match=name):
        story.judge({A: committed})


def test_a_reader_that_has_stepped_over_a_committed_record(story: Story) -> None:
    transaction = story.begin()
    story.write(transaction, A)
    story.end(transaction, Outcome.COMMITTED)
    verdict = Verdict(story.ledger, story.contents, {})
    verdict.check_reader(A, {0}, 1)
    with pytest.raises(Violation, match="poll skip"):
        verdict.check_reader(A, set(), 1)
