"""Where a source of HTTP is: the next request, and the state behind an answer. No I/O.

The state is the offset of the source: the values of `${offset.NAME}`, and these names of its own:

    page, start, cursor, next   where the next page is, by the mode
    taken                       records of this page that were taken, because it was the last one and may have more by now
    seen                        checksums of the records with the offset of the request: a server that gives them again gives nothing new
    reached, reached_seen       the greatest offset in the pages so far, and its records. The requests of all pages have the same offset,
                                so it counts from the first page of the next round on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin
from zlib import crc32

import msgspec

from barnabas.connect.errors import ConnectError
from barnabas.connect.plugins.http.client import Answer
from barnabas.connect.plugins.http.templates import at_pointer

MODES = ("none", "link", "cursor", "page", "offset")
RESERVED = {"page", "start", "cursor", "next", "taken", "seen", "reached", "reached_seen"}
MOST_SEEN = 10_000
_LINK = re.compile(r'<([^>]*)>\s*((?:;\s*[\w*-]+\s*=\s*(?:"[^"]*"|[^;,"]*)\s*)*)')
_NEXT = re.compile(r';\s*rel\s*=\s*"?[^";]*\bnext\b')
State = Mapping[str, Any]


class Page(NamedTuple):
    """An answer.

    Args:
        items: new ones.
        state: behind them.
        is_last: whether no page follows at the moment.
    """

    items: list[Any]
    state: State
    is_last: bool


class Paging(NamedTuple):
    """How an interface gives its records.

    Args:
        pointer: to the list of records in an answer.
        next_pointer: to the cursor, or to the URL of the next page.
        initial: values at the first request.
        fields: pointers in a record by the names of offsets.
        size: of a full page, behind which another one follows; 0: a page is the last one if it is empty.
    """

    mode: str
    pointer: str
    next_pointer: str
    initial: Mapping[str, str]
    fields: Mapping[str, str]
    size: int = 0

    def begin(self, known: State | None) -> State:
        """The state of the next request."""
        first = {"page": {"page": 1}, "offset": {"start": 0}}.get(self.mode, {})
        return {**first, **self.initial, **(known or {})}

    def page_of(self, answer: Answer, url: str, state: State) -> Page:
        """The new records of an answer. Raises ConnectError for one that is not as it was declared."""
        document = _json(answer)
        found = at_pointer(document, self.pointer) if self.pointer else document
        if found is None:
            found = []
        if isinstance(found, dict):
            found = [found]
        if not isinstance(found, list):
            raise ConnectError(f"the answer has no list at the pointer {self.pointer!r}")
        taken = int(state.get("taken", 0))
        items, behind = self._new(found[taken:], state)
        following = self._following(document, answer, url, state, len(found))
        rest = {name: each for name, each in behind.items() if name not in {"taken", "next"}}
        if following is not None:
            return Page(items, {**rest, **following}, is_last=False)
        if self.fields:  # the next round begins with the first page, and the offsets of records say what is new
            own = {name: each for name, each in rest.items() if name not in RESERVED}
            return Page(items, {**own, **rest["reached"], "seen": rest["reached_seen"]}, is_last=True)
        return Page(items, self._staying(rest, state, len(found)), is_last=True)

    def _staying(self, rest: State, state: State, count: int) -> State:
        """The state at the last page, which may have more records later."""
        match self.mode:
            case "offset":
                return {**rest, "start": int(state["start"]) + count}
            case "none":
                return rest
        place = {"next": state["next"]} if "next" in state else {}
        return {**rest, **place, "taken": count}

    def _following(self, document: Any, answer: Answer, url: str, state: State, count: int) -> State | None:
        match self.mode:
            case "page":
                return {"page": int(state["page"]) + 1} if count >= max(self.size, 1) else None
            case "offset":
                return {"start": int(state["start"]) + count} if count else None
            case "cursor":
                cursor = at_pointer(document, self.next_pointer)
                return None if cursor in (None, "", False) or cursor == state.get("cursor") else {"cursor": cursor}
            case "link":
                place = at_pointer(document, self.next_pointer) if self.next_pointer else _linked(answer.headers.get("link", ""))
                return {"next": urljoin(url, str(place))} if place else None
        return None

    def _new(self, items: list[Any], state: State) -> tuple[list[Any], State]:
        """Records that were not seen, and the state with the greatest of their offsets."""
        if not self.fields:
            return items, state
        asked, known = tuple(state.get(name) for name in self.fields), state.get("seen", ())
        reached = state.get("reached", {})
        greatest = tuple(reached.get(name, before) for name, before in zip(self.fields, asked, strict=True))
        seen, new = list(state.get("reached_seen", known)), []
        for item in items:
            values = tuple(at_pointer(item, pointer) for pointer in self.fields.values())
            checksum = crc32(msgspec.json.encode(item))
            if values == asked and checksum in known:
                continue
            new.append(item)
            if _is_greater(values, greatest):
                greatest, seen = values, [checksum]
            elif values == greatest:
                seen.append(checksum)
        return new, {**state, "reached": dict(zip(self.fields, greatest, strict=True)), "reached_seen": seen[-MOST_SEEN:]}


def _is_greater(values: Sequence[Any], than: Sequence[Any]) -> bool:
    if any(each is None for each in values):
        return False
    for one, other in zip(values, than, strict=True):
        if other is None:
            return True
        if isinstance(other, str) != isinstance(one, str):  # the first one was given as text
            one, other = str(one), str(other)
            if one.isdecimal() and other.isdecimal():
                one, other = int(one), int(other)
        if one != other:
            return bool(one > other)
    return False


def _json(answer: Answer) -> Any:
    if answer.status == 204 or not answer.data.strip():
        return None
    try:
        return msgspec.json.decode(answer.data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise ConnectError(f"the answer is no JSON but {answer.headers.get('content-type', 'bytes')}") from None


def _linked(header: str) -> str | None:
    """The target with the relation `next` (RFC 8288)."""
    for target, parameters in _LINK.findall(header):
        if _NEXT.search(parameters):
            return str(target)
    return None
