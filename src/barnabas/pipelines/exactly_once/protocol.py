"""The steps of the driver and of the tasks to write a batch exactly once. No I/O, no clock, no Spark.

Each part is a generator that yields instructions and receives their results. `executor` executes them with the wire client. The
tests execute them with a model of the coordinator, and every part may stop at any step.

The steps of a batch
    prepare   (driver)  becomes the owner of the sink, ends the transactions that a former driver decided, aborts the others
    attempt   (task)    claims a transactional id, makes sure that the sink has not moved on, and writes; its transaction stays open
    commit    (driver)  records the transactions of the winning attempts: from here on the batch is decided. Ends
                        them all, records that they have ended, aborts the transactions of other attempts
    recover   (driver)  after a failure: `prepare` without a handout
    A driver that prepares and commits in one process prepares once: `commit` returns the next handout.

Rules
  1. The token is the ownership of the sink's own transactional id. It goes from `prepare` through the tasks to `commit`, and
     the decision is a transaction under it. So a driver cannot decide any more after another driver has taken over the sink.
  2. The driver records the decision before it ends the first transaction, and repeats each end until there is an answer. With
     two-phase commit a prepared transaction waits for its end without a time limit.
  3. A claim keeps an open transaction of the id (KIP-939), so that no late attempt can abort a transaction that another attempt
     prepared. A claim may take the ownership from the writer; the driver takes it back to end the transaction (`_end`).
  4. After its claim and before its first record, an attempt checks that its token is still valid. The driver lists open claims
     after it has moved the token. So either a late attempt sees that the token has moved, or the driver sees the claim.
  5. An abort names the owner: the abort of a listed claim does not affect a later claim of the same id. The driver uses a list
     only if the token is still valid after it: then no entry can belong to a later driver. (InitProducerId is not sufficient:
     with the right producer id the coordinator aborts an open transaction for any epoch.)
  6. Without two-phase commit a transaction may time out before it is ended. A batch counts as written only if every transaction
     was committed. Otherwise it is written again, and the part that was committed already is in the topics twice. This case is
     logged.
  7. The driver may hand out the token after a commit: all records were written under earlier tokens, late attempts have earlier
     tokens, and `commit` has aborted open claims. This requires that the end of a transaction moves the ownership (KIP-890).
     Otherwise a late attempt could not see that its token is old.
  8. Spark repeats only the newest batch of a query. So a batch counts as written if it is the last decided one. An earlier
     batch fails: its number may now belong to other rows, which were never written.

Ugly: Spark may give several attempts the same numbers (a repeated stage counts its attempts from 0). Then they claim the same
slot. So claims, and not Spark's numbers, decide the id of each attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from barnabas.client.transactions import Initialised, Owner
from barnabas.errors import BarnabasError
from barnabas.pipelines.exactly_once.state import (
    TOPIC,
    UNNUMBERED,
    Pending,
    SinkState,
    extra_id,
    is_two_phase,
    ordinary_id,
    slot_id,
)

logger = logging.getLogger(__name__)
R = TypeVar("R")


# -- instructions and their results ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeSink:
    """Become the owner of the sink -> Owner; `SinkTakenOver` if `expected` is not the owner any more."""

    expected: Owner | None = None


@dataclass(frozen=True, slots=True)
class ReadState:
    """The last record of the sink -> SinkState. Only the owner of the sink may send this."""


@dataclass(frozen=True, slots=True)
class WriteState:
    """Record a state in a transaction of `token` -> the next token; `SinkTakenOver`."""

    state: SinkState
    token: Owner


@dataclass(frozen=True, slots=True)
class AskStanding:
    """Ask for the owner of the sink -> Standing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Become the owner of an id and keep its open transaction -> Initialised; None if there is no two-phase commit."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ClaimOrdinary:
    """Become the owner of a transactional id whose transactions time out -> Initialised."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class End:
    """End transactions -> dict of id to Ending."""

    owners: Mapping[str, Owner]
    commit: bool


@dataclass(frozen=True, slots=True)
class ListOpen:
    """The claimed ids of the sink's tasks whose transactions have not ended -> list[OpenId]."""


Instruction = TakeSink | ReadState | WriteState | AskStanding | Claim | ClaimOrdinary | End | ListOpen
Steps = Generator[Instruction, Any, R]


class Since(Enum):
    """The step by which the current owner of the sink became the owner; ELSE if a state was recorded after it."""

    TAKEN = "taken"
    RECORDED = "recorded"  # the end of a transaction changed the owner
    ELSE = "else"


@dataclass(frozen=True, slots=True)
class Standing:
    """The owner of the sink, and the step that made it the owner."""

    owner: Owner
    since: Since


@dataclass(frozen=True, slots=True)
class OpenId:
    """`has_written`: a transaction is open. `owner` wrote it, or claimed the id."""

    transactional_id: str
    owner: Owner
    has_written: bool


class Ending(Enum):
    """The result of ending a transaction."""

    DONE = "done"  # the transaction ended as requested, now or earlier
    FENCED = "fenced"  # another owner has the id
    OTHER = "other"  # the transaction ended the other way, or there is none


class SinkTakenOver(BarnabasError):
    """Another driver owns the sink."""

    def __init__(self, sink: str) -> None:
        super().__init__(sink)
        self.sink = sink

    def __str__(self) -> str:
        return (
            f"the sink '{self.sink}' was taken over by another query, or by another run of this one; "
            "queries that write at the same time need names of their own (option sinkName)"
        )


class BatchLost(BarnabasError):
    """Transactions of a decided batch timed out before the driver ended them; the batch will be written again."""

    def __init__(self, sink: str, batch: int, lost: int, of: int) -> None:
        super().__init__(sink, batch, lost, of)
        self.sink, self.batch, self.lost, self.of = sink, batch, lost, of

    def __str__(self) -> str:
        again = "" if self.lost == self.of else "; the part that was committed will be in the topics twice"
        return (
            f"{self.lost} of {self.of} transactions of batch {self.batch} of the sink '{self.sink}' timed out or were aborted before "
            f"they were committed, so it has to be written again{again}. Brokers with transaction.two.phase.commit.enable avoid this"
        )


class TooManyTasks(BarnabasError):
    """The record of a decision, which names each task's transaction, is too large."""

    def __init__(self, sink: str, tasks: int) -> None:
        super().__init__(sink, tasks)
        self.sink, self.tasks = sink, tasks

    def __str__(self) -> str:
        return (
            f"a batch of {self.tasks} tasks that wrote cannot be decided for the sink '{self.sink}': the record that names them is above "
            f"max.message.bytes of the topic {TOPIC}. Write a DataFrame of fewer partitions "
            "(coalesce), or raise max.message.bytes of the topic"
        )


class BatchIsPast(BarnabasError):
    """A batch was repeated after later batches of its query."""

    def __init__(self, sink: str, batch: int, last: int, is_stream: bool) -> None:
        super().__init__(sink, batch, last, is_stream)
        self.sink, self.batch, self.last, self.is_stream = sink, batch, last, is_stream

    def __str__(self) -> str:
        if self.is_stream:
            why = "the query's checkpoint was set back, or another run of the query is ahead"
        else:
            why = "a sinkBatchId was repeated, as by a query that was restarted with another checkpoint"
        return (
            f"batch {self.batch} cannot be written: the sink '{self.sink}' has batch {self.last} already. So {why}. No row "
            "of it was written. To write it and the batches after it in addition to the present "
            "rows, set the option sinkName to another name"
        )


# -- the driver -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Handout:
    """The token and the state of a sink. Tasks get it from the driver, and return it with their results."""

    sink: str
    token: Owner
    state: SinkState
    since: Since = Since.TAKEN


@dataclass(frozen=True, slots=True)
class Wrote:
    """The result of a task's winning attempt. `claims` is empty if the task had no rows, or if the batch was written before."""

    handout: Handout
    query: str
    batch: int
    rows: int = 0
    claims: dict[str, Owner] = field(default_factory=dict)


def prepare(sink: str, expected: Owner | None = None) -> Steps[Handout]:
    """Become the owner of the sink, commit or abort earlier transactions, and return the handout for the tasks of a batch.

    Raises:
        SinkTakenOver: another driver became the owner at the same time, or `expected` does not own the sink any more.
    """
    token: Owner = yield TakeSink(expected)
    state: SinkState = yield ReadState()
    if state.pending is not None:
        lost = yield from _finish(sink, state.pending)
        if lost:
            failure = BatchLost(sink, state.pending.batch, lost, len(state.pending.transactions))
            logger.warning("event=batch-lost sink=%r batch=%d error=%r", sink, state.pending.batch, str(failure))
        state = state.given_up() if lost else state.settled()
        token = yield WriteState(state, token)
        # The handout needs an owner under which nothing was recorded. Otherwise tasks cannot see whether the owner has changed.
        token = yield TakeSink(token)
    yield from _sweep(sink, token)
    return Handout(sink, token, state)


def has_two_phase(sink: str) -> Steps[bool]:
    """Whether prepared transactions wait for their decision without a time limit. To check this, it claims an id, as tasks do."""
    claimed: Initialised | None = yield Claim(slot_id(sink, 0))
    return claimed is not None


def commit(wrote: Sequence[Wrote]) -> Steps[Handout | None]:
    """Decide a batch and end its transactions.

    Args:
        wrote: results of the winning attempts of all tasks, from one handout.

    Returns:
        The handout for the next batch; None if the next batch must be prepared.

    Raises:
        SinkTakenOver, TooManyTasks: nothing was decided.
        BatchLost: the batch will be written again.
    """
    claims = {name: owner for each in wrote for name, owner in each.claims.items()}
    if not claims:
        return wrote[0].handout if wrote else None  # nothing was recorded under the handout's owner
    handout, query, batch = wrote[0].handout, wrote[0].query, wrote[0].batch
    pending = Pending(query, batch, claims)
    state = handout.state.with_pending(pending)
    token: Owner = yield WriteState(state, handout.token)
    lost = yield from _finish(handout.sink, pending)
    state = state.given_up() if lost else state.settled()
    before, token = token, (yield WriteState(state, token))
    yield from _sweep(handout.sink, token)
    if lost:
        raise BatchLost(handout.sink, batch, lost, len(claims))
    # If the epochs are used up, the next owner has another producer id. It becomes visible only after the markers are written.
    has_moved = token.producer_id == before.producer_id and token.epoch > before.epoch
    return Handout(handout.sink, token, state, Since.RECORDED) if has_moved else None


def recover(sink: str, token: Owner | None) -> Steps[None]:
    """After a failed batch: commit its decided transactions, abort the others. Does nothing if another driver owns the sink
    now.

    Args:
        token: the token of the batch's handout; None if no task returned it.
    """
    try:
        yield from prepare(sink, token)
    except SinkTakenOver:
        logger.info("event=sink-taken-over sink=%r note='the other driver ends the transactions of this one'", sink)


def _finish(sink: str, pending: Pending) -> Steps[int]:
    """Commit every transaction; returns how many were lost, because they timed out or were aborted."""
    endings: dict[str, Ending] = yield End(pending.transactions, commit=True)
    lost = 0
    for name, ending in endings.items():
        if ending is Ending.DONE:
            continue
        if ending is Ending.FENCED and is_two_phase(sink, name):
            lost += yield from _end_kept(name, pending.transactions[name], commit=True)
        else:
            lost += 1
    return lost


def _end_kept(name: str, owner: Owner, *, commit: bool) -> Steps[bool]:
    """End a two-phase transaction after another attempt has claimed its id; True if the transaction is lost.

    If this claim finds no open transaction, the end was correct: only the sink's owner ends it.
    """
    claimed: Initialised = yield Claim(name)
    while claimed.ongoing == owner:
        endings: dict[str, Ending] = yield End({name: claimed.owner}, commit)
        if endings[name] is not Ending.FENCED:
            return endings[name] is Ending.OTHER
        claimed = yield Claim(name)
    return False


def _sweep(sink: str, token: Owner) -> Steps[None]:
    """Abort the open transactions of attempts; call it only after every decided transaction of the sink has ended."""
    found: list[OpenId] = yield ListOpen()
    if not found:
        return
    standing: Standing = yield AskStanding()
    if standing.owner != token:
        raise SinkTakenOver(sink)
    endings: dict[str, Ending] = yield End({each.transactional_id: each.owner for each in found}, commit=False)
    for each in found:
        name, ending = each.transactional_id, endings[each.transactional_id]
        if not is_two_phase(sink, name):
            if ending is not Ending.DONE:
                yield ClaimOrdinary(name)  # fences the attempt: no other attempt uses this id again
        elif ending is Ending.FENCED and each.has_written:
            yield from _end_kept(name, each.owner, commit=False)


# -- a task -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's id and its ownership."""

    transactional_id: str
    owner: Owner


def is_written(handout: Handout, query: str, batch: int) -> bool:
    """Whether a batch is in the topics, so that its tasks write nothing.

    Raises:
        BatchIsPast: later batches of the query are in the topics.
    """
    last = handout.state.decided.get(query, UNNUMBERED)
    if UNNUMBERED < batch < last:
        raise BatchIsPast(handout.sink, batch, last, is_stream=bool(query))
    return handout.state.has(query, batch)


def attempt(handout: Handout, partition: int, nonce: str) -> Steps[Place]:
    """Claim an id for the writes of this attempt.

    Args:
        nonce: unique to this attempt.

    Raises:
        SinkTakenOver: the token has moved, so the rows of this attempt are not needed any more.
    """
    name = slot_id(handout.sink, partition)
    claimed: Initialised | None = yield Claim(name)
    if claimed is None:
        name = ordinary_id(handout.sink, partition, nonce)
        claimed = yield ClaimOrdinary(name)
    elif claimed.ongoing is not None:
        name = extra_id(handout.sink, partition, nonce)
        claimed = yield Claim(name)
    assert claimed is not None  # two-phase commit was available in the claim above
    standing: Standing = yield AskStanding()
    if standing != Standing(handout.token, handout.since):
        raise SinkTakenOver(handout.sink)
    return Place(name, claimed.owner)
