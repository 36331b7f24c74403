"""A host of the small service, and the environment in which child processes have it in the place of the registry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Child processes run the small service as the registry."""
    parts = (str(HERE / "stand_in"), str(HERE.parents[1]), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(part for part in parts if part))
    monkeypatch.delenv("PYTHONDEVMODE", raising=False)
