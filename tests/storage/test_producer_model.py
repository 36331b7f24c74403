"""The producers of a log, against the whole history of each: retries, gaps, epochs, expiry, truncation, restarts.

The history is kept by batch, so that a truncation can take it back. The log must know nothing that the model does not know: the rest of the
state is a function of the present batches.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError
from barnabas.storage.log import AppendOrigin, Log
from barnabas.storage.producer_state import KEPT_BATCHES
from tests.storage.support import FILES as OS_FILES
from tests.storage.support import NOW, TOPIC_ID, batch

CONFIG = TopicConfig(segment_bytes=700, index_interval_bytes=100, segment_ms=2**50, message_timestamp_after_max_ms=2**50)
EXPIRATION_MS = 10_000
PRODUCERS = 3


class Sent(NamedTuple):
    """A batch that is in the log."""

    producer: int
    epoch: int
    sequence: int
    records: int
    offset: int
    time: int


class Producers(RuleBasedStateMachine):
    """`sent` is the model; `forgotten` names, for each producer, the offset below which its batches no longer count."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.now = NOW
        self.sent: list[Sent] = []
        self.forgotten = dict.fromkeys(range(PRODUCERS), 0)
        self.start = 0
        self.log = self.opened(clean=True)

    def opened(self, *, clean: bool) -> Log:
        return Log.open(
            self.folder / "topic-0",
            config=CONFIG,
            files=OS_FILES,
            now_ms=self.now,
            clean_shutdown=clean,
            log_start_offset=self.start,
            topic_id=TOPIC_ID,
            producer_id_expiration_ms=EXPIRATION_MS,
        )

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.folder)

    def history(self, producer: int) -> list[Sent]:
        """The batches by which a producer is known: of its last epoch, after it was last forgotten."""
        known = [s for s in self.sent if s.producer == producer and s.offset >= self.forgotten[producer]]
        return [s for s in known if s.epoch == known[-1].epoch]

    def expected(self, producer: int, epoch: int, sequence: int, count: int) -> str:
        known = self.history(producer)
        if not known:
            return "append"
        last = known[-1]
        if epoch != last.epoch:
            if epoch < last.epoch:
                return "INVALID_PRODUCER_EPOCH"
            return "append" if sequence == 0 else "OUT_OF_ORDER_SEQUENCE_NUMBER"
        if sequence == last.sequence + last.records:
            return "append"
        for each in known[-KEPT_BATCHES:]:
            if (each.sequence, each.records) == (sequence, count):
                return f"duplicate of {each.offset}"
        return "OUT_OF_ORDER_SEQUENCE_NUMBER"

    def produce(self, producer: int, epoch: int, sequence: int, count: int) -> None:
        wanted = self.expected(producer, epoch, sequence, count)
        data = batch(*([b"value"] * count), time_ms=self.now, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        end = self.log.log_end_offset
        try:
            result = self.log.appender.append_as_leader(
                memoryview(data), leader_epoch=0, now_ms=self.now, origin=AppendOrigin.CLIENT
            )
            answer = f"duplicate of {result.first_offset}" if result.duplicate else "append"
        except KafkaError as error:
            answer = error.code.name
        assert answer == wanted
        assert (self.log.log_end_offset > end) == (answer == "append")
        if answer == "append":
            self.sent.append(Sent(producer, epoch, sequence, count, end, self.now + count - 1))

    @rule(producer=st.integers(0, PRODUCERS - 1), count=st.integers(1, 4))
    def go_on(self, producer: int, count: int) -> None:
        known = self.history(producer)
        last = known[-1] if known else Sent(producer, 0, 0, 0, 0, 0)
        self.produce(producer, last.epoch, last.sequence + last.records, count)

    @rule(producer=st.integers(0, PRODUCERS - 1), back=st.integers(1, 7))
    def repeat(self, producer: int, back: int) -> None:
        known = self.history(producer)
        if back <= len(known):
            again = known[-back]
            self.produce(producer, again.epoch, again.sequence, again.records)

    @rule(producer=st.integers(0, PRODUCERS - 1), epoch=st.integers(0, 3), sequence=st.integers(0, 9), count=st.integers(1, 3))
    def try_anything(self, producer: int, epoch: int, sequence: int, count: int) -> None:
        self.produce(producer, epoch, sequence, count)

    @rule(passed=st.integers(0, 6_000))
    def time_passes(self, passed: int) -> None:
        self.now += passed
        self.log.reader.expire_producers(self.now)
        self.expire()

    def expire(self) -> None:
        for producer in range(PRODUCERS):
            known = self.history(producer)
            if known and self.now - known[-1].time >= EXPIRATION_MS:
                self.forgotten[producer] = self.log.log_end_offset

    @rule(share=st.floats(0.7, 1), planned=st.booleans())
    def truncate(self, share: float, planned: bool) -> None:
        """The state is made again from the present batches. A forgotten producer with batches there is known again until it expires."""
        offset = self.start + round(share * (self.log.log_end_offset - self.start))
        if offset >= self.log.log_end_offset:
            return
        rewind = self.log.truncator.plan_truncation(offset, at_once_bytes=-1) if planned else None
        if rewind is not None:
            rewind.run()
        self.log.truncator.truncate_to(offset, rewind)
        assert rewind is None or not self.log.truncator.still_holds(rewind)
        self.sent = [s for s in self.sent if s.offset + s.records <= offset]
        self.log.reader.expire_producers(self.now)
        self.forgotten = dict.fromkeys(range(PRODUCERS), 0)
        self.expire()

    @rule(clean=st.booleans(), lost_snapshots=st.booleans())
    def reopen(self, clean: bool, lost_snapshots: bool) -> None:
        if clean:
            self.log.close()
        else:
            self.log.abandon()
        if lost_snapshots:
            for path in (self.folder / "topic-0").glob("*.snapshot"):
                path.unlink()
        self.log = self.opened(clean=clean)
        self.forgotten = dict.fromkeys(range(PRODUCERS), 0)
        self.expire()

    @invariant()
    def the_same_are_known(self) -> None:
        wanted = {}
        for producer in range(PRODUCERS):
            known = self.history(producer)
            if known:
                last = known[-1]
                wanted[producer] = (last.epoch, last.sequence + last.records - 1, last.time)
        assert {p.producer_id: (p.epoch, p.last_sequence, p.last_timestamp) for p in self.log.reader.producers()} == wanted


TestProducers = Producers.TestCase
TestProducers.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
