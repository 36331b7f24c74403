"""Which folders `log.dirs` can name.

Kafka's format is a list with commas between its words and white space around them left out, and has no escape; clients are told of log
directories in UTF-8. A folder of another name is refused where it is named: its data would land in folders that nobody meant.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.errors import ConfigError

SEPARATOR = ","


def why_not(name: str) -> str | None:
    """Why `log.dirs` cannot name this folder; None where it can."""
    if not name:
        return "the name is empty"
    if SEPARATOR in name:
        return f"{name!r} has a comma, which stands between the folders of log.dirs"
    if name != name.strip():
        return f"{name!r} has white space at an end, which log.dirs leaves out"
    if any("\ud800" <= each <= "\udfff" for each in name):
        return f"{name!r} is not UTF-8, in which clients are told of log directories"
    return None


def check_named(log_dirs: Sequence[str]) -> None:
    """Raises ConfigError unless the words of `log.dirs` are folders, each named once."""
    text = SEPARATOR.join(log_dirs)
    for name in log_dirs or ("",):
        reason = why_not(name)
        if reason is not None:
            raise ConfigError("log.dirs", text, reason)
    if len(set(map(os.path.abspath, log_dirs))) < len(log_dirs):
        raise ConfigError("log.dirs", text, "each folder once")
