"""Imported by the fork server of the runner: all that tasks need, so that each of them shares its memory and starts at once."""

from __future__ import annotations

import gc
from importlib import import_module
from importlib.util import find_spec

NAMES = (  # loaded by name: the house of connectors stands on the engine
    "barnabas.connect.runtime.opening",
    "barnabas.connect.converters.json_converter",
    "barnabas.connect.converters.json_kernels",
    "barnabas.connect.converters.plain",
    "barnabas.connect.plugins.file_stream",
    "barnabas.connect.plugins.postgres_capture.kernels",
    "barnabas.engine.runner.task_main",
    "barnabas.columnar.decode",
    "barnabas.columnar.encode",
    "barnabas.protocol.records.encode_kernels",
    "barnabas.schemas.arrow.avro_kernels",
    "pyarrow.compute",
)
for _name in NAMES:
    import_module(_name)
if find_spec("pandas") is not None:  # pyarrow imports it when it first converts values of Python
    import_module("pandas")
gc.collect()
gc.freeze()  # the collector of a task would write to all of these objects, and copy their pages
