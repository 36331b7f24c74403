"""Deadlines, against a dictionary that is searched."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.coordination.partitioner import java_hash, partition_of
from barnabas.coordination.timers import Timers

KEYS = st.sampled_from("abc")


class AgainstADictionary(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.timers: Timers[str] = Timers()
        self.deadlines: dict[str, int] = {}
        self.now_ms = 0

    @rule(key=KEYS, delay=st.integers(0, 50))
    def schedule(self, key: str, delay: int) -> None:
        self.timers.schedule(key, self.now_ms + delay)
        self.deadlines[key] = self.now_ms + delay

    @rule(key=KEYS)
    def cancel(self, key: str) -> None:
        self.timers.cancel(key)
        self.deadlines.pop(key, None)

    @rule(passed=st.integers(0, 60))
    def time_passes(self, passed: int) -> None:
        self.now_ms += passed
        due = list(self.timers.due(self.now_ms))
        expected = {key for key, deadline in self.deadlines.items() if deadline <= self.now_ms}
        assert len(due) == len(set(due))
        assert set(due) == expected
        assert [self.deadlines[key] for key in due] == sorted(self.deadlines[key] for key in due)
        for key in due:
            del self.deadlines[key]

    @invariant()
    def nobody_is_woken_too_late(self) -> None:
        assert len(self.timers) == len(self.deadlines)
        if self.deadlines:
            deadline = self.timers.next_deadline_ms()
            assert deadline is not None
            assert deadline <= min(self.deadlines.values())


TestAgainstADictionary = AgainstADictionary.TestCase


def test_heartbeats_do_not_make_the_heap_grow() -> None:
    timers: Timers[str] = Timers()
    for now_ms in range(10_000):
        timers.schedule("member", now_ms + 100)
        assert list(timers.due(now_ms)) == []
    assert len(timers._heap) == 1


def test_who_comes_and_goes_does_not_make_the_heap_grow() -> None:
    timers: Timers[str] = Timers()
    timers.schedule("stays", 5)
    for member in range(1_000):
        timers.schedule(f"member-{member}", 2_000_000_000)
        timers.cancel(f"member-{member}")
        assert len(timers._heap) < 20
        assert len(timers._entries) < 20
    assert timers.next_deadline_ms() == 5
    assert list(timers.due(2_000_000_000)) == ["stays"]


def test_hashes_are_java_s() -> None:
    assert java_hash("") == 0
    assert java_hash("my-group") == -1_906_497_762
    assert java_hash("polygenelubricants") == -(1 << 31)
    assert java_hash("\U0001f600") == 1_772_899  # two UTF-16 code units


def test_the_hash_without_a_counterpart_is_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0
    assert all(0 <= partition_of(f"group-{i}", 7) < 7 for i in range(1_000))
