"""Locks of rows: a statement that changes a row keeps other statements from changing it until it is written.

All sessions of one engine share `RowLocks`; each has a `Holder`. A name is a topic and the key of a record, or a value of a UNIQUE
constraint. A session that would take many names of a topic takes the whole topic. Readers take no locks.

Rules
  1. A name has one holder, until the holder has written and releases it.
  2. `Holder.take` tells whether a name was released with a change since `Holder.look`. The caller may have read older rows.
  3. Sessions that wait for each other are found at once: the last one gets an error.
  4. The locks are of one engine. Another server and other programs that write to the topic do not see them.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping

from barnabas import limits
from barnabas.sql.interface import SqlError
from barnabas.sql.states import DEADLOCK, LOCK_NOT_AVAILABLE

LOOK_S = 0.05  # between two looks whether the statement was cancelled while it waits
ENDS_S = 60.0  # so long the markers of a commit may take; a topic that lost its end must not stop statements for ever
SOME, ALL = ("some name",), ("all names",)  # stand for names of a topic among those that were released
Ends = dict[int, int]  # the offset behind what was written, by partition
Name = Hashable


class RowLocks:
    """The locks of an engine."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.clock = 0  # counts releases
        self.owners: dict[tuple[str, Name], Holder] = {}
        self.topics: dict[str, _Topic] = {}
        self._released: OrderedDict[tuple[str, Name], int] = OrderedDict()
        self._forgotten = 0  # releases up to this one may be forgotten
        self._ends: OrderedDict[tuple[str, str], tuple[float, Ends]] = OrderedDict()

    def holder(self) -> Holder:
        """Of a session."""
        return Holder(self)

    @property
    def waiting(self) -> int:
        """How many sessions wait for others."""
        with self.changed:
            return sum(bool(each.blockers) for topic in self.topics.values() for each in topic.visitors)

    def is_newer_than(self, mark: int, topic: str, names: Iterable[Name] | None) -> bool:
        """Whether a name was released with a change after a moment, or may have been; None: any name of the topic."""
        wanted = (SOME,) if names is None else (ALL, *names)
        return mark < self._forgotten or any(self._released.get((topic, name), 0) > mark for name in wanted)

    def note(self, topic: str, names: Iterable[Name]) -> None:
        """Names of a topic are released at this moment, and changed."""
        for name in (SOME, *names):
            self._released.pop((topic, name), None)
            self._released[topic, name] = self.clock
        while len(self._released) > limits.MAX_SQL_RELEASED_LOCKS:
            self._forgotten = max(self._forgotten, self._released.popitem(last=False)[1])

    def wrote(self, topic: tuple[str, str], ends: Mapping[int, int]) -> None:
        """Take note of what a session wrote to a topic, given by name and id."""
        with self.changed:
            known = self._ends.pop(topic, (0.0, {}))[1]
            self._ends[topic] = time.monotonic(), known | {each: max(end, known.get(each, 0)) for each, end in ends.items()}
            while len(self._ends) > limits.MAX_SQL_LOCKED_TOPICS:
                self._ends.popitem(last=False)

    def ends(self, topic: tuple[str, str]) -> Ends:
        """The offsets behind what sessions wrote to a topic. A commit may be answered before all its markers are there."""
        with self.changed:
            at, ends = self._ends.get(topic, (0.0, {}))
            return dict(ends) if time.monotonic() - at < ENDS_S else {}


class _Topic:
    """The holders of names of one topic. It stays while somebody holds a name or asks for one."""

    def __init__(self) -> None:
        self.counts: dict[Holder, int] = {}
        self.whole: Holder | None = None
        self.waiting: list[Holder] = []  # for the whole topic, the first first
        self.visitors: set[Holder] = set()  # within `take`

    @property
    def is_unused(self) -> bool:
        return not (self.counts or self.whole or self.visitors)


class Holder:
    """The locks of one session. One thread uses it at a time."""

    def __init__(self, locks: RowLocks) -> None:
        self._locks = locks
        self._held: dict[str, set[Name]] = {}
        self._whole: set[str] = set()
        self._mark = 0
        self.blockers: set[Holder] = set()  # those that it waits for

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not (self._held or self._whole)

    def look(self) -> None:
        """The session is about to read."""
        with self._locks.changed:
            self._mark = self._locks.clock

    def take(self, topic: str, names: Iterable[Name] | None, check: Callable[[], None], timeout_s: float | None) -> bool:
        """Hold names of a topic. Whether one that was not held before may have been changed since `look`.

        Args:
            names: None for the whole topic.
            check: called now and then while it waits; it raises to stop that.
            timeout_s: None for no limit.

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
            state = locks.topics.setdefault(topic, _Topic())
            state.visitors.add(self)
            try:
                self._wait(topic, state, None if is_whole else wanted, check, timeout_s)
                if is_whole:
                    state.whole = self
                    self._whole.add(topic)
                else:
                    locks.owners.update(dict.fromkeys(((topic, name) for name in wanted), self))
                    self._held.setdefault(topic, set()).update(wanted)
                    state.counts[self] = len(self._held[topic])
                return locks.is_newer_than(self._mark, topic, None if is_whole else wanted)
            finally:
                state.visitors.remove(self)
                self._forget(topic)

    def _wait(
        self, topic: str, state: _Topic, wanted: list[Name] | None, check: Callable[[], None], timeout_s: float | None
    ) -> None:  # fmt: skip
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if wanted is None:
            state.waiting.append(self)
        try:
            while found := self._those_before(topic, state, wanted):
                self.blockers = found
                if self._waits_for_itself():
                    raise SqlError(
                        DEADLOCK, "deadlock detected", hint="run the transaction again",
                        detail="Two or more sessions have changed rows that the others want to change.",
                    )  # fmt: skip
                if until is not None and time.monotonic() >= until:
                    raise SqlError(LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout")
                self._locks.changed.wait(LOOK_S)
                check()
        finally:
            self.blockers = set()
            if wanted is None:
                state.waiting.remove(self)
                self._locks.changed.notify_all()

    def _those_before(self, topic: str, state: _Topic, wanted: list[Name] | None) -> set[Holder]:
        """The holders that must release something first."""
        found = {state.whole} if state.whole is not None else set()
        if wanted is None:
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
        following = list(self.blockers)
        while following:
            each = following.pop()
            if each is self:
                return True
            if each not in seen:
                seen.add(each)
                following += each.blockers
        return False

    def release(self, *, changed: bool) -> None:
        """Let others have all that is held.

        Args:
            changed: whether something may have been written.
        """
        if self.is_empty:
            return
        locks = self._locks
        with locks.changed:
            locks.clock += changed
            for topic in {*self._held, *self._whole}:
                names, is_whole = self._held.pop(topic, set()), topic in self._whole
                if changed:
                    locks.note(topic, (ALL,) if is_whole else names)
                for name in names:
                    del locks.owners[topic, name]
                state = locks.topics[topic]
                state.counts.pop(self, None)
                if is_whole:
                    state.whole = None
                self._forget(topic)
            self._whole.clear()
            locks.changed.notify_all()

    def _forget(self, topic: str) -> None:
        if self._locks.topics[topic].is_unused:
            del self._locks.topics[topic]
