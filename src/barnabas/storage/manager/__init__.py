"""All logs of a broker, over its log directories: each part is a class upon the one before.

    log_dirs             which log directory holds the folder of a partition
    offset_checkpoints   the checkpoints
    creation             new logs
    removal              logs that are deleted or move
    lifecycle            opening and closing all: `LogManager`

The ids for new names come from `new_id`, so that a simulation can repeat itself.
"""

from __future__ import annotations

from barnabas.storage.manager.creation import FoundLog
from barnabas.storage.manager.lifecycle import LogManager
from barnabas.storage.manager.removal import Retired

__all__ = ["FoundLog", "LogManager", "Retired"]
