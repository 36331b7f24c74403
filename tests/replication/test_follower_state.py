"""A follower's log against a leader's: divergence by epoch, resets, and three replicas that lead in turn."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule

from barnabas.errors import ErrorCode, KafkaError
from barnabas.replication.follower_state import DivergingEpoch, FollowerState, LeadersAnswer, Next
from barnabas.storage.log import Log
from tests.storage.support import NOW, batch, bytes_of, open_log

LEADER = 1


def produce(log: Log, epoch: int, value: bytes = b"x") -> None:
    log.appender.append_as_leader(batch(value), leader_epoch=epoch, now_ms=NOW)


def answer_of(leader: Log, follower: FollowerState, high_watermark: int, max_bytes: int = 10**6) -> LeadersAnswer:
    """As a leader answers a fetch at the follower's position."""
    asked = follower.position
    if asked.last_fetched_epoch >= 0:
        epoch, end = leader.reader.end_offset_for_epoch(asked.last_fetched_epoch)
        if epoch < 0:
            return failed(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < asked.last_fetched_epoch or end < asked.offset:
            return LeadersAnswer(ErrorCode.NONE, -1, -1, b"", DivergingEpoch(epoch, end))
    try:
        region = leader.reader.read(asked.offset, max_bytes, limit_offset=leader.log_end_offset, minimum_one=True)
    except KafkaError as error:
        return failed(error.code)
    records = b"" if region is None else bytes_of(region)
    return LeadersAnswer(ErrorCode.NONE, high_watermark, leader.log_start_offset, records)


def failed(error: ErrorCode) -> LeadersAnswer:
    return LeadersAnswer(error, -1, -1, b"")


def write_down(log: Log) -> None:
    """As a fetcher does before it asks."""
    if not log.is_written_down:
        mark = log.truncator.start_mark
        log.truncator.sync_cut()
        log.truncator.start_written(mark)


def follow(leader: Log, follower: FollowerState, high_watermark: int | None = None, max_bytes: int = 10**6) -> int:
    """Fetch until nothing comes any more, writing down what is to be; how many answers it took."""
    mark = leader.log_end_offset if high_watermark is None else high_watermark
    for count in range(1, 1000):
        write_down(follower.log)
        before = follower.position
        step = follower.receive(before, answer_of(leader, follower, mark, max_bytes), NOW)
        if step is Next.ASK_RANGE:
            follower.reset(leader.log_start_offset, leader.log_end_offset)
        elif follower.position == before and follower.log.is_written_down:
            return count
    raise AssertionError("it never caught up")


def content(log: Log, start: int = 0) -> bytes:
    """All bytes from the log's start on, or from `start` if it is later."""
    parts, offset = [], max(log.log_start_offset, start)
    while (region := log.reader.read(offset, 10**7, limit_offset=log.log_end_offset, minimum_one=True)) is not None:
        data = bytes_of(region)
        parts.append(data)
        last = 0
        while last < len(data):
            base, length = int.from_bytes(data[last : last + 8], "big"), int.from_bytes(data[last + 8 : last + 12], "big")
            offset = base + int.from_bytes(data[last + 23 : last + 27], "big") + 1
            last += length + 12
    return b"".join(parts)


@pytest.fixture
def leader(tmp_path: Path) -> Log:
    return open_log(tmp_path / "leader")


@pytest.fixture
def follower(tmp_path: Path) -> FollowerState:
    return FollowerState(open_log(tmp_path / "follower"), leader_id=LEADER, leader_epoch=9, high_watermark=0)


def test_an_empty_follower_gets_everything(leader: Log, follower: FollowerState) -> None:
    for epoch in (1, 1, 2, 4):
        produce(leader, epoch)
    follow(leader, follower, high_watermark=3, max_bytes=1)
    assert content(follower.log) == content(leader)
    assert (follower.high_watermark, follower.log.reader.latest_epoch) == (3, 4)


def test_what_parts_from_the_leaders_history_is_cut(leader: Log, follower: FollowerState) -> None:
    for log in (leader, follower.log):
        produce(log, 1, b"same")
    for value in (b"lost", b"lost too"):
        produce(follower.log, 2, value)
    produce(leader, 3, b"kept")
    follow(leader, follower)
    assert content(follower.log) == content(leader)
    assert follower.log.log_end_offset == 2


def test_a_follower_ahead_in_the_same_epoch_is_cut_to_the_leaders_end(leader: Log, follower: FollowerState) -> None:
    for log in (leader, follower.log, follower.log):
        produce(log, 1, b"same")
    produce(leader, 2)
    follow(leader, follower)
    assert content(follower.log) == content(leader)


def test_an_epoch_the_leader_never_saw_takes_several_cuts(leader: Log, follower: FollowerState) -> None:
    produce(leader, 1)
    produce(follower.log, 1)
    produce(leader, 2)
    produce(follower.log, 3)
    produce(follower.log, 5)
    produce(leader, 6)
    assert follow(leader, follower) >= 3
    assert content(follower.log) == content(leader)


@pytest.mark.parametrize("changes", [True, False])
def test_where_much_is_to_be_read_for_a_cut_that_is_done_before(leader: Log, follower: FollowerState, changes: bool) -> None:
    for number in range(300):
        data = batch(b"x", producer_id=7, producer_epoch=0, base_sequence=number)
        for log in (leader, follower.log) if number < 290 else (follower.log,):
            log.appender.append_as_leader(memoryview(bytearray(data)), leader_epoch=1, now_ms=NOW)
    produce(leader, 2)
    assert follower.receive(follower.position, answer_of(leader, follower, 0), NOW) is Next.CUT
    assert follower.planned is not None
    assert follower.log.log_end_offset == 300, "nothing has happened yet"
    follower.planned.rewind.run()
    if changes:
        produce(follower.log, 1)
    assert follower.cut(follower.planned) is Next.FETCH
    assert follower.log.log_end_offset == (301 if changes else 290)
    assert [producer.last_sequence for producer in follower.log.reader.producers()] == [299 if changes else 289]


@pytest.mark.parametrize(("cleaned_end", "begins_anew"), [(3, False), (4, True)])
def test_a_cut_below_what_was_compacted_begins_the_log_anew(
    leader: Log, follower: FollowerState, cleaned_end: int, begins_anew: bool
) -> None:
    for number in range(5):
        for log in (leader, follower.log) if number < 3 else (follower.log,):
            produce(log, 1)
    produce(leader, 2)
    follower.log.cleaned_end = cleaned_end
    assert follower.receive(follower.position, answer_of(leader, follower, 0), NOW) is Next.FETCH
    assert follower.log.log_end_offset == (0 if begins_anew else 3)
    follow(leader, follower)
    assert content(follower.log) == content(leader)


def test_that_records_are_synced_no_more_is_written_down_before_they_are_cut(leader: Log, follower: FollowerState) -> None:
    """A crash in the middle of the cut leaves a hole, which a start mends past the recovery point only."""
    produce(leader, 3)
    for _ in range(3):
        produce(follower.log, 2)
    follower.log.flush()
    log, asked = follower.log, follower.position
    assert follower.receive(asked, answer_of(leader, follower, 1), NOW) is Next.FETCH
    assert (log.log_end_offset, log.recovery_point, log.is_written_down) == (3, 0, False)
    write_down(log)
    follower.receive(asked, answer_of(leader, follower, 1), NOW)
    assert (log.log_end_offset, log.is_written_down) == (0, False)
    assert follow(leader, follower) > 0
    assert content(log) == content(leader)


def test_a_compacted_log_that_begins_behind_the_leaders_end_begins_anew_before_it(leader: Log, follower: FollowerState) -> None:
    """The power took the leader's end, and it was elected all the same."""
    produce(leader, 2)
    follower.log.truncator.truncate_fully_and_start_at(3)
    follower.log.cleaned_end = 3
    follow(leader, follower)
    assert content(follower.log) == content(leader)


def test_nothing_is_cut_without_the_leaders_word(leader: Log, follower: FollowerState) -> None:
    produce(follower.log, 1)
    produce(follower.log, 1)
    again = FollowerState(follower.log, leader_id=LEADER, leader_epoch=10, high_watermark=1)
    assert again.log.log_end_offset == 2, "a watermark that lags behind says nothing about what was committed"
    assert again.high_watermark == 1


def test_the_leaders_deleted_records_go_here_too(leader: Log, follower: FollowerState) -> None:
    for _ in range(5):
        produce(leader, 1)
    follow(leader, follower)
    leader.truncator.delete_records_before(3)
    follow(leader, follower)
    assert follower.log.log_start_offset == 3


def test_a_follower_behind_the_leaders_start_begins_anew(leader: Log, follower: FollowerState) -> None:
    produce(follower.log, 1)
    for _ in range(5):
        produce(leader, 1)
    leader.truncator.truncate_fully_and_start_at(8)
    produce(leader, 2)
    follow(leader, follower)
    assert (follower.log.log_start_offset, follower.log.log_end_offset, follower.high_watermark) == (8, 9, 9)
    assert content(follower.log) == content(leader)


@pytest.mark.parametrize("latest", [1, 2, 3])
def test_a_follower_of_an_older_epoch_finds_a_log_that_has_started_again(
    leader: Log, follower: FollowerState, latest: int
) -> None:
    """The leader got no record since, so only its epochs tell where its log begins."""
    for epoch in (1, 2, 3):
        produce(leader, epoch)
        if epoch <= latest:
            follow(leader, follower)
    leader.truncator.truncate_fully_and_start_at(8)
    assert follow(leader, follower) < 10
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (8, 8)
    produce(leader, 3)
    follow(leader, follower)
    assert content(follower.log) == content(leader)
    assert follower.log.reader.latest_epoch == 3


def test_followers_that_have_started_again_lead_each_other(leader: Log, follower: FollowerState, tmp_path: Path) -> None:
    other = FollowerState(open_log(tmp_path / "other"), leader_id=LEADER, leader_epoch=9, high_watermark=0)
    produce(leader, 1)
    follow(leader, other)
    produce(leader, 2)
    follow(leader, follower)
    leader.truncator.truncate_fully_and_start_at(8)
    follow(leader, follower)
    follow(leader, other)
    follower.log.appender.append_as_leader(batch(b"y"), leader_epoch=4, now_ms=NOW)
    assert follow(follower.log, other) < 10
    assert content(other.log) == content(follower.log)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Next.WAIT),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Next.WAIT),
        (ErrorCode.KAFKA_STORAGE_ERROR, Next.WAIT),
        (ErrorCode.FENCED_LEADER_EPOCH, Next.STOP),
        (ErrorCode.OFFSET_OUT_OF_RANGE, Next.ASK_RANGE),
    ],
)
def test_errors_change_nothing(follower: FollowerState, error: ErrorCode, step: Next) -> None:
    produce(follower.log, 1)
    before = follower.position
    assert follower.receive(before, failed(error), NOW) is step
    assert follower.position == before


def test_an_answer_to_an_older_question_is_passed_over(leader: Log, follower: FollowerState) -> None:
    asked = follower.position
    produce(leader, 1)
    late = answer_of(leader, follower, 1)
    follow(leader, follower)
    assert follower.receive(asked, late, NOW) is Next.FETCH
    assert follower.log.log_end_offset == 1


def test_a_divergence_that_cuts_nothing_is_refused(follower: FollowerState) -> None:
    produce(follower.log, 1)
    wrong = LeadersAnswer(ErrorCode.NONE, -1, -1, b"", DivergingEpoch(1, 5))
    with pytest.raises(KafkaError) as raised:
        follower.receive(follower.position, wrong, NOW)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE
    assert follower.log.log_end_offset == 1


class Replicas(RuleBasedStateMachine):
    """Three replicas. Any of them may lead the next epoch, with any log (so there are unclean elections too).

    The other replicas follow a little or completely. A replica that follows completely has the leader's bytes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.logs = [open_log(folder / str(number)) for number in range(3)]
        self.marks = [0, 0, 0]
        self.leader, self.epoch, self.count = 0, 1, 0

    @rule(who=st.integers(0, 2))
    def elect(self, who: int) -> None:
        self.leader, self.epoch = who, self.epoch + 1
        self.logs[who].appender.begin_epoch(self.epoch)

    @rule(records=st.integers(1, 3))
    def produce(self, records: int) -> None:
        for _ in range(records):
            self.count += 1
            produce(self.logs[self.leader], self.epoch, b"%d" % self.count)

    @rule(share=st.floats(0, 1))
    def delete(self, share: float) -> None:
        log = self.logs[self.leader]
        log.truncator.delete_records_before(log.log_start_offset + round(share * (log.log_end_offset - log.log_start_offset)))

    @rule(further=st.integers(1, 4))
    def start_again(self, further: int) -> None:
        """As the copy of a partition of another cluster, where more was deleted than the copy has."""
        log = self.logs[self.leader]
        log.truncator.truncate_fully_and_start_at(log.log_end_offset + further)

    @rule(who=st.integers(0, 2), answers=st.integers(1, 3))
    def follow_a_little(self, who: int, answers: int) -> None:
        if who != self.leader:
            following, leader = self.following(who), self.logs[self.leader]
            for _ in range(answers):
                step = following.receive(following.position, answer_of(leader, following, 0, 1), NOW)
                if step is Next.ASK_RANGE:
                    following.reset(leader.log_start_offset, leader.log_end_offset)

    @rule(who=st.integers(0, 2))
    def follow_wholly(self, who: int) -> None:
        if who != self.leader:
            follow(self.logs[self.leader], self.following(who), max_bytes=1)
            log, leader = self.logs[who], self.logs[self.leader]
            start = max(log.log_start_offset, leader.log_start_offset)
            assert (log.log_end_offset, content(log, start)) == (leader.log_end_offset, content(leader, start))
            for offset in range(start, log.log_end_offset):
                assert log.reader.epoch_at(offset) == leader.reader.epoch_at(offset)

    def following(self, who: int) -> FollowerState:
        return FollowerState(self.logs[who], leader_id=self.leader, leader_epoch=self.epoch, high_watermark=0)

    def teardown(self) -> None:
        for log in self.logs:
            log.abandon()
        self.stack.close()


TestReplicas = Replicas.TestCase
