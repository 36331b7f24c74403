"""What is known of a sink after a restart: the batches that are in the topics, and the batch that was decided and is being ended.

One record for a sink, its key the sink's name, in a compacted topic; the last one counts. The value is JSON, for people who look.

Invariant: a batch is in `decided` only after every transaction of it was committed.
Invariant: while `pending` is set nobody may write under the transactional ids in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from barnabas.client.transactions import Owner
from barnabas.errors import BarnabasError

TOPIC = "_barnabas_sinks"
PREFIX = "barnabas-sink"
MOST_QUERIES = 16  # that are remembered of one sink; a query that starts anew with the same name is another one
UNNUMBERED = -1  # a write that nobody will repeat under its number
FORMAT = 1


class UnreadableState(BarnabasError):
    """A record in the sinks' topic that nobody here wrote."""

    def __init__(self, sink: str, reason: str) -> None:
        super().__init__(sink, reason)
        self.sink, self.reason = sink, reason

    def __str__(self) -> str:
        return f"what the topic {TOPIC} has of the sink '{self.sink}' cannot be read: {self.reason}"


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch that is to be committed: from its record on every transaction of it is, whatever happens.

    Args:
        query: of Spark, the same for each run from one checkpoint; empty for a batch write.
        batch: its number, or UNNUMBERED.
    """

    query: str
    batch: int
    transactions: dict[str, Owner]


@dataclass(frozen=True, slots=True)
class SinkState:
    """`decided` has the last batch of each query whose every transaction is committed; the query that wrote last stands last."""

    decided: dict[str, int] = field(default_factory=dict)
    pending: Pending | None = None

    def with_pending(self, pending: Pending) -> SinkState:
        return replace(self, pending=pending)

    def settled(self) -> SinkState:
        """After the end of every transaction of `pending`."""
        assert self.pending is not None
        if self.pending.batch == UNNUMBERED:
            return SinkState(self.decided)
        others = {query: batch for query, batch in self.decided.items() if query != self.pending.query}
        kept = dict(list(others.items())[-(MOST_QUERIES - 1) :])
        return SinkState({**kept, self.pending.query: self.pending.batch})

    def given_up(self) -> SinkState:
        """After some of the transactions turned out to be lost: the batch is not there."""
        return SinkState(self.decided)

    def has(self, query: str, batch: int) -> bool:
        """Whether a batch is in the topics, as the last one of its query."""
        return batch != UNNUMBERED and self.decided.get(query) == batch


def to_json(state: SinkState) -> bytes:
    """What the sink's record holds: JSON in UTF-8, which `from_json` reads back as the same state."""
    value: dict[str, object] = {"format": FORMAT, "decided": state.decided}
    if state.pending is not None:
        pending = state.pending
        value["pending"] = {"query": pending.query, "batch": pending.batch, "transactions": pending.transactions}
    return json.dumps(value, separators=(",", ":")).encode()


def from_json(sink: str, value: bytes) -> SinkState:
    """Raises UnreadableState."""
    try:
        read = json.loads(value)
        if read["format"] != FORMAT:
            raise UnreadableState(sink, f"its format is {read['format']}, known here is {FORMAT}")
        decided = {str(query): int(batch) for query, batch in read["decided"].items()}
        found = read.get("pending")
        if found is None:
            return SinkState(decided)
        owners = {str(name): Owner(int(owner[0]), int(owner[1])) for name, owner in found["transactions"].items()}
        return SinkState(decided, Pending(str(found["query"]), int(found["batch"]), owners))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise UnreadableState(sink, f"{type(error).__name__}: {error}") from error


# -- transactional ids ------------------------------------------------------------------------------------------------------


def sink_id(sink: str) -> str:
    """Under this id the sink's record is written; who owns it is the one driver of the sink."""
    return f"{PREFIX}/{sink}"


def slot_id(sink: str, partition: int) -> str:
    """The usual id of a task: the same for each batch, so that there are no more ids than tasks. Two-phase commit only."""
    return f"{PREFIX}/{sink}/2/{partition}"


def extra_id(sink: str, partition: int, nonce: str) -> str:
    """For an attempt whose slot another attempt uses."""
    return f"{PREFIX}/{sink}/2/{partition}/{nonce}"


def ordinary_id(sink: str, partition: int, nonce: str) -> str:
    """For an attempt on a broker without two-phase commit: of this attempt alone, so that nobody else can abort what it prepared."""
    return f"{PREFIX}/{sink}/1/{partition}/{nonce}"


def is_of_task(sink: str, transactional_id: str) -> bool:
    """Whether an id is one that `transactional_id` gives tasks of the sink, of either kind of transaction."""
    return transactional_id.startswith((f"{PREFIX}/{sink}/1/", f"{PREFIX}/{sink}/2/"))


def is_two_phase(sink: str, transactional_id: str) -> bool:
    """Whether it is of a task whose transaction waits for the sink's decision, however long that takes (KIP-939)."""
    return transactional_id.startswith(f"{PREFIX}/{sink}/2/")
