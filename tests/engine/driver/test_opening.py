"""Jobs whose state is gone or cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.engine.driver.opening import STATE, CheckpointLost, Opener
from barnabas.engine.folders import job_folder
from barnabas.engine.jobs import Job
from barnabas.testing import Broker
from tests.engine.driver.keeping import Keeping, work


def no_spark() -> Any:
    """No query is opened."""
    return None


def test_a_state_that_is_gone_or_damaged_says_what_to_do(tmp_path: Path) -> None:
    with Broker() as broker:
        keeping = Keeping(broker.bootstrap_servers, tmp_path / "state")
        (tmp_path / "state").mkdir()
        opener, job = Opener(no_spark, {"bootstrap.servers": keeping.servers}, tmp_path / "engine"), Job("v", work())
        folder = job_folder(tmp_path / "engine", "v", 0)
        opener.open(job).stop()
        assert (folder / STATE).exists()

        keeping.produce({"k": "a", "x": 1})
        keeping.open().begin()
        keeping.take(1, 0, 1)
        (folder / STATE).write_bytes(b"not a database" * 1_000)
        with pytest.raises(CheckpointLost, match=r"the state of v cannot be read: .+; `barnabas job restart v --rebuild`"):
            opener.open(job)
        (folder / STATE).unlink()
        with pytest.raises(CheckpointLost, match="the state of v is gone from its folder; `barnabas job restart v --rebuild`"):
            opener.open(job)
        keeping.close()
