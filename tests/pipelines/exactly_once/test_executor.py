"""The sink's protocol against a real broker: the driver is killed after each of its steps, tasks are repeated, late and fewer.

No Spark: the parts are run as Spark runs them, so that each step can be the last.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.client import operations
from barnabas.client.blocking import BlockingClient
from barnabas.client.results import LATEST
from barnabas.client.transactions import Owner
from barnabas.pipelines.exactly_once import protocol as p
from barnabas.pipelines.exactly_once.executor import InstructionExecutor
from barnabas.pipelines.exactly_once.state import TOPIC, Pending, SinkState, is_of_task, ordinary_id, slot_id
from barnabas.pipelines.sink_options import WriteTask
from barnabas.pipelines.writing import Attempt, write_batches
from barnabas.testing import Broker
from tests.waiting import wait_until

MakeTopic = Callable[..., str]
QUERY = "query-1"
_numbers = itertools.count()


@dataclass
class Sink:
    """A sink on a topic, and the parts of its protocol."""

    client: BlockingClient
    topic: str
    timeout_ms: int = 60_000
    name: str = field(default_factory=lambda: f"sink-{os.getpid()}-{next(_numbers)}")

    @property
    def executor(self) -> InstructionExecutor:
        return InstructionExecutor(self.client, self.name, self.timeout_ms)

    def prepare(self) -> p.Handout:
        return self.executor.run(p.prepare(self.name))

    def write(self, handout: p.Handout, batch: int, task: int, values: list[str], query: str = QUERY) -> p.Wrote:
        """One attempt of a task."""
        if p.is_written(handout, query, batch):
            return p.Wrote(handout, query, batch)
        rows = pa.RecordBatch.from_pydict({"value": pa.array([v.encode() for v in values], pa.binary())})

        def open_attempt(client: BlockingClient) -> Attempt:
            nonce = str(next(_numbers))
            place = InstructionExecutor(client, self.name, self.timeout_ms).run(p.attempt(handout, task, nonce))
            return Attempt(place.owner, place.transactional_id)

        how = WriteTask(self.topic, transaction_timeout_ms=self.timeout_ms, client=self.client.config)
        count, attempt = write_batches(how, [rows], open_attempt)
        if attempt is None:
            return p.Wrote(handout, query, batch)
        assert attempt.transactional_id is not None
        assert attempt.owner is not None
        return p.Wrote(handout, query, batch, count, {attempt.transactional_id: attempt.owner})

    def commit(self, wrote: list[p.Wrote]) -> p.Handout | None:
        return self.executor.run(p.commit(wrote))

    def batch(self, batch: int, tasks: list[list[str]]) -> None:
        """A whole batch."""
        handout = self.prepare()
        self.commit([self.write(handout, batch, index, values) for index, values in enumerate(tasks)])

    def run_partly(self, steps: p.Steps[Any], count: int) -> bool:
        """Kill it after `count` instructions; whether it was at its end before."""
        executor = self.executor
        try:
            instruction = next(steps)
            for _ in range(count):
                instruction = executor.step(steps, instruction)
        except StopIteration:
            return True
        return False

    def visible(self, *, is_settled: bool = True) -> list[str]:
        """The values that a plain reader of committed records sees, in order; with `is_settled`, when no transaction is open."""
        if is_settled:
            wait_until_stable(self.client, self.topic)
        return sorted(v.decode() for v in read_committed(self.client, self.topic))

    def open_ids(self) -> list[str]:
        return [each.transactional_id for each in self.executor.execute(p.ListOpen()) if each.has_written]


def wait_until_stable(client: BlockingClient, topic: str) -> None:
    """Wait until no transaction is open: a broker answers an end when it is decided, and writes the markers then."""
    places = [(topic, partition) for partition in client.topics_by_name([topic])[topic].partitions]
    committed = replace(client.config, read_committed=True)
    deadline = time.monotonic() + 60
    while True:
        asked = dict.fromkeys(places, LATEST)
        ends = client.run(operations.list_offsets(client.config, client.cluster, asked))
        stable = client.run(operations.list_offsets(committed, client.cluster, asked))
        if {place: end.offset for place, end in ends.items()} == {place: end.offset for place, end in stable.items()}:
            return
        assert time.monotonic() < deadline, f"a transaction is open in {topic}"


def read_committed(client: BlockingClient, topic: str) -> list[bytes]:
    host, port = client.config.bootstrap_servers[0]
    consumer = Consumer(
        {
            "bootstrap.servers": f"{host}:{port}",
            "group.id": "visible",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    count = len(client.topics_by_name([topic])[topic].partitions)
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(count)])
        values, ended = [], 0
        while ended < count:
            message = consumer.poll(30)
            assert message is not None, "no end of the partition within 30 s"
            if message.error() is None:
                values.append(message.value() or b"")
            else:
                ended += 1
        return values
    finally:
        consumer.close()


@pytest.fixture
def sink(client: BlockingClient, topic: MakeTopic) -> Sink:
    return Sink(client, topic(2))


def test_batches_come_once_and_are_seen_whole(sink: Sink) -> None:
    sink.batch(0, [["a", "b"], ["c"]])
    handout = sink.prepare()
    wrote = [sink.write(handout, 1, 0, ["d"]), sink.write(handout, 1, 1, ["e", "f"])]
    assert sink.visible(is_settled=False) == ["a", "b", "c"]
    sink.commit(wrote)
    assert sink.visible() == ["a", "b", "c", "d", "e", "f"]
    sink.batch(1, [["d"], ["e", "f"]])
    assert sink.visible() == ["a", "b", "c", "d", "e", "f"]


def test_the_driver_is_killed_after_each_step_of_commit(sink: Sink) -> None:
    done = False
    for steps in itertools.count():
        handout = sink.prepare()
        wrote = [sink.write(handout, steps, task, [f"{steps:03}-{task}"]) for task in range(2)]
        done = sink.run_partly(p.commit(wrote), steps)
        sink.batch(steps, [[f"{steps:03}-{task}"] for task in range(2)])
        assert sink.visible() == [f"{each:03}-{task}" for each in range(steps + 1) for task in range(2)]
        assert sink.open_ids() == []
        if done:
            break
    assert steps >= 4


def test_the_driver_is_killed_after_each_step_of_prepare(sink: Sink) -> None:
    for steps in itertools.count():
        handout = sink.prepare()
        wrote = [sink.write(handout, steps, 0, [f"{steps:03}"])]
        sink.run_partly(p.commit(wrote), 1 + steps % 2)  # decided; no or all transactions are ended
        done = sink.run_partly(p.prepare(sink.name), steps)
        sink.batch(steps, [[f"{steps:03}"]])
        assert sink.visible() == [f"{each:03}" for each in range(steps + 1)]
        if done:
            break
    assert steps >= 4


def test_a_batch_that_was_not_decided_is_aborted_and_written_again_by_fewer_tasks(sink: Sink) -> None:
    handout = sink.prepare()
    for task in range(4):
        sink.write(handout, 0, task, [f"left by {task}"])
    assert len(sink.open_ids()) == 4
    sink.batch(0, [["a", "b", "c"]])
    assert sink.visible() == ["a", "b", "c"]
    assert sink.open_ids() == []


def test_of_several_attempts_one_counts(sink: Sink) -> None:
    handout = sink.prepare()
    sink.write(handout, 0, 0, ["first"])
    second = sink.write(handout, 0, 0, ["second"])
    sink.write(handout, 0, 0, ["third"])
    sink.commit([second])
    assert sink.visible() == ["second"]
    assert sink.open_ids() == []


def test_the_first_of_several_attempts_counts_though_another_has_claimed_its_id(sink: Sink) -> None:
    handout = sink.prepare()
    first = sink.write(handout, 0, 0, ["first"])
    sink.write(handout, 0, 0, ["speculative"])
    sink.commit([first])
    assert sink.visible() == ["first"]
    assert sink.open_ids() == []


def test_a_late_attempt_is_refused(sink: Sink) -> None:
    handout = sink.prepare()
    sink.commit([sink.write(handout, 0, 0, ["in time"])])
    with pytest.raises(p.SinkTakenOver):
        sink.write(handout, 0, 0, ["late"])
    sink.batch(1, [["next"]])
    with pytest.raises(p.SinkTakenOver):
        sink.write(handout, 0, 0, ["later"])
    assert sink.visible() == ["in time", "next"]
    assert sink.open_ids() == []


def kept(sink: Sink, batches: int) -> p.Handout:
    """The instructions after so many batches, of which only the first was prepared."""
    handout: p.Handout | None = sink.prepare()
    for batch in range(batches):
        assert handout is not None
        handout = sink.commit([sink.write(handout, batch, 0, [f"{batch}"])])
    assert handout is not None
    return handout


def test_a_sink_is_prepared_once_where_one_process_commits(sink: Sink) -> None:
    handout = kept(sink, 3)
    assert sink.visible() == ["0", "1", "2"]
    again = sink.commit([p.Wrote(handout, QUERY, 3)])  # a batch without rows records nothing
    assert again == handout
    assert handout.state == sink.prepare().state


def test_what_was_handed_out_before_is_refused_though_nobody_prepared(sink: Sink) -> None:
    handout = kept(sink, 1)
    late = handout
    sink.commit([sink.write(handout, 1, 0, ["1"])])
    with pytest.raises(p.SinkTakenOver):
        sink.write(late, 1, 1, ["late"])
    with pytest.raises(p.SinkTakenOver):
        sink.write(p.Handout(late.sink, late.token, late.state), 2, 0, ["taken for prepared"])
    assert sink.visible() == ["0", "1"]
    assert sink.open_ids() == []


def test_what_was_kept_is_worth_nothing_when_another_driver_has_the_sink(sink: Sink) -> None:
    handout = kept(sink, 1)
    wrote = sink.write(handout, 1, 0, ["1"])
    sink.batch(1, [["one"]])
    with pytest.raises(p.SinkTakenOver):
        sink.write(handout, 1, 1, ["1"])
    with pytest.raises(p.SinkTakenOver):
        sink.commit([wrote])
    assert sink.visible() == ["0", "one"]
    assert sink.open_ids() == []


def test_the_sinks_topic_may_go_away_under_what_was_kept(sink: Sink) -> None:
    """It is made again with what is known here, so that nothing is lost."""
    handout = kept(sink, 1)
    sink.client.delete_topics([TOPIC])
    wait_until(lambda: not sink.client.topics_by_name([TOPIC]))
    sink.commit([sink.write(handout, 1, 0, ["1"])])
    assert sink.visible() == ["0", "1"]
    assert sink.prepare().state.decided == {QUERY: 1}


def test_the_driver_is_killed_after_each_step_of_a_commit_of_what_was_kept(sink: Sink) -> None:
    for count in itertools.count():
        first = sink.visible()
        handout = sink.prepare()
        batch = 2 * count + 2
        handout = sink.commit([sink.write(handout, batch - 1, 0, ["before"])]) or handout
        was_done = sink.run_partly(p.commit([sink.write(handout, batch, index, ["x"]) for index in range(2)]), count)
        sink.batch(batch, [["x"], ["x"]])
        assert sink.visible() == sorted([*first, "before", "x", "x"]), count
        if was_done:
            return


def test_a_driver_whose_sink_was_taken_over_decides_nothing(sink: Sink) -> None:
    old = sink.prepare()
    wrote = sink.write(old, 0, 0, ["of the former driver"])
    new = sink.prepare()
    with pytest.raises(p.SinkTakenOver, match=f"the sink '{sink.name}' was taken over"):
        sink.commit([wrote])
    sink.executor.run(p.recover(sink.name, old.token))
    sink.commit([sink.write(new, 0, 0, ["of the new driver"])])
    assert sink.visible() == ["of the new driver"]


def test_two_queries_with_one_name_never_mix(sink: Sink) -> None:
    one = sink.prepare()
    written = sink.write(one, 0, 0, ["one"], "query one")
    other = sink.prepare()
    sink.commit([sink.write(other, 0, 0, ["other"], "query other")])
    with pytest.raises(p.SinkTakenOver):
        sink.commit([written])
    again = sink.prepare()
    sink.commit([sink.write(again, 0, 0, ["one"], "query one")])
    assert sink.visible() == ["one", "other"]
    assert sink.prepare().state.decided == {"query other": 0, "query one": 0}


def test_a_batch_of_a_checkpoint_that_was_set_back_fails(sink: Sink) -> None:
    for batch in range(3):
        sink.batch(batch, [[f"{batch}"]])
    handout = sink.prepare()
    with pytest.raises(p.BatchIsPast, match=r"batch 1 cannot be written: the sink '.*' has batch 2 .* checkpoint was set back"):
        sink.write(handout, 1, 0, ["1"])
    sink.executor.run(p.recover(sink.name, None))
    sink.batch(2, [["2"]])
    sink.batch(3, [["3"]])
    assert sink.visible() == ["0", "1", "2", "3"]
    renamed = Sink(sink.client, sink.topic)
    renamed.batch(1, [["1 again"]])
    assert sink.visible() == ["0", "1", "1 again", "2", "3"]
    assert sink.open_ids() == []


def test_abort_after_a_commit_that_failed_half_way_ends_what_was_decided(sink: Sink) -> None:
    handout = sink.prepare()
    wrote = [sink.write(handout, 0, task, [f"{task}"]) for task in range(3)]
    sink.run_partly(p.commit(wrote), 1)
    sink.executor.run(p.recover(sink.name, handout.token))
    assert sink.visible() == ["0", "1", "2"]
    assert sink.prepare().state.has(QUERY, 0)


def test_a_decision_about_very_many_tasks_is_a_small_record(sink: Sink) -> None:
    pending = Pending(QUERY, 1, {slot_id(sink.name, task): Owner(7_000 + task, 3) for task in range(20_000)})
    decided = SinkState({QUERY: 0}, pending)
    token = sink.executor.execute(p.TakeSink())
    sink.executor.execute(p.WriteState(decided, token))
    assert sink.executor.execute(p.ReadState()) == decided


def test_a_decision_that_the_topic_does_not_take_is_told_and_decides_nothing(sink: Sink) -> None:
    handout = sink.prepare()
    wrote = sink.write(handout, 0, 0, ["of too many"])
    noise = random.Random(1)
    names = (ordinary_id(sink.name, task, f"{noise.getrandbits(128):032x}") for task in range(60_000))
    with pytest.raises(p.TooManyTasks, match="a batch of 60001 tasks that wrote cannot be decided"):
        sink.commit([wrote, replace(wrote, claims=dict.fromkeys(names, Owner(7, 0)))])
    sink.executor.run(p.recover(sink.name, handout.token))
    sink.batch(0, [["of few"]])
    assert sink.visible() == ["of few"]


@pytest.mark.parametrize("knows_token", [True, False])
def test_abort_of_a_batch_that_was_not_decided_leaves_nothing_open(sink: Sink, knows_token: bool) -> None:
    handout = sink.prepare()
    for task in range(3):
        sink.write(handout, 0, task, [f"{task}"])
    sink.executor.run(p.recover(sink.name, handout.token if knows_token else None))
    assert sink.visible() == []
    assert sink.open_ids() == []


def test_ids_are_used_again(sink: Sink) -> None:
    if sink.executor.execute(p.Claim(slot_id(sink.name, 0))) is None:
        pytest.skip("without two-phase commit each attempt has an id of its own")
    for batch in range(5):
        sink.batch(batch, [[f"{batch}-{task}"] for task in range(3)])
    with BlockingClient(sink.client.config) as client:
        from barnabas.client import transactions

        every = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit", "CompleteAbort"]
        listed = client.run(transactions.list_transactions(client.config, client.cluster, every))
    assert len([name for name in listed if is_of_task(sink.name, name)]) == 3


def test_without_two_phase_commit_a_lost_transaction_is_told_and_its_batch_written_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Broker() as broker, BlockingClient.to(broker.bootstrap_servers) as client:
        sink = Sink(client, "ordinary")
        handout = sink.prepare()
        wrote = [sink.write(handout, 0, task, [f"{task}"]) for task in range(2)]
        sink.run_partly(p.commit(wrote), 1)
        (lost, _) = (name for each in wrote for name in each.claims)
        sink.executor.execute(p.ClaimOrdinary(lost))  # aborts the transaction, as its timeout would
        handout = sink.prepare()
        assert "1 of 2 transactions of batch 0" in caplog.text
        assert not handout.state.has(QUERY, 0)
        sink.commit([sink.write(handout, 0, task, [f"{task}"]) for task in range(2)])
        assert sink.visible() == ["0", "1", "1"]
        sink.batch(0, [["0"], ["1"]])
        assert sink.visible() == ["0", "1", "1"]
