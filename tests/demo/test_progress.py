"""The output without a terminal."""

from __future__ import annotations

import io
import itertools

from rich.console import Console

from demo.progress import Board


def test_a_log_gets_plain_lines_of_what_changed() -> None:
    seconds = itertools.count(step=10)
    output = io.StringIO()
    with Board(Console(file=output, highlight=False), now_s=lambda: float(next(seconds))) as board:
        flights, weather = board.task("flights", 1_000), board.task("weather")
        flights.update(10, "01 Jan")
        weather.update(5)
        weather.update(5)
    lines = [line.split("s  ", 1)[1] for line in output.getvalue().splitlines()]
    assert lines == ["flights 10/1,000 01 Jan", "weather 5"]
