"""The folder names that `log.dirs` can hold.

Kafka's format is a list separated by commas, without escapes; white space around its words is dropped. Responses name log
directories in UTF-8. Any other folder name is refused: the broker would write to other folders.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from barnabas.errors import ConfigError

SEPARATOR = ","


def why_not(name: str) -> str | None:
    """The reason why `log.dirs` cannot name this folder; None if it can."""
    if not name:
        return "the name is empty"
    if SEPARATOR in name:
        return f"{name!r} has a comma, which separates the folders of log.dirs"
    if name != name.strip():
        return f"{name!r} has white space at an end, which log.dirs drops"
    if any("\ud800" <= each <= "\udfff" for each in name):
        return f"{name!r} is not UTF-8, the encoding of log directories in responses"
    return None


def check_named(log_dirs: Sequence[str]) -> None:
    """Raises ConfigError unless each word of `log.dirs` is a valid folder name and occurs once."""
    text = SEPARATOR.join(log_dirs)
    for name in log_dirs or ("",):
        reason = why_not(name)
        if reason is not None:
            raise ConfigError("log.dirs", text, reason)
    if len(set(map(os.path.abspath, log_dirs))) < len(log_dirs):
        raise ConfigError("log.dirs", text, "each folder once")
