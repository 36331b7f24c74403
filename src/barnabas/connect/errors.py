"""Errors of connectors."""

from __future__ import annotations

from barnabas.errors import BarnabasError


class ConnectError(BarnabasError):
    """A connector cannot go on; the text says why in one line."""


class RetriableError(ConnectError):
    """A connector cannot go on at the moment: the same batch is tried again."""
