"""The shared parts of the rules of compatibility: the type of their steps, and the bounds of a comparison."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeAlias

from barnabas.registry.formats.json_schema.differences import Difference
from barnabas.registry.formats.json_schema.model import Node

Steps: TypeAlias = Generator[tuple[Node, Node], list[Difference], list[Difference]]


class TooLarge(Exception):
    """The comparison exceeds its limit of steps."""


class Report:
    """Decides which differences break a reader, and bounds the work of a comparison and the length of every list of differences.

    Args:
        accepted: the kinds of differences that a reader can handle.
        steps: the limit of comparisons and copied differences.
        differences: the limit of one list.
        path: the limit of steps in a path.
    """

    def __init__(self, accepted: frozenset[str], steps: int, differences: int, path: int) -> None:
        self._accepted = accepted
        self._steps = steps
        self._differences = differences
        self._path = path

    def spend(self, steps: int) -> None:
        """Count work. Raises TooLarge if it is too much."""
        self._steps -= steps
        if self._steps < 0:
            raise TooLarge

    def under(self, prefix: Iterable[str], found: list[Difference]) -> list[Difference]:
        """The differences of a part, with their paths from the whole schema. The mark of a recursion has no path."""
        self.spend(len(found))
        steps = tuple(prefix)
        return [
            found_one if len(found_one.path) > self._path else Difference(found_one.kind, (steps + found_one.path)[: self._path])
            for found_one in found
        ]

    def bounded(self, found: list[Difference]) -> list[Difference]:
        """A list of bounded length that is compatible only if all of `found` is."""
        if len(found) <= self._differences:
            return found
        self.spend(len(found))
        return sorted(found, key=lambda difference: difference.kind in self._accepted)[: self._differences]

    def allows(self, found: Iterable[Difference]) -> bool:
        """Whether a reader can handle all of them."""
        return all(difference.kind in self._accepted for difference in found)
