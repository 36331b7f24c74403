"""A short form of `make exactlyonce`, and that its check sees what it is there to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.torture.check import Broken
from tests.torture.transactions.check import Reader
from tests.torture.transactions.plan import SHARED, Plan, output_of, value_of
from tests.torture.transactions.rounds import torture

UNUSED = "127.0.0.1:1"  # nothing listens on port 1


@pytest.mark.timeout(400)  # a cluster, three clients and kills are slow on a busy machine
def test_each_record_is_copied_once_whoever_is_killed() -> None:
    rounds = list(torture(Plan(rounds=2, seed=5, seconds=1.0, rate=200, with_java=False)))
    assert ["broker" in each.victim for each in rounds] == [True, False]
    assert rounds[-1].sent > 0


@pytest.fixture
def reader() -> Iterator[Reader]:
    made = Reader(UNUSED)
    yield made
    made.close()


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_record_that_is_missing_or_there_twice_is_seen(reader: Reader, number: int) -> None:
    reader.receive(output_of(SHARED), 1, value_of(1, 0))
    with pytest.raises(Broken, match="should be"):
        reader.receive(output_of(SHARED), 1, value_of(1, number))
    reader.receive(output_of(SHARED), 1, value_of(1, 1))
    assert reader.seen == {(SHARED, 1): 2}
