"""Connectors for tests of workers, which processes of an engine find by entry points: see `installed`."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from barnabas.connect.api import Batch, Config, Offset, Sink, Source
from barnabas.connect.config_def import ConfigDef, Type

logger = logging.getLogger("barnabas.connect.tests")
ROOT = Path(__file__).parents[2]
ENTRY_POINTS = """[barnabas.sources]
tests.Counting = tests.connect.sample_plugins:Counting
tests.Dying = tests.connect.sample_plugins:Dying
[barnabas.sinks]
tests.Hanging = tests.connect.sample_plugins:Hanging
"""


def installed(folder: Path) -> str:
    """A value of PYTHONPATH with which a process finds these connectors."""
    made = folder / "sample_plugins-1.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-plugins\nVersion: 1\n")
    (made / "entry_points.txt").write_text(ENTRY_POINTS)
    return os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


class Counting(Source):
    """Numbers from 0 on, up to a limit."""

    config = ConfigDef().define("rows", Type.INT, 10).define("most", Type.INT, 2**31 - 1)

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        at = offsets[0][1]["next"] if offsets else 0
        logger.info("event=counts-from number=%d", at)
        while at < config["most"]:
            end = min(at + config["rows"], config["most"])
            yield Batch([{"n": each} for each in range(at, end)], {"next": end})
            at = end
            logger.debug("event=counts-now number=%d", at)
            yield None  # the framework waits a moment


class Dying(Source):
    """Takes its process along, or does not let it go, when a file is there."""

    config = ConfigDef().define("how", Type.STRING).define("file", Type.STRING)

    def read(self, config: Config, offsets: Sequence[tuple[Mapping[str, Any], Offset]]) -> Iterator[Batch | None]:
        while not Path(config["file"]).exists():
            yield None
        match config["how"]:
            case "exit":
                os._exit(7)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "segfault":
                ctypes.string_at(0)
            case "loop":
                while True:
                    pass
            case "hold":  # Python's lock too
                ctypes.PyDLL(None).sleep(3_600)


class Hanging(Sink):
    """Does not open."""

    def open(self, config: Config) -> None:
        logger.info("event=hangs")
        while True:
            pass
