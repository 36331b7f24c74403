"""Modules that are imported with their first use.

They are for kernels: numba and the code that it compiled take half a second to load, and a process that decodes few records needs neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module. `import_module` holds the module's lock, so threads may use it at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, attribute)
