"""The state of a sink that survives a restart: the batches in the topics, and the decided batch if its transactions have not
all ended.

A sink has one record in a compacted topic, with the sink's name as key; the last one counts. The value is readable JSON.

Invariant: a batch is in `decided` only after every transaction of it was committed.
Invariant: while `pending` is set, no attempt may write under the transactional ids in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from barnabas.client.transactions import Owner
from barnabas.errors import BarnabasError

TOPIC = "_barnabas_sinks"
PREFIX = "barnabas-sink"
MOST_QUERIES = 16  # queries kept for one sink; a restart with a fresh checkpoint counts as another query, even with the same name
UNNUMBERED = -1  # a batch write without an id; a repetition of it is not recognised
FORMAT = 1


class UnreadableState(BarnabasError):
    """A record in the sinks' topic that no sink wrote."""

    def __init__(self, sink: str, reason: str) -> None:
        super().__init__(sink, reason)
        self.sink, self.reason = sink, reason

    def __str__(self) -> str:
        return f"the record in the topic {TOPIC} of the sink '{self.sink}' cannot be read: {self.reason}"


@dataclass(frozen=True, slots=True)
class Pending:
    """A decided batch: after it is recorded, all its transactions will be committed.

    Args:
        query: Spark's id of the query, the same for all runs from one checkpoint; empty for a batch write.
        batch: the number of the batch, or UNNUMBERED.
    """

    query: str
    batch: int
    transactions: dict[str, Owner]


@dataclass(frozen=True, slots=True)
class SinkState:
    """`decided` has, for each query, the last batch whose transactions are all committed; the query that wrote last comes
    last."""

    decided: dict[str, int] = field(default_factory=dict)
    pending: Pending | None = None

    def with_pending(self, pending: Pending) -> SinkState:
        return replace(self, pending=pending)

    def settled(self) -> SinkState:
        """The state after every transaction of `pending` has ended."""
        assert self.pending is not None
        if self.pending.batch == UNNUMBERED:
            return SinkState(self.decided)
        others = {query: batch for query, batch in self.decided.items() if query != self.pending.query}
        kept = dict(list(others.items())[-(MOST_QUERIES - 1) :])
        return SinkState({**kept, self.pending.query: self.pending.batch})

    def given_up(self) -> SinkState:
        """The state after some transactions were lost: the batch is not in the topics."""
        return SinkState(self.decided)

    def has(self, query: str, batch: int) -> bool:
        """Whether a batch is in the topics, as the last one of its query."""
        return batch != UNNUMBERED and self.decided.get(query) == batch


def to_json(state: SinkState) -> bytes:
    """The value of the sink's record: JSON in UTF-8, which `from_json` reads back as the same state."""
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
            raise UnreadableState(sink, f"its format is {read['format']}, supported is {FORMAT}")
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
    """The transactional id for the sink's record; its owner is the only driver of the sink."""
    return f"{PREFIX}/{sink}"


def slot_id(sink: str, partition: int) -> str:
    """The usual id of a task with two-phase commit. It is the same for each batch, so there are only as many ids as tasks."""
    return f"{PREFIX}/{sink}/2/{partition}"


def extra_id(sink: str, partition: int, nonce: str) -> str:
    """The id of an attempt whose slot another attempt uses."""
    return f"{PREFIX}/{sink}/2/{partition}/{nonce}"


def ordinary_id(sink: str, partition: int, nonce: str) -> str:
    """The id of an attempt on a broker without two-phase commit: unique, so that no other attempt can abort its prepared
    transaction."""
    return f"{PREFIX}/{sink}/1/{partition}/{nonce}"


def is_of_task(sink: str, transactional_id: str) -> bool:
    """Whether an id belongs to a task of the sink, with either kind of transaction."""
    return transactional_id.startswith((f"{PREFIX}/{sink}/1/", f"{PREFIX}/{sink}/2/"))


def is_two_phase(sink: str, transactional_id: str) -> bool:
    """Whether the id's transaction waits for the sink's decision without a time limit (KIP-939)."""
    return transactional_id.startswith(f"{PREFIX}/{sink}/2/")
