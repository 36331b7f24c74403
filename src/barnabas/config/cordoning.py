"""Log directories that get no new partitions (KIP-1066): those in `cordoned.log.dirs`, or all of them if its value is `*`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from barnabas.errors import ConfigError

CORDONED_LOG_DIRS = "cordoned.log.dirs"
ALL = "*"


def words_of(text: str) -> tuple[str, ...]:
    """The words of the key's value."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def absolute(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(os.path.abspath, paths))


def cordoned_among(words: Sequence[str], log_dirs: Sequence[str]) -> frozenset[str]:
    """Absolute paths of the `log_dirs` that the key's value `words` names."""
    every = frozenset(absolute(log_dirs))
    return every if ALL in words else every.intersection(absolute(words))


def check_cordoned(words: Sequence[str], log_dirs: Sequence[str]) -> None:
    """Raises ConfigError unless the words are directories of `log.dirs`, or the one word that means all of them."""
    if ALL in words:
        if len(words) > 1:
            raise ConfigError(CORDONED_LOG_DIRS, ",".join(words), f"when it is {ALL}, it must not contain other values")
        return
    known = absolute(log_dirs)
    strangers = [word for word in words if os.path.abspath(word) not in known]
    if strangers:
        allowed = f"all entries must be present in log.dirs or log.dir; missing are {', '.join(strangers)}"
        raise ConfigError(CORDONED_LOG_DIRS, ",".join(words), allowed)
