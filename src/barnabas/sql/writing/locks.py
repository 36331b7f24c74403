"""Locks of rows: a statement that changes a row keeps other statements from changing it until it is written.

All sessions of one engine share `RowLocks`; each has a `Holder`. A name is a topic and the key of a record, or a value of a UNIQUE
constraint. A session that would take many names of a topic takes the whole topic. Readers take no locks.

Rules
  1. A name has one holder, until the holder has written and releases it.
  2. `Holder.take` tells whether a name was released with a change since `Holder.look`. Rows that the caller read
     meanwhile may be older.
  3. Sessions that wait for each other are found at once: the last one gets an error.
  4. The locks are of one engine. Another server and other programs that write to the topic do not see them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.states import DEADLOCK, LOCK_NOT_AVAILABLE

LOOK_S = 0.05  # between two looks whether the statement was cancelled while it waits
Ends = dict[int, int]  # the offset behind what was written, by partition


class RowLocks:
    """The locks of an engine."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.clock = 0  # counts releases
        self.waiting = 0  # sessions that wait for others
        self.owners: dict[tuple[str, bytes], Holder] = {}
        self.topics: dict[str, _Topic] = {}
        self._released: OrderedDict[tuple[str, bytes], int] = OrderedDict()
        self._forgotten = 0  # releases up to this one may be forgotten
        self._ends: OrderedDict[tuple[str, str], Ends] = OrderedDict()

    def holder(self) -> Holder:
        """Of a session."""
        return Holder(self)

    def topic(self, name: str) -> _Topic:
        """The state of a topic that somebody locks."""
        return self.topics.setdefault(name, _Topic())

    def is_newer_than(self, mark: int, names: Iterable[tuple[str, bytes]], *, any_name: bool) -> bool:
        """Whether a name was released with a change after a moment, or may have been.

        Args:
            any_name: whether each name counts, of whatever topic.
        """
        if any_name:
            return mark < self.clock
        return mark < self._forgotten or any(self._released.get(name, 0) > mark for name in names)

    def note(self, names: Iterable[tuple[str, bytes]]) -> None:
        """Names are released at this moment, and changed."""
        for name in names:
            self._released.pop(name, None)
            self._released[name] = self.clock
        while len(self._released) > limits.MAX_SQL_RELEASED_LOCKS:
            self._forgotten = max(self._forgotten, self._released.popitem(last=False)[1])

    def forget_all(self) -> None:
        """A whole topic is released: each name may have been changed."""
        self._released.clear()
        self._forgotten = self.clock

    def wrote(self, topic: tuple[str, str], ends: Mapping[int, int]) -> None:
        """Take note of what a session wrote to a topic, given by name and id."""
        with self.changed:
            known = self._ends.pop(topic, {})
            self._ends[topic] = known | {each: max(end, known.get(each, 0)) for each, end in ends.items()}
            while len(self._ends) > limits.MAX_SQL_LOCKED_TOPICS:
                self._ends.popitem(last=False)

    def ends(self, topic: tuple[str, str]) -> Ends:
        """The offsets behind what sessions wrote to a topic. A commit may be answered before all its markers are there."""
        with self.changed:
            return dict(self._ends.get(topic, {}))


class _Topic:
    """The holders of names of one topic."""

    def __init__(self) -> None:
        self.counts: dict[Holder, int] = {}
        self.whole: Holder | None = None
        self.waiting: list[Holder] = []  # for the whole topic, the first first


class Holder:
    """The locks of one session.

    One thread uses it at a time.
    """

    def __init__(self, locks: RowLocks) -> None:
        self._locks = locks
        self._held: dict[str, set[bytes]] = {}
        self._whole: set[str] = set()
        self._mark = 0
        self._blockers: set[Holder] = set()

    def __bool__(self) -> bool:
        return bool(self._held or self._whole)

    def look(self) -> None:
        """The session is about to read."""
        with self._locks.changed:
            self._mark = self._locks.clock

    def take(self, topic: str, names: Iterable[bytes] | None, check: Callable[[], None], timeout_s: float) -> bool:
        """Hold names of a topic. Whether one that was not held before may have been changed since `look`.

        Args:
            names: None for the whole topic.
            check: called now and then while it waits; it raises to stop that.
            timeout_s: 0 for no limit.

        Raises:
            SqlError: 40P01, 55P03.
        """
        if topic in self._whole:
            return False
        held = self._held.get(topic, ())
        wanted = [name for name in dict.fromkeys(names or ()) if name not in held]
        is_whole = names is None or len(held) + len(wanted) > limits.MAX_SQL_ROW_LOCKS
        if not (wanted or is_whole):
            return False
        locks = self._locks
        with locks.changed:
            state = locks.topic(topic)
            try:
                self._wait(topic, state, wanted, is_whole, check, timeout_s)
                newer = locks.is_newer_than(self._mark, ((topic, name) for name in wanted), any_name=is_whole)
                if is_whole:
                    state.whole = self
                    self._whole.add(topic)
                else:
                    locks.owners.update(dict.fromkeys(((topic, name) for name in wanted), self))
                    self._held.setdefault(topic, set()).update(wanted)
                    state.counts[self] = len(self._held[topic])
                return newer
            finally:
                self._forget(topic, state)

    def _wait(
        self, topic: str, state: _Topic, wanted: list[bytes], is_whole: bool, check: Callable[[], None], timeout_s: float
    ) -> None:  # fmt: skip
        until = time.monotonic() + timeout_s if timeout_s else None
        if is_whole:
            state.waiting.append(self)
        try:
            while blockers := self._those_before(topic, state, wanted, is_whole):
                self._blockers = blockers
                if self._waits_for_itself():
                    raise SqlError(
                        DEADLOCK, "deadlock detected", hint="run the transaction again",
                        detail="Sessions wait for rows that each other changes.",
                    )  # fmt: skip
                if until is not None and time.monotonic() >= until:
                    raise SqlError(LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
                self._locks.waiting += 1
                self._locks.changed.wait(LOOK_S)
                self._locks.waiting -= 1
                check()
        finally:
            self._blockers = set()
            if is_whole:
                state.waiting.remove(self)
                self._locks.changed.notify_all()

    def _those_before(self, topic: str, state: _Topic, wanted: list[bytes], is_whole: bool) -> set[Holder]:
        """The holders that must release something first."""
        found = {state.whole} if state.whole is not None else set()
        if is_whole:
            found.update(state.counts)
        else:
            owners = self._locks.owners
            found.update(owner for name in wanted if (owner := owners.get((topic, name))) is not None)
            if self not in state.counts:  # otherwise one that waits for the whole topic might wait for ever
                found.update(state.waiting[:1])
        found.discard(self)
        return found

    def _waits_for_itself(self) -> bool:
        seen: set[Holder] = set()
        following = list(self._blockers)
        while following:
            each = following.pop()
            if each is self:
                return True
            if each not in seen:
                seen.add(each)
                following += each._blockers
        return False

    def release(self, *, changed: bool) -> None:
        """Let others have all that is held.

        Args:
            changed: whether something may have been written.
        """
        if not self:
            return
        locks = self._locks
        with locks.changed:
            if changed:
                locks.clock += 1
                locks.note((topic, name) for topic, names in self._held.items() for name in names)
                if self._whole:
                    locks.forget_all()
            for topic in {*self._held, *self._whole}:
                state = locks.topic(topic)
                for name in self._held.pop(topic, ()):
                    del locks.owners[topic, name]
                state.counts.pop(self, None)
                if state.whole is self:
                    state.whole = None
                self._forget(topic, state)
            self._whole.clear()
            locks.changed.notify_all()

    def _forget(self, topic: str, state: _Topic) -> None:
        if not state.counts and state.whole is None and not state.waiting:
            self._locks.topics.pop(topic, None)
