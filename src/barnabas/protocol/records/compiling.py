"""Tells when numba compiles kernels: at their first use after an installation, which takes seconds.

Importing this module imports numba. `protocol/records/pointers.py` imports it, and every module of kernels imports that.
"""

from __future__ import annotations

import logging
from typing import Any

from numba.core.event import Listener, register

logger = logging.getLogger(__name__)


class _Compiling(Listener):
    """It logs one line a process. Code from numba's cache makes no event."""

    def __init__(self) -> None:
        self._is_told = False

    def on_start(self, event: Any) -> None:
        if not self._is_told:
            self._is_told = True
            logger.info("event=compiling-kernels reason='the first use after an installation; it takes some ten seconds, once'")

    def on_end(self, event: Any) -> None:
        pass  # the interface asks for it


listener = _Compiling()
register("numba:compile", listener)
