"""Executes the instructions of the sink's protocol over the wire client. The only I/O of exactly-once writing.

Rules
  1. The client's plans retry a request that may or may not have had an effect. After the timeout the caller gets the error, and
     the next `prepare` reads the actual state.
  2. Neither this module nor its imports load numba or pyarrow, which would take most of the start of the driver's processes
     (`sink_records`).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from barnabas.client import transactions
from barnabas.client.blocking import BlockingClient
from barnabas.client.cluster import UnknownTopic
from barnabas.client.errors import PartitionError, ResourceError, UnsupportedRequest
from barnabas.client.producer import BatchProducer
from barnabas.client.transactions import Owner
from barnabas.error_codes import ErrorCode
from barnabas.pipelines.exactly_once import protocol as p
from barnabas.pipelines.exactly_once.sink_records import SINK_TIMEOUT_MS, place_of, read_state
from barnabas.pipelines.exactly_once.state import PREFIX, TOPIC, SinkState, is_of_task, sink_id, to_json
from barnabas.protocol.records.compression import Compression
from barnabas.protocol.records.record import build_batch

logger = logging.getLogger(__name__)
R = TypeVar("R")
NOT_THE_OWNER = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
NO_TWO_PHASE = {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION}
# bytes of a state; states of up to a few hundred tasks are smaller. The state of 10,000 tasks is close to the topic's limit.
COMPRESSED_FROM = 16 << 10
EMPTY, ONGOING = "Empty", "Ongoing"
# by the state of the sink's own id; when its transaction ends, the owner changes at once and the state shortly afterwards
SINCE = {
    EMPTY: p.Since.TAKEN,
    "PrepareCommit": p.Since.RECORDED,
    "CompleteCommit": p.Since.RECORDED,
}


class InstructionExecutor:
    """Executes instructions for one sink.

    Args:
        transaction_timeout_ms: the timeout of tasks' transactions if there is no two-phase commit.
    """

    def __init__(self, client: BlockingClient, sink: str, transaction_timeout_ms: int) -> None:
        self._client = client
        self._sink = sink
        self._timeout_ms = transaction_timeout_ms

    def run(self, steps: p.Steps[R]) -> R:
        """Run a protocol to its end; errors of an instruction are raised inside the protocol."""
        try:
            instruction = next(steps)
            while True:
                instruction = self.step(steps, instruction)
        except StopIteration as end:
            result: R = end.value
            return result

    def step(self, steps: p.Steps[Any], instruction: p.Instruction) -> p.Instruction:
        """Execute one instruction; returns the next one."""
        try:
            answer = self.execute(instruction)
        except p.SinkTakenOver as error:
            return steps.throw(error)
        return steps.send(answer)

    def execute(self, instruction: p.Instruction) -> Any:
        match instruction:
            case p.TakeSink(expected):
                return self._take_sink(expected)
            case p.ReadState():
                return read_state(self._client, self._sink)
            case p.WriteState(state, token):
                return self._write_state(state, token)
            case p.AskStanding():
                return self._standing()
            case p.Claim(name):
                return self._claim(name)
            case p.ClaimOrdinary(name):
                return self._init(name, timeout_ms=self._timeout_ms)
            case p.End(owners, commit):
                return self._end(owners, commit=commit)
            case p.ListOpen():
                return self._list_open()

    # -- ownership ------------------------------------------------------------------------------------------------------

    def _init(self, name: str, **arguments: Any) -> transactions.Initialised:
        return self._client.run(transactions.init_producer_id(self._client.config, self._client.cluster, name, **arguments))

    def _take_sink(self, expected: Owner | None) -> Owner:
        try:
            return self._init(sink_id(self._sink), timeout_ms=SINK_TIMEOUT_MS, expected=expected).owner
        except ResourceError as error:
            if error.code in NOT_THE_OWNER:
                raise p.SinkTakenOver(self._sink) from error
            raise

    def _standing(self) -> p.Standing:
        name = sink_id(self._sink)
        found = self._client.run(transactions.describe_transactions(self._client.config, self._client.cluster, [name]))
        if name not in found:  # the producer id expired, or the client is connected to another cluster
            return p.Standing(Owner(-1, -1), p.Since.ELSE)
        return p.Standing(found[name].owner, SINCE.get(found[name].state, p.Since.ELSE))

    def _claim(self, name: str) -> transactions.Initialised | None:
        try:
            return self._init(name, two_phase=True, keep_prepared=True)
        except UnsupportedRequest:
            return None
        except ResourceError as error:
            if error.code in NO_TWO_PHASE:
                return None
            raise

    # -- the state ------------------------------------------------------------------------------------------------------

    def _write_state(self, state: SinkState, token: Owner) -> Owner:
        name = sink_id(self._sink)
        try:
            self._record(state, token)
        except UnknownTopic:  # the topic was deleted after the sink was prepared, but this driver knows the state
            logger.warning("event=sinks-topic-gone topic=%s sink=%r note='it is made again'", TOPIC, self._sink)
            self._record(state, token)
        ended = self._end_raw({name: token}, commit=True)[name]
        if isinstance(ended, ErrorCode):
            if ended in NOT_THE_OWNER:
                raise p.SinkTakenOver(self._sink)
            raise ResourceError(ended, f"transactional id {name}")
        return ended

    def _record(self, state: SinkState, token: Owner) -> None:
        client = self._client
        now_ms = time.time_ns() // 1_000_000
        batch = bytearray(build_batch([(self._sink.encode(), to_json(state))]))
        producer = BatchProducer(
            client,
            lambda: now_ms,
            owner=token,
            transactional_id=sink_id(self._sink),
            second_version=client.has_second_transactions,
            codec=Compression.ZSTD if len(batch) >= COMPRESSED_FROM else Compression.NONE,
            any_topic=True,  # the sink's partition number does not change if the topic is created again
        )
        try:
            producer.send(place_of(client, self._sink), batch, 1)
            producer.flush()
        except (PartitionError, ResourceError) as error:
            if error.code in NOT_THE_OWNER:
                raise p.SinkTakenOver(self._sink) from error
            if error.code == ErrorCode.MESSAGE_TOO_LARGE and state.pending is not None:
                raise p.TooManyTasks(self._sink, len(state.pending.transactions)) from error
            raise
        finally:
            producer.close()

    # -- tasks' transactions --------------------------------------------------------------------------------------------

    def _end(self, owners: Mapping[str, Owner], *, commit: bool) -> dict[str, p.Ending]:
        endings = {}
        for name, ended in self._end_raw(owners, commit=commit).items():
            if not isinstance(ended, ErrorCode):
                endings[name] = p.Ending.DONE
            elif ended in NOT_THE_OWNER:
                endings[name] = p.Ending.FENCED
            elif ended == ErrorCode.INVALID_TXN_STATE:
                endings[name] = p.Ending.OTHER
            else:
                raise ResourceError(ended, f"transactional id {name}")
        return endings

    def _end_raw(self, owners: Mapping[str, Owner], *, commit: bool) -> dict[str, Owner | ErrorCode]:
        client = self._client
        plan = transactions.end_transactions(
            client.config, client.cluster, owners, commit=commit, second_version=client.has_second_transactions
        )
        return client.run(plan)

    def _list_open(self) -> list[p.OpenId]:
        client = self._client
        pattern = f"{re.escape(f'{PREFIX}/{self._sink}/')}.*"
        listed = client.run(transactions.list_transactions(client.config, client.cluster, [EMPTY, ONGOING], pattern))
        names = [name for name in listed if is_of_task(self._sink, name)]
        found = client.run(transactions.describe_transactions(client.config, client.cluster, names))
        open_states = {EMPTY: False, ONGOING: True}
        return [
            p.OpenId(each.transactional_id, each.owner, open_states[each.state])
            for each in found.values()
            if each.state in open_states
        ]
