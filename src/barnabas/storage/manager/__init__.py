"""All logs of a broker, in its log directories.

A `LogManager` knows the log directory of each partition (`log_dirs`), opens and closes all logs (`lifecycle`), and has three parts:

    logs.checkpoints     the checkpoint files beside the logs (`offset_checkpoints`)
    logs.creation        new logs
    logs.removal         logs that are deleted or move

The ids for new names come from `new_id`, so that a simulation can repeat itself.
"""

from __future__ import annotations

from barnabas.storage.manager.creation import FoundLog
from barnabas.storage.manager.lifecycle import LogManager
from barnabas.storage.manager.removal import Retired

__all__ = ["FoundLog", "LogManager", "Retired"]
