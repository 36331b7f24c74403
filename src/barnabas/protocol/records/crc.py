"""CRC-32C: `crc32c(data, value=0)`, of the package crc32c.

The package's other imports (its own version by `importlib.metadata`, a command line) take 25 ms, a tenth of a broker's start.
So only the compiled module is loaded.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from crc32c import crc32c
else:

    def _compiled() -> ModuleType:
        package = find_spec("crc32c")  # finds the package without running it
        if package is None:
            raise ModuleNotFoundError("crc32c is not installed", name="crc32c")
        spec = PathFinder.find_spec("_crc32c", package.submodule_search_locations)
        if spec is None or spec.loader is None:
            raise ModuleNotFoundError(f"crc32c at {package.origin} has no module _crc32c", name="crc32c._crc32c")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    crc32c = _compiled().crc32c

__all__ = ["crc32c"]
