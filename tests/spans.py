"""Spans of time that belong to a plan, where no condition is waited for: the rate of a load, a random moment, how long a fault lasts.

Only torture and differential runs have such plans. A test that waits for something to happen uses `tests/waiting.py`.
"""

from __future__ import annotations

import random
import time


def keep_rate(pause_s: float) -> None:
    """The pause of a writer between two pieces of its load."""
    go_on_for(pause_s)


def go_on_for(seconds: float) -> None:
    """Let everything go on in a fault, or without one, for as long as the plan says."""
    time.sleep(seconds)


def until_random_moment(rng: random.Random, most_s: float, *, least_s: float = 0.0) -> None:
    """Let everything go on until a moment that only the seed decides."""
    go_on_for(rng.uniform(least_s, most_s))
