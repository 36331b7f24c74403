"""A consumer group with kafka-python that prints the worst windows as they arrive.

The worst windows are those with the highest mean delay of departures. A window is printed if it is among the ten worst so far.
Windows with few departures or a small mean delay are left out. If several members run at the same time, they share the
partitions, and each prints its own worst windows.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer
from rich.table import Table

from demo import topics

GROUP = "demo-watch"
KEPT = 10
FEWEST_DEPARTURES = 10
LATE_MINUTES = 15  # mean delay from which a window counts as bad
Window = dict[str, Any]


def mean_delay(window: Window) -> float:
    """The mean delay of the departures in this window, in minutes."""
    return float(window["dep_delay_sum"] / window["departed"])


@dataclass(slots=True)
class Worst:
    """The worst windows so far, the worst first."""

    windows: list[Window] = field(default_factory=list)
    seen: int = 0

    def offer(self, window: Window) -> bool:
        """Add a window; returns True if it is among the worst."""
        self.seen += 1
        if window["departed"] < FEWEST_DEPARTURES or mean_delay(window) < LATE_MINUTES:
            return False
        if len(self.windows) == KEPT and mean_delay(window) <= mean_delay(self.windows[-1]):
            return False
        bisect.insort(self.windows, window, key=lambda w: -mean_delay(w))
        del self.windows[KEPT:]
        return True

    def table(self) -> Table:
        table = Table(
            "airline", "window (UTC)", "flights", "mean delay", "worst", "wind", title="The worst windows", title_justify="left"
        )
        for window in self.windows:
            wind = f"{window['wind_sum'] / window['with_wind'] / 100:.0f} mph" if window["with_wind"] else ""
            table.add_row(
                window["airline"],
                f"{window['window_start'][:16]} to {window['window_end'][11:16]}",
                f"{window['departed']} of {window['flights']}",
                f"{mean_delay(window):.0f} min",
                f"{window['dep_delay_max']} min",
                wind,
            )
        return table


def line(window: Window) -> str:
    """One window as a line of text."""
    return (
        f"[bold]{mean_delay(window):4.0f} min[/bold]  {window['airline'] or window['carrier']:<28} "
        f"{window['window_start'][:16]}  {window['departed']} of {window['flights']} flights left"
    )


def watch(bootstrap: str, say: Callable[[str], None], report: Callable[[int], None], should_stop: Callable[[int], bool]) -> Worst:
    """Read the results as a member of the group until `should_stop(windows so far)`; prints each window that is among the
    worst."""
    worst = Worst()
    consumer = KafkaConsumer(
        topics.RESULTS,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        while not should_stop(worst.seen):
            for records in consumer.poll(timeout_ms=500).values():
                for record in records:
                    window = json.loads(record.value)
                    if worst.offer(window):
                        say(line(window))
            report(worst.seen)
        return worst
    finally:
        consumer.close()
