"""Cases on a system that needs no process: turns, dashes, absence, results."""

from __future__ import annotations

import re
import shutil
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.meter import Figures, Meter
from bench.peers.peer import CannotDo, Delays, Message, Peer
from bench.suite import bends, guard, idle, openmessaging, page, results
from bench.suite.case import Case
from bench.suite.growth import BATCH, GROWTH, PARTITIONS, Point, points, share_of
from bench.suite.idle import IDLE
from bench.suite.kreps import KREPS, LARGE_BATCH, percentiles
from bench.suite.linkedin import bare_producing, consuming
from bench.suite.measure import BARE, Measure, Options, View, take_turns
from bench.suite.openmessaging import OPENMESSAGING
from bench.wire import BadAnswer

from bench import memory
from tests.bench.fakes import AbsentPeer, FakePeer
from tests.bench.made import OPTIONS, case_of, produce_50, rate_of, result_of, up_to


def test_systems_take_turns_and_the_first_comes_last_next_time() -> None:
    order: list[str] = []

    def run(peer: Peer, meter: Meter) -> Figures:
        order.append(peer.name)
        return {"value": 1.0}

    peers = {name: FakePeer(name=name) for name in ("one", "two")}
    take_turns(rate_of("order", run), peers, {}, rounds=3)
    assert order == ["one", "two", *("one", "two", "two", "one", "one", "two")]  # one warm-up, then three rounds


def test_a_system_that_cannot_do_a_measure_has_a_dash_with_the_reason() -> None:
    measured = take_turns(produce_50(), {"barnabas": FakePeer(), "single": FakePeer(largest_batch=1)}, {}, rounds=2)
    assert measured.dashes == {"single": "it has no batches"}
    assert [run["value"] for run in measured.runs["barnabas"]] == pytest.approx([1e6, 1e6])
    assert all({"cpu_s_per_million", "peak_mb", "others_cpu"} <= run.keys() for run in measured.runs["barnabas"])


def test_a_system_that_fails_has_a_dash_and_the_others_their_figures() -> None:
    answers = iter([1.0, 2.0])

    def run(peer: Peer, meter: Meter) -> Figures:
        if peer.name == "errs" and next(answers) > 1.0:
            raise BadAnswer("it has lost\na message")
        return {"value": 1.0}

    peers = {"errs": FakePeer(name="errs"), "barnabas": FakePeer(name="barnabas")}
    measured = take_turns(rate_of("losing", run), peers, {}, rounds=3)
    assert measured.dashes == {"errs": "failed: it has lost a message"}
    assert {key: len(runs) for key, runs in measured.runs.items()} == {"barnabas": 3}


def test_an_interruption_goes_on_where_cleaning_up_fails() -> None:
    def run(peer: Peer, meter: Meter) -> Figures:
        try:
            raise SystemExit(143)
        finally:
            raise BadAnswer("it is gone")

    with pytest.raises(SystemExit):
        take_turns(rate_of("ending", run), {"barnabas": FakePeer()}, {}, rounds=1)


def test_an_absent_system_is_one_line_and_the_others_are_measured() -> None:
    said: list[str] = []
    outcome = case_of(produce_50()).run({"barnabas": FakePeer, "absent": AbsentPeer}, OPTIONS, said.append)
    assert said[0] == "absent: not measured: absent-server is not installed (Debian package: absent)"
    assert outcome.peers["absent"] == {"name": "absent", "unavailable": "absent-server is not installed (Debian package: absent)"}
    assert list(outcome.measured[0].runs) == ["barnabas"]


def test_a_fresh_measure_starts_a_system_for_each_repetition() -> None:
    made: list[FakePeer] = []

    def make() -> FakePeer:
        made.append(FakePeer())
        return made[-1]

    measure = Measure("ready", "ready", "s", lambda peer, meter: {"value": peer.ready_after_s}, is_fresh=True)
    outcome = case_of(measure).run({"barnabas": make}, OPTIONS, lambda line: None)
    assert len(made) == 1 + OPTIONS.rounds
    assert not any(peer.is_running for peer in made)
    assert outcome.measured[0].runs["barnabas"] == [{"value": 0.25}] * OPTIONS.rounds


@pytest.fixture(scope="module")
def briefly() -> Iterator[None]:
    """Schedules of a tenth of their length: the loop of bare system calls keeps to them for real."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SECONDS", "WARM_UP_S", "MANY_WARM_UP_S"):
            patch.setattr(openmessaging, name, getattr(openmessaging, name) / 10)
        yield


@pytest.fixture(scope="module")
def sent_on_schedule(briefly: None) -> FakePeer:
    """A system that all workloads of `openmessaging` have been sent to."""
    peer = FakePeer()
    OPENMESSAGING.run({"barnabas": lambda: peer}, OPTIONS, lambda line: None)
    return peer


@pytest.mark.usefixtures("briefly")
@pytest.mark.parametrize("case", [KREPS, OPENMESSAGING, GROWTH, IDLE], ids=lambda case: str(case.name))
def test_a_case_measures_all_that_it_says(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "SETTLE_S", 0.0)
    monkeypatch.setattr(idle, "IDLE_S", 0.01)
    outcome = case.run({"barnabas": lambda: FakePeer(1e-3, LARGE_BATCH)}, OPTIONS, lambda line: None)
    assert all(measured.runs["barnabas"] for measured in outcome.measured)
    assert {shown["name"] for measured in outcome.measured for shown in measured.as_json()} >= set(case.charts)


def test_messages_of_topics_and_a_backlog_are_asked_for(sent_on_schedule: FakePeer) -> None:
    assert {"end to end 1 of 100", "end to end 100 of 1"} <= set(sent_on_schedule.asked)
    assert not sent_on_schedule.topics


def test_what_is_measured_at_a_rate_began_before_on_the_same_topics(sent_on_schedule: FakePeer) -> None:
    peer = sent_on_schedule
    counted = [warm_up_s for asked, warm_up_s in zip(_end_to_ends(peer), peer.warm_ups, strict=True) if asked == "1 of 100"]
    # one for the warm-up, then the repetitions
    assert counted == [0.0, openmessaging.MANY_WARM_UP_S, openmessaging.MANY_WARM_UP_S]


def test_how_late_the_generator_was_is_kept_where_it_is_told() -> None:
    assert percentiles(Delays(array("d", [1.0]), 0.25))["late_p99"] == 0.25
    assert "late_p99" not in percentiles(Delays(array("d", [1.0])))


def _end_to_ends(peer: FakePeer) -> list[str]:
    return [asked.removeprefix("end to end ") for asked in peer.asked if asked.startswith("end to end ")]


def test_each_partition_has_a_message_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = FakePeer()
    (measure,) = [each for each in GROWTH.measures(OPTIONS) if each.name == "partitions"]
    measure.run(peer, Meter(peer.pids))
    assert [partitions for partitions, _ in peer.loads] == [count for count in PARTITIONS for _ in range(2)]
    assert [amount.messages for _, amount in peer.loads[::2]] == [count * BATCH for count in PARTITIONS]
    assert all(amount.seconds >= 3.0 for _, amount in peer.loads)


def test_a_line_ends_where_a_system_can_do_no_more() -> None:
    meter = Meter([])
    found = points((1, 2, 4), lambda place: up_to(2, place), meter)
    assert {name: value for name, value in found.items() if name.endswith(("_1", "_2"))} == {
        "at_1": 10.0,
        "at_2": 5.0,
        "cpu_1": 1.0,
        "cpu_2": 1.0,
        "peak_1": 50.0,
        "peak_2": 50.0,
    }
    assert found["value"] == 0.5
    assert meter.ended == "ends before 4: more than it takes"
    with pytest.raises(CannotDo):
        points((1, 2), lambda place: up_to(0, place), meter)


def test_a_line_is_not_kept_where_it_was_interrupted() -> None:
    def at(place: int) -> Point:
        try:
            if place > 1:
                raise KeyboardInterrupt
        finally:
            if place > 1:
                raise BadAnswer("it is gone")
        return Point(10.0, 1.0, 50.0)

    with pytest.raises(KeyboardInterrupt):
        points((1, 2), at, Meter([]))


def test_a_line_that_bends_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bends.sentence("growth/size", "bytes", [(1, 10.0), (10, 8.0), (100, 12.0)]) == ""
    bent = [(1.0, 10.0), (10.0, 5.0), (100.0, 8.0)]
    assert bends.sentence("none/of", "bytes", bent).endswith("At the end it is 80% of the best. The reason is not measured.")
    monkeypatch.setitem(bends.REASONS, "growth/size", "The disk is full.")
    said = bends.sentence("growth/size", "bytes", bent)
    assert said.startswith("Our line falls to 50% of the best before at 10 bytes.")
    assert said.endswith(" The disk is full.")
    assert bends.sentence("growth/size/cpu", "bytes", bent).endswith(" The reason is the same as for the rate.")


def test_every_reason_is_of_a_line_that_there_is() -> None:
    lines = {f"{case.name}/{m.name}" for case in (KREPS, GROWTH) for m in case.measures(OPTIONS) if m.across}
    assert bends.REASONS.keys() <= {line + kind for line in lines for kind in ("", *(f"/{each}" for each in page.BESIDE))}


def test_a_line_of_which_less_is_better_bends_where_it_rises() -> None:
    assert bends.sentence("none/of", "bytes", [(1, 10.0), (10, 5.0), (100, 6.0)], less_is_better=True) == ""
    said = bends.sentence("none/of", "bytes", [(1, 10.0), (10, 5.0), (100, 20.0)], less_is_better=True)
    assert said.startswith("Our line rises to 4.0 times the least before at 100 bytes. At the end it is 4.0 times the least.")


@pytest.mark.parametrize(
    ("count", "most", "share"),
    [
        (1, 0.0, 1_600),  # one consumer reads everything
        (4, 0.0, 400),  # if the topic is slow to read, each consumer reads its share
        (64, 0.0, 100),  # but never less than a minimum, even with many consumers
        (16, 8_000.0, 500),
        (64, 8_000.0, 125),
        (4, 8_000.0, 1_600),  # but never more than the topic has
    ],
)
def test_consumers_read_for_long_enough_together_and_no_more_than_there_is(count: int, most: float, share: int) -> None:
    assert share_of(count, 1_600, most) == share


def test_reasons_of_growth_have_no_figures_that_the_results_have() -> None:
    told = " ".join(reason for name, reason in bends.REASONS.items() if name.startswith("growth/"))
    assert not re.search(r"[0-9] (us|s|MB/s|%)( |\.|,|;)", told)


def test_results_come_back_from_json_as_they_were(tmp_path: Path) -> None:
    case = case_of(produce_50())
    result = result_of(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None))
    assert results.write(result, tmp_path) == tmp_path / "a-case.json"
    assert results.read("a-case", tmp_path) == result
    assert results.read("another", tmp_path) is None


def test_measures_taken_anew_take_the_place_of_those_before_and_no_others() -> None:
    before = {
        "case": "growth",
        "options": {"rounds": 5},
        "date": "1",
        "measures": [{"name": "size"}, {"name": "partitions", "runs": 1}],
    }
    part = {"case": "growth", "options": {"rounds": 5}, "date": "2", "measures": [{"name": "partitions", "runs": 2}]}
    assert results.merged(before, part) == {**part, "measures": [{"name": "size"}, {"name": "partitions", "runs": 2}]}
    with pytest.raises(
        ValueError, match=r"^the results of growth that are there were measured in another way: measure all of it$"
    ):
        results.merged({**before, "options": {"rounds": 3}}, part)
    with pytest.raises(ValueError, match=r"in another way"):
        results.merged({**before, "measures": [{"name": "size"}]}, part)


def test_a_case_measures_only_what_is_wanted() -> None:
    measures = [Measure(name, name, "messages/s", lambda peer, meter: {"value": 1.0}) for name in ("one", "other")]
    case = Case("case", "", "", lambda options: measures)
    outcome = case.run({"a": FakePeer}, Options(rounds=1), lambda line: None, ["other"])
    assert [each.measure.name for each in outcome.measured] == ["other"]


def test_who_lacks_the_figure_of_a_view_has_a_dash_there_and_a_figure_elsewhere() -> None:
    def run(peer: Peer, meter: Meter) -> Figures:
        return {"value": 1.0} if peer.name == "lazy" else {"value": 1.0, "made": 2.0}

    view = View("made", "time", "s", "made", missing="made by writing")
    peers = {"eager": FakePeer(name="eager"), "lazy": FakePeer(name="lazy")}
    whole, seen = take_turns(Measure("idle", "idle", "MB", run, views=(view,)), peers, {}, 2).as_json()
    assert (whole["runs"].keys(), whole["dashes"]) == ({"eager", "lazy"}, {})
    assert (seen["runs"], seen["dashes"]) == ({"eager": [{"value": 2.0}] * 2}, {"lazy": "made by writing"})


def test_views_show_other_figures_of_the_same_repetitions() -> None:
    views = View("idle", "memory", "MB", "mb", limit=60.0), View("delay", "delay", "ms", "ms", bare_name="a relay")
    figures = {"value": 1.0, "mb": 50.0, "ms": 3.0}
    measure = Measure("ready", "ready", "s", lambda peer, meter: figures, bare=lambda: figures, bare_name="a loop", views=views)
    first, second, third = take_turns(measure, {"barnabas": FakePeer()}, {}, rounds=1).as_json()
    assert first["name"] == "ready"
    assert second["runs"] == {"barnabas": [{"value": 50.0}], BARE: [{"value": 50.0}]}
    assert second["limit"] == 60.0
    assert [each["bare_name"] for each in (first, second, third)] == ["a loop", "a loop", "a relay"]


def _kept(name: str, value: float, bare: float | None) -> dict[str, object]:
    runs = {"barnabas": [{"value": value}]}
    if bare is not None:
        runs[BARE] = [{"value": bare}]
    return {"name": name, "higher_is_better": True, "runs": runs}


def test_a_bare_loop_has_half_a_second_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[float] = []
    monkeypatch.setattr(memory, "use", used.append)
    written = bare_producing(Message(100, 50, 1), OPTIONS)()
    assert written["seconds"] >= 0.5
    assert 1 < len(used) <= written["messages"] / OPTIONS.messages
    assert set(used) == {OPTIONS.messages * 100 / 1e6}
    read = consuming("consume", Options(messages=200_000), 100, 1_000_000).bare
    assert read is not None
    assert read()["seconds"] >= 0.5


def test_the_guard_names_what_became_slower_than_the_bare_loop_tells() -> None:
    said: list[str] = []
    recorded = {"measures": [_kept("m", 100.0, 200.0), _kept("n", 100.0, 200.0), _kept("alone", 100.0, None)]}
    now = {"measures": [_kept("m", 40.0, 100.0), _kept("n", 47.0, 100.0), _kept("alone", 5.0, None)]}
    changes = guard.guard("case", recorded, lambda: now, said.append)
    assert [(change.name, change.is_slower) for change in changes] == [("case/m", True), ("case/n", False)]
    guard.report(changes, said.append)
    assert said[-1] == "1 of 2 became 10% slower: case/m"


def test_the_guard_says_so_where_nothing_is_recorded() -> None:
    said: list[str] = []
    assert guard.guard("case", None, lambda: {"measures": []}, said.append) == []
    assert said == ["case: nothing is recorded; `python -m bench run case` does it"]


def test_who_would_take_too_long_to_store_it_all_has_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1e12))
    (measure,) = [each for each in KREPS.measures(OPTIONS) if each.name == "stored-beyond-memory"]
    quick, slow = FakePeer(1e-3, LARGE_BATCH, "quick"), FakePeer(1e-2, LARGE_BATCH, "slow")
    assert sum(name.startswith("at_") for name in measure.run(quick, Meter([]))) == 10
    with pytest.raises(CannotDo, match="to store 0 GB would take it 1000 s, over 200 s"):
        measure.run(slow, Meter([]))
    quick.seconds_each = slow.seconds_each
    assert measure.run(quick, Meter([]))  # it passed once before
