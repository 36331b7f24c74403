"""The sequences of a session: nextval, currval, lastval and setval.

Owns the last number of each sequence that the session had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.client.blocking import BlockingClient
from barnabas.errors import BarnabasError
from barnabas.sql.catalog.relations import Relation
from barnabas.sql.catalog.sequence_relation import SequenceRelation
from barnabas.sql.catalog.sequence_store import Sequences
from barnabas.sql.catalog.sequences import TOPIC, parts_of_text
from barnabas.sql.catalog.sequences import Sequence as Numbered
from barnabas.sql.interface import SqlError
from barnabas.sql.running import Running
from barnabas.sql.shared import Shared
from barnabas.sql.states import INSUFFICIENT_PRIVILEGE, NO_CURRENT_NUMBER, WRONG_OBJECT, of_failure

Find = Callable[[Sequence[str], int | None], Relation]


class SessionNumbers:
    """The numbers of one session. It keeps the seam `duck.calls.Numbers`.

    Args:
        client: of the session, with the caller's rights.
        find: the relation of a name.
        check_writable: raises SqlError in a read-only transaction.
        has_rights: whether the caller has rights of its own, other than the engine's.
    """

    def __init__(
        self, shared: Shared, client: BlockingClient, running: Running, find: Find, check_writable: Callable[[str | None], None],
        *, has_rights: bool,
    ) -> None:  # fmt: skip
        self._shared, self._client, self._running, self._find = shared, client, running, find
        self._check_writable, self._has_rights = check_writable, has_rights
        self._names: dict[str, str] = {}  # texts of names: sequences
        self._current: dict[str, int] = {}  # ids of sequences: numbers
        self._allowed: set[str] = set()
        self._last: str | None = None

    def forget_names(self) -> None:
        """A name may now mean another sequence."""
        self._names.clear()

    def clear(self) -> None:
        """Forget the numbers."""
        self._names.clear()
        self._current.clear()
        self._last = None

    def named(self, text: str) -> Numbered:
        """The sequence that a text such as `public.s` names. Raises SqlError 42P01, 42809."""
        store, definitions = self._shared.sequences, self._shared.definitions
        store.refresh(self._running, seen=definitions.version)
        name = self._names.get(text)
        found = store.sequences.get(name) if name is not None else None
        if found is not None:
            return found
        relation = self._find(parts_of_text(text), None)
        if not isinstance(relation, SequenceRelation):
            raise SqlError(WRONG_OBJECT, f'"{relation.name}" is not a sequence')
        if len(self._names) > 1_000:
            self._names.clear()
        self._names[text] = relation.name
        return relation.sequence

    def ranges(self, text: str, count: int, table: str | None = None) -> list[range]:
        """The next numbers of a sequence. Raises SqlError, ClientError, KafkaError.

        Args:
            table: that is written: its own sequence needs no other right.
        """
        sequence = self.named(text)
        self._check_writable(sequence.name)
        if table is None or sequence.table != table:
            self._check_rights(sequence)
        found = self._shared.sequences.take(sequence.name, count, self._running) if count else []
        if found:
            self._note(sequence, found[-1][-1])
        return found

    def _note(self, sequence: Numbered, number: int) -> None:
        self._current[sequence.id] = number
        self._last = sequence.id

    def _check_rights(self, sequence: Numbered) -> None:
        """Raises SqlError 42501 unless the caller sees the topic of the sequence's table, or that of all sequences."""
        if not self._has_rights or sequence.id in self._allowed:
            return
        definition = self._shared.definitions.tables.get(sequence.table or "")
        topic = TOPIC if definition is None else definition.topic
        try:
            is_seen = topic in self._client.topics_by_name([topic])
        except BarnabasError as error:
            if of_failure(error).sqlstate != INSUFFICIENT_PRIVILEGE:
                raise
            is_seen = False
        if not is_seen:
            raise SqlError(
                INSUFFICIENT_PRIVILEGE,
                f"permission denied for sequence {sequence.name}",
                hint=f"it needs the right to describe the topic {topic}",
            )
        self._allowed.add(sequence.id)

    def take(self, name: str, count: int) -> list[int]:
        """The next numbers of a sequence. Raises SqlError."""
        with self._noting():
            return [number for part in self.ranges(name, count) for number in part]

    def current(self, name: str) -> int:
        """The last number that the session had of a sequence. Raises SqlError."""
        with self._noting():
            sequence = self.named(name)
            found = self._current.get(sequence.id)
            if found is None:
                raise SqlError(NO_CURRENT_NUMBER, f'currval of sequence "{sequence.name}" is not yet defined in this session')
            return found

    def last(self) -> int:
        """The last number that the session had. Raises SqlError."""
        with self._noting():
            if self._last is None or all(each.id != self._last for each in self._shared.sequences.sequences.values()):
                raise SqlError(NO_CURRENT_NUMBER, "lastval is not yet defined in this session")
            return self._current[self._last]

    def set(self, name: str, value: int, *, is_called: bool) -> int:
        """Set a sequence, with the caller's rights; returns the value. Raises SqlError."""
        with self._noting():
            sequence = self.named(name)
            self._check_writable(sequence.name)
            self._check_rights(sequence)

            def decide(sequences: Sequences) -> Sequences:
                return {sequence.name: sequences.get(sequence.name, sequence).set_to(value, is_called=is_called)}

            self._shared.sequences.change(self._client, self._running, decide)
            if is_called:
                self._current[sequence.id] = value
            return value

    def _noting(self) -> _Noting:
        return _Noting(self._running)


class _Noting:
    """Takes note of an error, because DuckDB passes on its text alone."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, BarnabasError):
            self._running.note(error)
