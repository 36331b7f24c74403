"""How a fast path treats each field of a request."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from barnabas.protocol.base_message import Message


class Treatment(Enum):
    """The reason why a field cannot make an answer of a fast path wrong."""

    SAME = auto()  # its bytes must equal those of the learnt request
    READ = auto()  # it differs between requests, and the fast path reads it
    CHECKED = auto()  # the fast path learns a request only for some of its values


Treatments = Mapping[type[Message], Mapping[str, Treatment]]
"""By message: the request and every message in it."""


def unconsidered(request: type[Message], treatments: Treatments) -> set[str]:
    """The differences between the fields of `request`, with the messages in it, and the fields in `treatments`."""
    differing: set[str] = set()
    messages, found = [request], set[type[Message]]()
    while messages:
        message = messages.pop()
        found.add(message)
        names = {field.name for field in message.FIELDS} ^ set(treatments.get(message, ()))
        differing |= {f"{message.__name__}.{name}" for name in names}
        messages += [field.item for field in message.FIELDS if field.item is not None and field.item not in found]
    return differing | {message.__name__ for message in treatments if message not in found}
