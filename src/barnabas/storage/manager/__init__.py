"""All logs of a broker, over its log directories: each part is a class upon the one before.

    homes       which partition has its folder where
    offsets     the checkpoints
    making      new logs
    leaving     logs that are deleted or move
    running     opening and closing all: `LogManager`

The ids for new names come from `new_id`, so that a simulation can repeat itself.
"""

from __future__ import annotations

from barnabas.storage.manager.leaving import Retired
from barnabas.storage.manager.making import FoundLog
from barnabas.storage.manager.running import LogManager

__all__ = ["FoundLog", "LogManager", "Retired"]
