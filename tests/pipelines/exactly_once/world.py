"""A coordinator and its topics in memory, by the rules of the real coordinator, for the sink's protocol to run against.

Every instruction is carried out at once and as a whole; what may stop between two of them is the caller's.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas.client.transactions import Initialised, Owner
from barnabas.coordination.transactions import transaction as rules
from barnabas.coordination.transactions.transaction import NEVER_TIMES_OUT_MS, NOBODY, State, Transaction
from barnabas.errors import ErrorCode, KafkaError
from barnabas.pipelines.exactly_once import protocol as p
from barnabas.pipelines.exactly_once.state import SinkState, is_of_task, sink_id

R = TypeVar("R")
PLACE = frozenset({("t", 0)})
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING}


@dataclass
class World:
    """`rows` are visible, `open_rows` written and not ended, by transactional id."""

    sink: str = "s"
    has_two_phase: bool = True
    rows: list[Any] = field(default_factory=list)
    open_rows: dict[str, list[Any]] = field(default_factory=dict)
    ids: dict[str, Transaction] = field(default_factory=dict)
    state: SinkState = field(default_factory=SinkState)
    given_up: set[int] = field(default_factory=set)  # decided batches that must be written again
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def execute(self, instruction: p.Instruction) -> Any:
        return getattr(self, f"_{type(instruction).__name__}")(instruction)

    def run(self, steps: p.Steps[R]) -> R:
        """To the end, without a stop."""
        answer: Any = None
        try:
            while True:
                answer = self.step(steps, answer)
        except StopIteration as end:
            result: R = end.value
            return result

    def step(self, steps: p.Steps[Any], answer: Any) -> Any:
        """Give an answer, and carry out what is asked for next; errors go to the protocol."""
        instruction = steps.send(answer)
        while True:
            try:
                return self.execute(instruction)
            except p.SinkTakenOver as error:
                instruction = steps.throw(error)

    def write(self, place: p.Place, rows: list[Any]) -> bool:
        """Rows of a task; False where a broker refuses them."""
        found = self.ids[place.transactional_id]
        owner = rules.Owner(*place.owner)
        joined = found.state is State.ONGOING and (found.producer_id, found.producer_epoch) == owner
        if not joined:
            try:
                self.ids[place.transactional_id] = rules.add(found, owner, PLACE, 2, 0)
            except KafkaError:
                return False
            self.open_rows[place.transactional_id] = []
        self.open_rows[place.transactional_id] += rows
        return True

    def time_out(self, name: str) -> None:
        """Abort a transaction that has a timeout."""
        if self.ids[name].deadline_ms is not None:
            self._fence(name)

    @property
    def open_ids(self) -> list[str]:
        return [name for name, found in self.ids.items() if found.state is State.ONGOING]

    def _take_id(self) -> int:
        return next(self.numbers)

    def _init(self, name: str, expected: rules.Owner, timeout_ms: int, *, keep: bool) -> Initialised:
        found = self.ids.get(name, Transaction(name))
        if found.state is State.ONGOING:
            rules.check_expected(found, expected)
            if keep:
                after = rules.take_over(found, expected, timeout_ms, 0, self._take_id)
                self.ids[name] = after
                return Initialised(Owner(*after.owner), Owner(found.producer_id, found.producer_epoch))
            self._fence(name)
            found = self.ids[name]
        after = rules.init(found, expected, timeout_ms, 0, self._take_id)
        self.ids[name] = after
        return Initialised(Owner(*after.owner))

    def _fence(self, name: str) -> None:
        self.open_rows.pop(name, None)
        self.ids[name] = rules.complete(rules.fence(self.ids[name], 0, self._take_id), 0)

    def _end_one(self, name: str, owner: Owner, *, commit: bool) -> p.Ending:
        found = self.ids[name]
        try:
            after = rules.end(found, rules.Owner(*owner), commit=commit, client_version=2, now_ms=0, take_id=self._take_id)
        except KafkaError as error:
            return p.Ending.FENCED if error.code in FENCED else p.Ending.OTHER
        if after is not None:
            self.ids[name] = rules.complete(after, 0)
            rows = self.open_rows.pop(name, [])
            self.rows += rows if commit else []
        return p.Ending.DONE

    def _TakeSink(self, asked: p.TakeSink) -> Owner:
        try:
            expected = rules.Owner(*asked.expected) if asked.expected else NOBODY
            return self._init(sink_id(self.sink), expected, 60_000, keep=False).owner
        except KafkaError:
            raise p.SinkTakenOver(self.sink) from None

    def _ReadState(self, asked: p.ReadState) -> SinkState:
        return self.state

    def _WriteState(self, asked: p.WriteState) -> Owner:
        name = sink_id(self.sink)
        try:
            self.ids[name] = rules.add(self.ids[name], rules.Owner(*asked.token), PLACE, 2, 0)
        except KafkaError:
            raise p.SinkTakenOver(self.sink) from None
        assert self._end_one(name, asked.token, commit=True) is p.Ending.DONE
        before, self.state = self.state.pending, asked.state
        if before is not None and asked.state.pending is None and not asked.state.has(before.query, before.batch):
            self.given_up.add(before.batch)
        return Owner(*self.ids[name].owner)

    def _AskStanding(self, asked: p.AskStanding) -> p.Standing:
        found = self.ids[sink_id(self.sink)]
        since = {State.EMPTY: p.Since.TAKEN, State.COMPLETE_COMMIT: p.Since.RECORDED}
        return p.Standing(Owner(*found.owner), since.get(found.state, p.Since.ELSE))

    def _Claim(self, asked: p.Claim) -> Initialised | None:
        if not self.has_two_phase:
            return None
        return self._init(asked.transactional_id, NOBODY, NEVER_TIMES_OUT_MS, keep=True)

    def _ClaimOrdinary(self, asked: p.ClaimOrdinary) -> Initialised:
        return self._init(asked.transactional_id, NOBODY, 60_000, keep=False)

    def _End(self, asked: p.End) -> dict[str, p.Ending]:
        return {name: self._end_one(name, owner, commit=asked.commit) for name, owner in asked.owners.items()}

    def _ListOpen(self, asked: p.ListOpen) -> list[p.OpenId]:
        return [
            p.OpenId(name, Owner(found.producer_id, found.producer_epoch), found.state is State.ONGOING)
            for name, found in self.ids.items()
            if is_of_task(self.sink, name) and found.state in {State.EMPTY, State.ONGOING}
        ]
