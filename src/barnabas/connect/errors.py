"""Errors of connectors."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.errors import BarnabasError


class ConnectError(BarnabasError):
    """A connector cannot go on; the text says why in one line."""


class RetriableError(ConnectError):
    """A connector cannot go on at the moment: the same batch is tried again.

    Args:
        after_s: when the connector wants the next try; None: the framework chooses.
    """

    def __init__(self, text: str, *, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


class BadRecords(ConnectError):
    """A sink cannot write some records of a batch, and has written none of it. It gets the others again, if errors are tolerated.

    Args:
        reasons: by the number of the record in the batch.
    """

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        row, reason = min(self.reasons.items(), default=(0, "no reason"))
        return f"the record {row} of the batch: {reason}"
