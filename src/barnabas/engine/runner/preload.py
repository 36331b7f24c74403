"""Imported by the fork server of the runner: all that tasks need, so that each of them shares its memory."""

from __future__ import annotations

import gc
from importlib import import_module

# loaded by name: the house of connectors stands on the engine
for _name in ("barnabas.connect.runtime.opening", "barnabas.engine.runner.task_main", "pyarrow.compute"):
    import_module(_name)
gc.collect()
gc.freeze()  # the collector of a task would write to all of these objects, and copy their pages
