"""Declarations of administrators about principals: access control lists (and roles, which consist of them), users, tokens and
quotas.

The cluster stores and distributes declarations without knowing their meaning: each is a JSON value under a kind and a key.
`security/` and `quota/` define the fields.

Rules
  1. A kind's mapping in the image is another object after a change of that kind, and the same object otherwise.
  2. A change is a pure function from an image to a plan; it may be called again on a later image.
  3. Keys may hold any character; their UTF-8 encoding has at most `MAX_KEY_BYTES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from barnabas.errors import ErrorCode, KafkaError

MAX_KEY_BYTES = 4_096  # longest name, escaped, that ZooKeeper accepts


class Kind(Enum):
    """The kinds of declarations; the value is the path in the store."""

    ACL = "acls"
    USER = "users"
    TOKEN = "tokens"
    QUOTA = "quotas"
    MIRRORED = "mirrored"  # marks of declarations that a mirror link has copied (`mirror/declared.py`)


Declarations = Mapping[str, Any]  # key -> JSON value
Changes = Mapping[tuple[Kind, str], Any]  # the declared value; None removes the declaration

NOTHING: Declarations = MappingProxyType({})


def apply_changes(before: Mapping[Kind, Declarations], changes: Changes) -> Mapping[Kind, Declarations]:
    """All declarations after these changes."""
    after = dict(before)
    for kind in {kind for kind, _ in changes}:
        mine = {key: value for (of, key), value in changes.items() if of is kind}
        kept = {key: value for key, value in before.get(kind, NOTHING).items() if key not in mine}
        after[kind] = kept | {key: value for key, value in mine.items() if value is not None}
    return after


def check_key(key: str) -> None:
    """Raises KafkaError(INVALID_REQUEST) for a key that the store does not accept."""
    size = len(key.encode("utf-8", "surrogatepass"))
    if not 0 < size <= MAX_KEY_BYTES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a name of {size} bytes; allowed are 1 to {MAX_KEY_BYTES}")
