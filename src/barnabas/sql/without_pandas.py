"""Keeps pandas out of a process that does not use it.

pyarrow imports pandas with the first value that it converts, if pandas is installed, to recognise its objects. That takes 0.3 s and 40 MB.
It asks once, and remembers the answer. Only for processes of our own: a program of a user may give series of pandas to pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PANDAS = "pandas"


class _Hidden(MetaPathFinder):
    """Tells that pandas is not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == PANDAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def keep_pandas_out() -> None:
    """Let pyarrow believe that pandas is not installed; nothing happens if it is loaded."""
    if PANDAS in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow as pa

        pa.array([True])  # its loops ask on their own, besides the module
        pa.scalar(True)
    finally:
        sys.meta_path.remove(hidden)
