"""The topic of sequences, `_barnabas_sql_sequences`: a record's key is the name of a sequence, its value the sequence.

Rules
  1. An engine takes blocks of numbers for all its sessions: MIN_SQL_SEQUENCE_BLOCK, twice as many each time a block is used up, up to
     MAX_SQL_SEQUENCE_BLOCK. A block is taken by an atomic change of the record, so no two engines have the same number.
  2. Numbers are given in order, whatever session asks. The rest of a block is lost when the engine ends.
  3. A block is void when its sequence was made again, altered or set. An engine looks for that when the definitions of tables have
     changed, and otherwise at most every REFRESH_S: so long another server may go on with its block.
  4. The engine's own client takes blocks. The caller's client makes, alters, sets and drops sequences, with the caller's rights.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from barnabas import limits
from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, PartitionError, TimedOut
from barnabas.client.interruption import Interrupted, Interruption
from barnabas.client.keyed_topic import Contended, KeyedTopic, KeyedTopicError
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.sql.catalog.sequences import TOPIC, Sequence, decode, encode
from barnabas.sql.interface import SqlError
from barnabas.sql.running import Running
from barnabas.sql.states import LIMIT_EXCEEDED, SERIALIZATION_FAILURE, UNDEFINED_TABLE, unknown_outcome
from barnabas.sql.turns import Turns

REFRESH_S = 0.5
TAKE_ATTEMPTS = 10  # of KeyedTopic's own rounds: many servers may need a block at the same time
Sequences = Mapping[str, Sequence]
Decide = Callable[[Sequences], Mapping[str, "Sequence | None"]]


class _Block:
    """Numbers that this engine has.

    Args:
        size: of the block as it was taken.
    """

    def __init__(self, sequence: Sequence, numbers: range, size: int) -> None:
        self.id, self.version = sequence.id, sequence.version
        self.numbers, self.size = numbers, size
        self.given: int | None = None

    def is_of(self, sequence: Sequence) -> bool:
        return (self.id, self.version) == (sequence.id, sequence.version)


class SequenceStore:
    """The sequences of a cluster, as this engine knows them, and its blocks. For several threads at once.

    Args:
        config: of the engine's clients.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._interruption = Interruption()
        own = replace(config, interruption=self._interruption)
        self._topic: KeyedTopic[Sequence] = KeyedTopic(
            own, TOPIC, encode=encode, decode=decode, most_records=limits.MAX_SQL_SEQUENCES,
            most_bytes=limits.MAX_SQL_SEQUENCE_BYTES,
        )  # fmt: skip
        self._client = BlockingClient(own)
        self._turns = Turns()
        self._lock = threading.Lock()  # of the blocks; held without I/O
        self._blocks: dict[str, _Block] = {}
        self._looked_at = -REFRESH_S
        self._seen: object = None

    @property
    def sequences(self) -> Sequences:
        """By name, as of the last look; a snapshot that does not change."""
        return self._topic.records

    def close(self) -> None:
        """Release the connections; no session is left."""
        self._topic.close()
        self._client.close()

    def refresh(self, running: Running, *, seen: object = None, max_age_s: float | None = None) -> None:
        """Read what was written; nothing if the last look is not older, and `seen` is the same as then. Raises ClientError, KafkaError.

        Args:
            max_age_s: by default REFRESH_S.
        """
        most = REFRESH_S if max_age_s is None else max_age_s
        if time.monotonic() - self._looked_at < most and (seen is None or seen == self._seen):
            return
        with self._turns.turn(running), running.using(self._interruption):
            try:
                self._topic.follow()
            except (KafkaError, PartitionError) as error:
                if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # without the right to read it there are no sequences
                    raise
            self._looked_at = time.monotonic()
            self._seen = seen

    def current(self, name: str) -> Sequence | None:
        """A sequence with the last number that this engine gave, if it has a block."""
        found = self.sequences.get(name)
        if found is None:
            return None
        with self._lock:
            block = self._blocks.get(name)
            if block is None or not block.is_of(found):
                return found
            return msgspec.structs.replace(found, last=found.last if block.given is None else block.given)

    def take(self, name: str, count: int, running: Running) -> list[range]:
        """The next numbers, in order. Raises SqlError, ClientError, KafkaError."""
        found = self._from_block(name, count)
        left = count - sum(map(len, found))
        while left:
            with self._turns.turn(running):
                again = self._from_block(name, left)  # another session may have taken a block meanwhile
                if not again:
                    self._take_block(name, left, running)
                    again = self._from_block(name, left)
            found += again
            left -= sum(map(len, again))
        return found

    def _from_block(self, name: str, count: int) -> list[range]:
        sequence = self.sequences.get(name)
        if sequence is None:
            raise SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist')
        with self._lock:
            block = self._blocks.get(name)
            if block is None or not block.numbers or not block.is_of(sequence):
                return []
            numbers, block.numbers = block.numbers[:count], block.numbers[count:]
            block.given = numbers[-1]
            return [numbers]

    def _take_block(self, name: str, least: int, running: Running) -> None:
        """Take a block from the topic. Its size is a promise to nobody: a sequence may end before."""
        before = self._blocks.get(name)
        made: list[_Block] = []

        def decide(sequences: Sequences) -> Sequences:
            sequence = sequences.get(name)
            if sequence is None:
                raise SqlError(UNDEFINED_TABLE, f'relation "{name}" does not exist')
            size = limits.MIN_SQL_SEQUENCE_BLOCK
            if before is not None and before.is_of(sequence):
                size = min(2 * before.size, limits.MAX_SQL_SEQUENCE_BLOCK)
            size = max(size, least, min(sequence.cache, limits.MAX_SQL_SEQUENCE_BLOCK))
            numbers, after = sequence.taken(size)
            made[:] = [_Block(sequence, numbers, min(size, limits.MAX_SQL_SEQUENCE_BLOCK))]
            return {name: after}

        with running.using(self._interruption):
            self._change(self._client, decide)
        with self._lock:
            self._blocks[name] = made[0]

    def change(self, client: BlockingClient, running: Running, decide: Decide) -> None:
        """Write what `decide` makes of the sequences; None deletes one. Called again if another engine wrote in between.

        Raises:
            SqlError: by `decide`, a limit, or others write all the time.
            KafkaError, ClientError: the cluster refused it.
        """
        try:
            with self._turns.turn(running), running.using(self._interruption):
                self._change(client, decide)
        except (ConnectionFailed, TimedOut, Interrupted) as error:
            raise unknown_outcome(error, "the sequence was changed") from error
        with self._lock:
            for name in [name for name in self._blocks if name not in self.sequences]:
                del self._blocks[name]

    def _change(self, client: BlockingClient, decide: Decide) -> None:
        for attempt in range(TAKE_ATTEMPTS):
            try:
                self._topic.change(client, decide)
            except Contended as error:
                if attempt + 1 == TAKE_ATTEMPTS:
                    raise SqlError(SERIALIZATION_FAILURE, str(error), hint="try again") from error
            except KeyedTopicError as error:
                raise SqlError(LIMIT_EXCEEDED, str(error)) from error
            else:
                self._looked_at = time.monotonic()
                return
