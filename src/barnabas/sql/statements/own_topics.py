"""The names of topics that tables create for themselves.

A table's name may have any character; that of a topic has ASCII letters, digits, dots, - and _. Such a name is the topic's name too.
In another name each other character becomes _, and the checksum of the whole name follows: so `"Order Details"` and `"Order/Details"` have
two topics.
"""

from __future__ import annotations

import re
import zlib

from barnabas.limits import MAX_SQL_NAME

_OTHER = re.compile(r"[^a-zA-Z0-9._-]")
_CHECKSUM = 9  # characters: a dash and eight digits
_REST = 10  # characters that stay free for the number of a topic whose name is taken


def own_topic(name: str) -> str:
    """The topic of a table or a view with this name."""
    topic = _OTHER.sub("_", name)
    if topic == name and name not in (".", ".."):
        return name
    return f"{topic[: MAX_SQL_NAME - _CHECKSUM - _REST]}-{zlib.crc32(name.encode()):08x}"
