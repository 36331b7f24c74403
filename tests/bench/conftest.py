"""Fixtures for every test of the benchmarks."""

from __future__ import annotations

import pytest

from bench import memory


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "use", lambda megabytes: None)
