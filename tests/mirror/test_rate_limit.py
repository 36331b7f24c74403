"""The limit of a link holds over time, whatever the sizes of the answers."""

from __future__ import annotations

import random

import pytest

from barnabas.mirror.link import MOST_FETCH_BYTES
from barnabas.mirror.rate_limit import RateLimit

MB = 1_000_000


def run(rate: int, sizes: list[int], seconds: float) -> int:
    """The bytes that two fetchers get whose source answers after 10 ms."""
    limit, now_s, total = RateLimit(rate), 0.0, 0
    at_s = [0.0, 0.0]
    while now_s < seconds:
        lane = at_s.index(min(at_s))
        now_s = at_s[lane]
        wait_s = limit.wait_s(now_s)
        if wait_s:
            at_s[lane] = now_s + wait_s
            continue
        count = max(limit.most(MOST_FETCH_BYTES), sizes[total % len(sizes)])
        limit.took(count, now_s + 0.01)
        total += count
        at_s[lane] = now_s + 0.01
    return total


@pytest.mark.parametrize("rate", [50_000, MB, 20 * MB])
@pytest.mark.parametrize("sizes", [[0], [MB], [1, 300_000]])
def test_the_rate_holds(rate: int, sizes: list[int]) -> None:
    seconds = 60.0
    total = run(rate, sizes, seconds)
    assert total <= 1.01 * rate * seconds + 2 * max(*sizes, rate // 10, 16 * 1024)
    assert total >= 0.95 * rate * seconds - 2 * max(sizes)


def test_an_idle_link_saves_little() -> None:
    limit = RateLimit(MB)
    limit.took(1, 0.0)
    limit.took(MB, 3600.0)
    assert limit.wait_s(3600.0) == pytest.approx(0.9, abs=0.01)


def test_no_limit_is_no_limit() -> None:
    limit, seeded = RateLimit(2**63 - 1), random.Random(1)
    assert limit.most(MOST_FETCH_BYTES) == MOST_FETCH_BYTES
    for _ in range(100):
        limit.took(seeded.randrange(MOST_FETCH_BYTES), 0.0)
    assert limit.wait_s(0.0) == 0
