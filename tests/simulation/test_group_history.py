"""The checker of groups catches what must not be, and nothing else."""

from __future__ import annotations

import pytest

from barnabas.testing.simulation.group_history import GroupHistory
from barnabas.testing.simulation.history import PartitionHistory, Violation

PLACE = "t", 0


@pytest.fixture
def book() -> GroupHistory:
    return GroupHistory("g")


def test_a_partition_belongs_to_one_member_of_a_generation(book: GroupHistory) -> None:
    book.assigned(1, "a", [PLACE])
    book.assigned(1, "a", [PLACE])
    book.assigned(2, "b", [PLACE])
    with pytest.raises(Violation, match="belongs to a and to b in generation 1"):
        book.assigned(1, "b", [PLACE])


def test_a_commit_may_be_late_but_not_begun_late(book: GroupHistory) -> None:
    book.assigned(1, "a", [PLACE])
    before = book.committing(PLACE, 5, 1)
    book.assigned(2, "b", [PLACE])
    book.committed(before)
    with pytest.raises(Violation, match="generation 1 was taken when generation 2 had begun"):
        book.committed(book.committing(PLACE, 6, 1))


def test_what_is_committed_is_not_older_than_what_was_acknowledged(book: GroupHistory) -> None:
    book.fetched(PLACE, -1)
    book.committed(book.committing(PLACE, 5, 1))
    book.committing(PLACE, 7, 1)
    for offset in (5, 7):
        book.fetched(PLACE, offset)
    with pytest.raises(Violation, match="is -1"):
        book.fetched(PLACE, -1)


@pytest.mark.parametrize(("given", "complaint"), [(3, None), (2, "nobody has got 2")])
def test_everything_below_what_is_committed_was_given_to_somebody(book: GroupHistory, given: int, complaint: str | None) -> None:
    history = PartitionHistory("t-0", kept={0, 1, 2, 3})
    book.gave(PLACE, 0, given)
    book.committed(book.committing(PLACE, 3, 1))
    if complaint is None:
        book.check(PLACE, 3, history)
    else:
        with pytest.raises(Violation, match=complaint):
            book.check(PLACE, 3, history)
