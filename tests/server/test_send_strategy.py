"""Which way pieces of files take: the one that takes the loop less time, as far as it is known."""

from __future__ import annotations

import pytest

from barnabas.server.send_strategy import MARGIN, TRIED_EVERY, SendStrategy

PIECE = 200_000
SLOW, FAST = 60_000, 20_000


def strategy_of(reading_ns: int, sending_ns: int, pieces: int = 10) -> tuple[SendStrategy, list[bool]]:
    """Ways on a machine where a piece takes so long; and by which each of them went."""
    strategy, went = SendStrategy(), []
    for _ in range(pieces):
        went.append(strategy.by_sendfile)
        strategy.took(PIECE, sending_ns if strategy.by_sendfile else reading_ns, by_sendfile=strategy.by_sendfile)
    return strategy, went


@pytest.mark.parametrize(
    ("reading_ns", "sending_ns", "by_sendfile"),
    [(SLOW, FAST, True), (FAST, SLOW, False), (SLOW, int(MARGIN * SLOW) + 1, False), (SLOW, int(MARGIN * SLOW) - 1, True)],
)
def test_both_are_tried_and_the_better_one_is_taken(reading_ns: int, sending_ns: int, by_sendfile: bool) -> None:
    _, went = strategy_of(reading_ns, sending_ns)
    assert went == [False, True] + [by_sendfile] * 8


def test_what_is_given_up_is_tried_again_now_and_then() -> None:
    _, went = strategy_of(FAST, SLOW, 3 * TRIED_EVERY)
    assert [number for number, by_sendfile in enumerate(went) if by_sendfile] == [1, TRIED_EVERY, 2 * TRIED_EVERY]


def test_a_piece_that_was_held_up_changes_nothing() -> None:
    strategy, _ = strategy_of(SLOW, FAST)
    strategy.took(PIECE, 1000 * FAST, by_sendfile=True)
    assert strategy.by_sendfile


def test_a_machine_that_changes_is_followed() -> None:
    strategy, _ = strategy_of(SLOW, FAST)
    for _ in range(100):
        strategy.took(PIECE, 10 * SLOW if strategy.by_sendfile else SLOW, by_sendfile=strategy.by_sendfile)
    assert not strategy.by_sendfile
