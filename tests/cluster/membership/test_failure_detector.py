"""Brokers that are found silent, and brokers that are not: by hand, look by look."""

from __future__ import annotations

import pytest

from barnabas.cluster.membership.failure_detector import (
    AT_FIRST_INTERVALS,
    MAX_ASKED_PER_S,
    TIMES_AS_LATE,
    TIMES_AS_SLOW,
    FailureDetector,
    Registered,
)

INTERVAL_MS, SESSION_MS = 100.0, 6_000.0
A, B, C, D = (2, 20), (3, 30), (4, 40), (5, 50)


class Watch:
    """A broker that looks every 100 ms, and the others that it asks."""

    def __init__(self, *others: Registered, replicas: int = 0) -> None:
        self.detector = FailureDetector(INTERVAL_MS, SESSION_MS)
        self.detector.changed(len(others) + 1, replicas)
        self.detector.look(0.0)
        self.clock_ms = 0.0
        self.answer_ms = 1.0
        for each in others:
            self.detector.reached(each)
        self.mute: set[Registered] = set()
        self._asked: set[Registered] = set()

    def look(self, after_ms: float = INTERVAL_MS) -> list[Registered]:
        """The brokers that are found silent now. A broker that was asked answers before the next look, unless it is mute."""
        self.clock_ms += after_ms
        found = self.detector.look(self.clock_ms)
        self._asked.update(found.ask)
        for each in sorted(self._asked - self.mute):
            self._asked.discard(each)
            self.detector.answered(each, self.clock_ms + self.answer_ms)
        return found.silent

    def looks_until_silent(self, at_most: int = 1_000) -> tuple[int, list[Registered]]:
        for count in range(1, at_most + 1):
            if found := self.look():
                return count, found
        return at_most, []

    def be_calm(self) -> None:
        """Until nobody remembers that anybody was slow."""
        for _ in range(200):
            assert self.look() == []


def test_who_answers_is_never_silent() -> None:
    watch = Watch(A, B)
    assert watch.looks_until_silent() == (1_000, [])


def test_who_stands_still_is_found_out_in_a_few_intervals_and_once() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.looks_until_silent() == (4, [A])  # the first look sends the probe
    assert watch.looks_until_silent() == (1_000, [])


def test_who_hears_no_majority_finds_nobody_silent() -> None:
    watch = Watch(A, B, C, D)
    watch.be_calm()
    watch.mute |= {A, B, C}
    assert watch.looks_until_silent() == (1_000, [])
    watch.mute.discard(C)
    found = [*watch.looks_until_silent()[1]]
    assert sorted(found) == [A, B]


def test_of_two_brokers_neither_finds_the_other_silent() -> None:
    watch = Watch(A)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.looks_until_silent() == (1_000, [])


def test_who_cannot_be_asked_counts_as_not_heard() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.detector.lost(B)
    watch.mute.add(A)
    assert watch.looks_until_silent() == (1_000, [])


def test_who_stood_still_himself_knows_nothing_of_others() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.look() == []
    assert watch.look(after_ms=20_000) == []
    watch.mute.clear()
    assert watch.looks_until_silent() == (1_000, [])


@pytest.mark.parametrize("event", ["reached anew", "brokers came or went"])
def test_at_first_there_is_more_patience(event: str) -> None:
    watch = Watch(A, B)
    watch.be_calm()
    if event == "reached anew":
        watch.detector.reached(A)
    else:
        watch.detector.changed(3, 0)
    watch.mute.add(A)
    count, found = watch.looks_until_silent()
    assert found == [A]
    assert 6 <= count <= 1 + AT_FIRST_INTERVALS


def test_more_replicas_need_more_patience() -> None:
    watch = Watch(A, B, replicas=20_000)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.looks_until_silent() == (14, [A])  # 10 looks (1 s) later than with few replicas


def test_who_is_slow_is_given_time() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    for _ in range(5):
        watch.mute.add(A)
        assert watch.look() == watch.look() == []
        watch.mute.clear()
        assert watch.look() == watch.look() == []
    watch.mute.add(A)
    count, found = watch.looks_until_silent()
    assert found == [A]
    assert count > 7


def test_slowness_of_less_than_an_interval_counts() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.answer_ms = 80.0
    assert watch.look() == []
    watch.mute.add(A)
    assert watch.looks_until_silent() == (1 + -(-80 * TIMES_AS_SLOW // 100), [A])


def test_who_comes_late_himself_has_patience() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.look(after_ms=INTERVAL_MS + 40)
    watch.mute.add(A)
    count, found = watch.looks_until_silent()
    assert found == [A]
    assert 6 <= count <= 1 + 3 + TIMES_AS_LATE * 40 / INTERVAL_MS


def test_who_was_found_silent_for_nothing_is_given_much_time() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    patience = []
    for epoch in range(3):
        again = (A[0], 100 + epoch)
        watch.detector.lost(A)
        watch.detector.reached(again)
        watch.be_calm()
        watch.mute.add(again)
        count, found = watch.looks_until_silent()
        assert found == [again]
        patience.append(count)
        watch.look()
        watch.detector.lost(again)  # the broker was unregistered, registers again and answers at once
    assert patience[0] == 4
    assert patience[1] > 4 * patience[0]
    assert patience[2] > patience[1]


def test_who_comes_back_after_a_sessions_time_was_not_slow() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.looks_until_silent() == (4, [A])
    for _ in range(int(SESSION_MS / INTERVAL_MS)):
        watch.look()
    watch.detector.lost(A)
    again = (A[0], 21)
    watch.detector.reached(again)
    watch.be_calm()
    watch.mute.add(again)
    assert watch.looks_until_silent() == (4, [again])


def test_an_answer_after_all_counts_and_the_next_silence_is_another() -> None:
    watch = Watch(A, B)
    watch.be_calm()
    watch.mute.add(A)
    assert watch.looks_until_silent() == (4, [A])
    watch.mute.clear()
    for _ in range(int(SESSION_MS / INTERVAL_MS)):
        watch.look()
    watch.mute.add(A)
    assert watch.looks_until_silent()[1] == [A]


def test_with_patience_for_a_session_nobody_is_found_silent() -> None:
    watch = Watch(A, B, replicas=int(SESSION_MS * 20))
    watch.mute.add(A)
    assert watch.looks_until_silent() == (1_000, [])


def test_many_brokers_are_asked_less_often() -> None:
    detector = FailureDetector(INTERVAL_MS, SESSION_MS)
    assert detector.interval_ms == INTERVAL_MS
    detector.changed(201, 0)
    assert detector.interval_ms == 200 * 1000 / MAX_ASKED_PER_S


@pytest.mark.parametrize(("brokers", "found_ms"), [(10, 600), (50, 2_450), (100, 4_950), (150, 7_450), (200, None)])
def test_the_more_brokers_the_later_one_is_found_silent(brokers: int, found_ms: float | None) -> None:
    """The figures of docs/scale.md: after its last answer, with 3,000 replicas on each broker."""
    watch = Watch(*((broker_id, 1) for broker_id in range(2, brokers + 1)), replicas=3_000)
    interval_ms = watch.detector.interval_ms
    for _ in range(200):
        assert watch.look(interval_ms) == []
    watch.mute.add((2, 1))
    found = next((count for count in range(1, 100) if watch.look(interval_ms)), None)
    assert (None if found is None else found * interval_ms) == found_ms


def test_among_a_hundred_brokers_nobody_is_found_silent_for_14_s_after_one_went() -> None:
    watch = Watch(*((broker_id, 1) for broker_id in range(2, 101)), replicas=3_000)
    watch.mute.add((2, 1))
    found = next(count for count in range(1, 100) if watch.look(watch.detector.interval_ms))
    assert 14_000 < found * watch.detector.interval_ms < 15_000
