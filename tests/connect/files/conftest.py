"""Tasks of connectors to files on a broker."""

from __future__ import annotations

from tests.connect.runtime.conftest import broker, tasks

__all__ = ["broker", "tasks"]
