"""Modules that are imported with their first use.

They are for kernels: numba and the code that it compiled take half a second to load, and a process that decodes few records needs neither.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from typing import Any

_IMPORTING = threading.RLock()


class LazyModule:
    """Stands for a module. Threads may use it at once.

    One lock is held for the imports of all of them. numba has a lock of its own for what it loads, and takes the locks of modules within
    it. So two threads that import different kernels could wait for each other without end.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            with _IMPORTING:
                self._module = import_module(self._name)
        return getattr(self._module, attribute)


def is_loaded(name: str) -> bool:
    """Whether a module was imported."""
    return name in sys.modules
