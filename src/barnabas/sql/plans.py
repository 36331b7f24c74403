"""Statements of one session that were checked before, by their text.

A client that does not prepare its statements sends the same text again and again. Checking it takes some milliseconds, looking it up takes
none. Only statements are kept that depend on declared tables and settings alone (`Ready.lasts`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from barnabas import limits
from barnabas.sql.statements.ready import Ready

Given = Sequence[pa.DataType | None]


class Plans:
    """The statements that were used last."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Given], tuple[object, Ready]] = {}
        self._texts: dict[str, int] = {}

    def __contains__(self, text: str) -> bool:
        """Whether a statement with this text is kept."""
        return text in self._texts

    def get(self, text: str, given: Given, state: object) -> Ready | None:
        """The statement, if it was checked in this state of the tables and settings."""
        entry = self._found.pop((text, given), None)
        if entry is None:
            return None
        if entry[0] != state:
            self._forget(text)
            return None
        self._found[text, given] = entry  # the last one is the one used most recently
        return entry[1]

    def put(self, text: str, given: Given, state: object, ready: Ready) -> None:
        """Keep a statement, if it lasts."""
        if not ready.lasts or len(text) > limits.MAX_SQL_PLAN_CHARACTERS or (text, given) in self._found:
            return
        if len(self._found) >= limits.MAX_SQL_PLANS:
            oldest = next(iter(self._found))
            del self._found[oldest]
            self._forget(oldest[0])
        self._found[text, given] = state, ready
        self._texts[text] = self._texts.get(text, 0) + 1

    def clear(self) -> None:
        """Forget all."""
        self._found.clear()
        self._texts.clear()

    def _forget(self, text: str) -> None:
        self._texts[text] -= 1
        if not self._texts[text]:
            del self._texts[text]
