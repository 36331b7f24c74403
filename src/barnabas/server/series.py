"""Metrics with a sample for each of many items: partitions, offsets of groups.

Their lines of Prometheus' page are written during the read of the numbers. A line takes 1 us this way and 5 us with the library, and there
may be hundreds of thousands of lines. The caller reads the numbers in several turns of the loop (`in_turns`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

SAMPLES_PER_TURN = 500  # takes half a millisecond, with the time to find the values
_ESCAPED = re.compile(r'[\\\n"]')
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Item = TypeVar("Item")


def in_turns(items: Iterable[Item]) -> Iterator[Item | None]:
    """The items, with a None after each few hundred: there the loop may do other work."""
    for count, item in enumerate(items, 1):
        yield item
        if count % SAMPLES_PER_TURN == 0:
            yield None


class Series:
    """A gauge with a sample for each of many items.

    Args:
        labels: the names of the labels, in the order of their values.
    """

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        places = sorted((label, place) for place, label in enumerate(labels))  # the order of the Prometheus library
        within = ",".join(f'{label}="{{{place}}}"' for label, place in places)
        self._line = f"{name}{{{{{within}}}}} {{{len(labels)}}}\n"
        self._lines = [f"# HELP {name} {text}\n# TYPE {name} gauge\n"]
        self._pieces: list[bytes] = []

    def add(self, values: Sequence[str], value: float) -> None:
        """Add one sample: the values of its labels, and its own value."""
        if _ESCAPED.search("".join(values)):
            values = [text.translate(_ESCAPES) for text in values]
        self._lines.append(self._line.format(*values, float(value)))
        if len(self._lines) >= SAMPLES_PER_TURN:
            self._join()

    def pieces(self) -> list[bytes]:
        """The lines so far, many in each piece."""
        self._join()
        return self._pieces

    def _join(self) -> None:
        self._pieces.append("".join(self._lines).encode())
        self._lines = []
