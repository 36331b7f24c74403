"""Who decides what: the driver's and the tasks' parts in writing a batch exactly once. No I/O, no clock, no Spark.

Each part is a generator that yields what is to be done and is sent what came of it; `executor` does it over the wire, the tests against a
model of the coordinator in which anything may stop at any step.

A batch's way
    prepare   (driver)  becomes the owner of the sink, ends what a former driver had decided, aborts what it had not
    attempt   (task)    claims a transactional id, makes sure that the sink has not moved on, and writes; its transaction stays open
    commit    (driver)  records the transactions of the winning attempts: from here on the batch is decided. Ends them all, records that
                        they have ended, aborts what other attempts left
    recover   (driver)  after a failure: `prepare` without handing anything out
    A driver that prepares and commits in one process hands out again what `commit` gives it, and prepares once.

Rules
  1. The token is the ownership of the sink's own transactional id. It goes from `prepare` through the tasks to `commit`, and the decision
     is a transaction under it: a driver whose sink was taken over cannot decide any more.
  2. The decision is recorded before the first transaction is ended, and ends are repeated until each has an answer. With two-phase
     commit a prepared transaction waits for that as long as it takes.
  3. A claim keeps a transaction that is open under the id (KIP-939), so that no attempt, however late, can undo what another has
     prepared. It may take its ownership away; who ends it takes that back (`_end`).
  4. An attempt asks whether its token still holds after its claim and before its first record; the driver looks for open claims after the
     token has moved. So a late attempt either finds a moved token or is found.
  5. What is aborted is named with its owner: the abort of a claim that was listed does not touch a later one under the same id. A list
     counts only if the token still holds after it, since then nothing in it can be of a later driver. (InitProducerId would not do: the
     coordinator aborts an open transaction for whoever names the right producer id, whatever the epoch.)
  6. Without two-phase commit a transaction may be gone before it is ended. A batch counts as written only if each has really ended;
     else it is given up and written again, and what of it was committed already is there twice. That is logged.
  7. The token that a commit ends with may be handed out: all that was recorded was under tokens before it, what late attempts hold is
     older, and `commit` has swept. That takes ends that move the ownership (KIP-890): without, a late attempt could not tell.
  8. Spark repeats the newest batch of a query and none before it. So a batch is taken for written if it is the last one that was decided,
     and one before that fails: under its number there may be other rows by now, which nobody has seen.

Ugly: a slot's claim may be shared by attempts that Spark does not tell apart (a stage that is run again counts its attempts from 0), which
is why claims and not Spark's numbers decide who writes under which id.
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


# -- what is asked for, and what comes back ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeSink:
    """Own the sink from now on -> Owner; `SinkTakenOver` if `expected` is not the owner any more."""

    expected: Owner | None = None


@dataclass(frozen=True, slots=True)
class ReadState:
    """The last record of the sink -> SinkState. To be asked by the owner of the sink."""


@dataclass(frozen=True, slots=True)
class WriteState:
    """Record a state in a transaction of `token` -> the token from then on; `SinkTakenOver`."""

    state: SinkState
    token: Owner


@dataclass(frozen=True, slots=True)
class AskStanding:
    """Who owns the sink -> Standing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Own an id, keeping the transaction that is open under it -> Initialised; None where there is no two-phase commit."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class ClaimOrdinary:
    """Own a transactional id of which its transactions time out -> Initialised."""

    transactional_id: str


@dataclass(frozen=True, slots=True)
class End:
    """End transactions -> dict of id to Ending."""

    owners: Mapping[str, Owner]
    commit: bool


@dataclass(frozen=True, slots=True)
class ListOpen:
    """The ids of the sink's tasks that are claimed and not ended -> list[OpenId]."""


Instruction = TakeSink | ReadState | WriteState | AskStanding | Claim | ClaimOrdinary | End | ListOpen
Steps = Generator[Instruction, Any, R]


class Since(Enum):
    """What made the owner of the sink the owner, where nothing was recorded since; ELSE where something was."""

    TAKEN = "taken"
    RECORDED = "recorded"  # the end of a transaction moved the ownership
    ELSE = "else"


@dataclass(frozen=True, slots=True)
class Standing:
    """Who owns the sink, and since what."""

    owner: Owner
    since: Since


@dataclass(frozen=True, slots=True)
class OpenId:
    """`has_written`: a transaction is open. `owner` is who wrote, or who claimed."""

    transactional_id: str
    owner: Owner
    has_written: bool


class Ending(Enum):
    """What came of the wish to end a transaction."""

    DONE = "done"  # now or before, in this way
    FENCED = "fenced"  # somebody else owns the id
    OTHER = "other"  # it has the other end, or there is none to end


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
    """Transactions of a decided batch were gone before they could be ended; the batch will be written again."""

    def __init__(self, sink: str, batch: int, lost: int, of: int) -> None:
        super().__init__(sink, batch, lost, of)
        self.sink, self.batch, self.lost, self.of = sink, batch, lost, of

    def __str__(self) -> str:
        again = "" if self.lost == self.of else "; what was committed of it will be there twice"
        return (
            f"{self.lost} of {self.of} transactions of batch {self.batch} of the sink '{self.sink}' timed out or were aborted before "
            f"they were committed, so it has to be written again{again}. Brokers with transaction.two.phase.commit.enable avoid this"
        )


class TooManyTasks(BarnabasError):
    """The decision about a batch names each task's transaction, and is one record."""

    def __init__(self, sink: str, tasks: int) -> None:
        super().__init__(sink, tasks)
        self.sink, self.tasks = sink, tasks

    def __str__(self) -> str:
        return (
            f"a batch of {self.tasks} tasks that wrote cannot be decided for the sink '{self.sink}': the record that names them is above "
            f"max.message.bytes of the topic {TOPIC}. Write a DataFrame of fewer partitions (coalesce), or let the topic take more"
        )


class BatchIsPast(BarnabasError):
    """A batch comes again after later ones of its query."""

    def __init__(self, sink: str, batch: int, last: int, is_stream: bool) -> None:
        super().__init__(sink, batch, last, is_stream)
        self.sink, self.batch, self.last, self.is_stream = sink, batch, last, is_stream

    def __str__(self) -> str:
        if self.is_stream:
            why = "the query's checkpoint was set back, or another run of the query is ahead"
        else:
            why = "a sinkBatchId came again, as from a query that was started anew with another checkpoint"
        return (
            f"batch {self.batch} cannot be written: the sink '{self.sink}' has batch {self.last} already. So {why}. Nothing of it was "
            "written. To write it and those after it, beside what is there, set the option sinkName to another name"
        )


# -- the driver -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Handout:
    """What tasks get from the driver, and give back with what they wrote."""

    sink: str
    token: Owner
    state: SinkState
    since: Since = Since.TAKEN


@dataclass(frozen=True, slots=True)
class Wrote:
    """What the winning attempt of a task did. `claims` is empty where it had no rows, or the batch was there before."""

    handout: Handout
    query: str
    batch: int
    rows: int = 0
    claims: dict[str, Owner] = field(default_factory=dict)


def prepare(sink: str, expected: Owner | None = None) -> Steps[Handout]:
    """Own the sink, finish or undo what was left, and hand out what the tasks of a batch need.

    Raises:
        SinkTakenOver: another driver did the same at the same time, or `expected` does not own the sink any more.
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
        # Tasks are handed an ownership under which nothing was recorded, so that they can see whether it moved on.
        token = yield TakeSink(token)
    yield from _sweep(sink, token)
    return Handout(sink, token, state)


def has_two_phase(sink: str) -> Steps[bool]:
    """Whether what tasks prepare will wait for its decision as long as it takes; asked as they do, by the claim of an id."""
    claimed: Initialised | None = yield Claim(slot_id(sink, 0))
    return claimed is not None


def commit(wrote: Sequence[Wrote]) -> Steps[Handout | None]:
    """Decide a batch and end its transactions.

    Args:
        wrote: of the winning attempts of all tasks, from one handout.

    Returns:
        What may be handed out for the next batch; None where that has to be prepared.

    Raises:
        SinkTakenOver, TooManyTasks: nothing was decided.
        BatchLost: the batch will be written again.
    """
    claims = {name: owner for each in wrote for name, owner in each.claims.items()}
    if not claims:
        return wrote[0].handout if wrote else None  # nothing was recorded under it
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
    # Where epochs are used up the owner of the next producer id shows only when the transaction's markers are written.
    has_moved = token.producer_id == before.producer_id and token.epoch > before.epoch
    return Handout(handout.sink, token, state, Since.RECORDED) if has_moved else None


def recover(sink: str, token: Owner | None) -> Steps[None]:
    """After a failed batch: end what was decided, abort what was not. Does nothing if another driver owns the sink by now.

    Args:
        token: of the batch's handout; None where no task came back with it.
    """
    try:
        yield from prepare(sink, token)
    except SinkTakenOver:
        logger.info("event=sink-taken-over sink=%r note='what this driver left is ended by the other'", sink)


def _finish(sink: str, pending: Pending) -> Steps[int]:
    """Commit every transaction; how many of them cannot be, because they are gone."""
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
    """End a two-phase transaction whose id another attempt has claimed since; True if it is lost.

    If the claim does not find it open any more it was ended, and as it should be: nothing but the sink's owner ends it.
    """
    claimed: Initialised = yield Claim(name)
    while claimed.ongoing == owner:
        endings: dict[str, Ending] = yield End({name: claimed.owner}, commit)
        if endings[name] is not Ending.FENCED:
            return endings[name] is Ending.OTHER
        claimed = yield Claim(name)
    return False


def _sweep(sink: str, token: Owner) -> Steps[None]:
    """Abort what attempts have left open; to be done when nothing of the sink is decided and not ended."""
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
                yield ClaimOrdinary(name)  # nobody else uses this id again
        elif ending is Ending.FENCED and each.has_written:
            yield from _end_kept(name, each.owner, commit=False)


# -- a task -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """An attempt's id and its ownership."""

    transactional_id: str
    owner: Owner


def is_written(handout: Handout, query: str, batch: int) -> bool:
    """Whether a batch is in the topics, so that its tasks have nothing to write.

    Raises:
        BatchIsPast: later batches of the query are.
    """
    last = handout.state.decided.get(query, UNNUMBERED)
    if UNNUMBERED < batch < last:
        raise BatchIsPast(handout.sink, batch, last, is_stream=bool(query))
    return handout.state.has(query, batch)


def attempt(handout: Handout, partition: int, nonce: str) -> Steps[Place]:
    """Claim an id to write under.

    Args:
        nonce: of this attempt alone.

    Raises:
        SinkTakenOver: the sink moved on; whatever this attempt would write is not wanted any more.
    """
    name = slot_id(handout.sink, partition)
    claimed: Initialised | None = yield Claim(name)
    if claimed is None:
        name = ordinary_id(handout.sink, partition, nonce)
        claimed = yield ClaimOrdinary(name)
    elif claimed.ongoing is not None:
        name = extra_id(handout.sink, partition, nonce)
        claimed = yield Claim(name)
    assert claimed is not None  # there was two-phase commit a moment ago
    standing: Standing = yield AskStanding()
    if standing != Standing(handout.token, handout.since):
        raise SinkTakenOver(handout.sink)
    return Place(name, claimed.owner)
