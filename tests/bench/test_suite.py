"""Cases on a system that needs no process: turns, dashes, absence, results, the page."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as Xml
from array import array
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench.cluster import page as cluster_page
from bench.meter import Figures, Meter
from bench.peers.peer import CannotDo, Delays, Message, Peer
from bench.report import OURS, THEIRS
from bench.suite import bends, guard, idle, openmessaging, page, results
from bench.suite.case import Case, Outcome
from bench.suite.growth import BATCH, GROWTH, PARTITIONS, Point, delays, points
from bench.suite.idle import IDLE
from bench.suite.kreps import KREPS, LARGE_BATCH, percentiles
from bench.suite.linkedin import bare_producing, consuming, producing
from bench.suite.measure import BARE, PLACE, Measure, Options, View, take_turns
from bench.suite.openmessaging import OPENMESSAGING
from bench.wire import BadAnswer

from bench import figures, memory
from tests.bench.fakes import AbsentPeer, FakePeer

OPTIONS = Options(rounds=2, messages=1_000, seconds=1.0, stored_mb=20, large_mb=10)


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "use", lambda megabytes: None)


def _case(*measures: Measure, charts: tuple[str, ...] = ()) -> Case:
    return Case("a-case", "A case", "What it is.", lambda options: measures, charts=charts)


def _rate(name: str, run: Callable[[Peer, Meter], Figures], *, target: float | None = None) -> Measure:
    return Measure(name, name, "messages/s", run, target=target)


def _produce_50() -> Measure:
    return _rate("fifty", producing(Message(100, 50, 1), OPTIONS), target=2.0)


def test_systems_take_turns_and_the_first_comes_last_next_time() -> None:
    order: list[str] = []

    def run(peer: Peer, meter: Meter) -> Figures:
        order.append(peer.name)
        return {"value": 1.0}

    peers = {name: FakePeer(name=name) for name in ("one", "two")}
    take_turns(_rate("order", run), peers, {}, rounds=3)
    assert order == ["one", "two", *("one", "two", "two", "one", "one", "two")]  # to warm up, then three rounds


def test_a_system_that_cannot_do_a_measure_has_a_dash_with_the_reason() -> None:
    measured = take_turns(_produce_50(), {"barnabas": FakePeer(), "single": FakePeer(largest_batch=1)}, {}, rounds=2)
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
    measured = take_turns(_rate("losing", run), peers, {}, rounds=3)
    assert measured.dashes == {"errs": "failed: it has lost a message"}
    assert {key: len(runs) for key, runs in measured.runs.items()} == {"barnabas": 3}


def test_an_interruption_goes_on_where_cleaning_up_fails() -> None:
    def run(peer: Peer, meter: Meter) -> Figures:
        try:
            raise SystemExit(143)
        finally:
            raise BadAnswer("it is gone")

    with pytest.raises(SystemExit):
        take_turns(_rate("ending", run), {"barnabas": FakePeer()}, {}, rounds=1)


def test_an_absent_system_is_one_line_and_the_others_are_measured() -> None:
    said: list[str] = []
    outcome = _case(_produce_50()).run({"barnabas": FakePeer, "absent": AbsentPeer}, OPTIONS, said.append)
    assert said[0] == "absent: not measured: absent-server is not installed (Debian package: absent)"
    assert outcome.peers["absent"] == {"name": "absent", "unavailable": "absent-server is not installed (Debian package: absent)"}
    assert list(outcome.measured[0].runs) == ["barnabas"]


def test_a_fresh_measure_starts_a_system_for_each_repetition() -> None:
    made: list[FakePeer] = []

    def make() -> FakePeer:
        made.append(FakePeer())
        return made[-1]

    measure = Measure("ready", "ready", "s", lambda peer, meter: {"value": peer.ready_after_s}, is_fresh=True)
    outcome = _case(measure).run({"barnabas": make}, OPTIONS, lambda line: None)
    assert len(made) == 1 + OPTIONS.rounds
    assert not any(peer.is_running for peer in made)
    assert outcome.measured[0].runs["barnabas"] == [{"value": 0.25}] * OPTIONS.rounds


@pytest.mark.parametrize("case", [KREPS, OPENMESSAGING, GROWTH, IDLE], ids=lambda case: str(case.name))
def test_a_case_measures_all_that_it_says(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "SETTLE_S", 0.0)
    monkeypatch.setattr(idle, "IDLE_S", 0.01)
    outcome = case.run({"barnabas": lambda: FakePeer(1e-3, LARGE_BATCH)}, OPTIONS, lambda line: None)
    assert all(measured.runs["barnabas"] for measured in outcome.measured)
    assert {shown["name"] for measured in outcome.measured for shown in measured.as_json()} >= set(case.charts)


def test_a_system_that_a_case_is_not_for_has_a_dash_with_the_reason(tmp_path: Path) -> None:
    case = Case("a-case", "A case", "", lambda options: [_produce_50()], only=("barnabas",), why="no groups")
    outcome = case.run({"barnabas": FakePeer, "other": lambda: FakePeer(name="other")}, OPTIONS, lambda line: None)
    assert outcome.measured[0].dashes == {"other": "no groups"}
    assert "| no groups |" in page.render([(case, _result(case, outcome))], tmp_path)


def test_messages_of_topics_and_a_backlog_are_asked_for() -> None:
    peer = FakePeer()
    OPENMESSAGING.run({"barnabas": lambda: peer}, OPTIONS, lambda line: None)
    assert {"end to end 1 of 100", "end to end 100 of 1"} <= set(peer.asked)
    assert not peer.topics


def test_what_is_measured_at_a_rate_began_before_on_the_same_topics() -> None:
    peer = FakePeer()
    OPENMESSAGING.run({"barnabas": lambda: peer}, OPTIONS, lambda line: None)
    counted = [warm_up_s for asked, warm_up_s in zip(_end_to_ends(peer), peer.warm_ups, strict=True) if asked == "1 of 100"]
    assert counted == [0.0, openmessaging.MANY_WARM_UP_S, openmessaging.MANY_WARM_UP_S]  # the warm-up, and the repetitions


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


def _up_to(most: int, place: int) -> Point:
    if place > most:
        raise CannotDo("more than it takes")
    return Point(10.0 / place, 1.0, 50.0)


def test_a_line_ends_where_a_system_can_do_no_more() -> None:
    meter = Meter([])
    found = points((1, 2, 4), lambda place: _up_to(2, place), meter)
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
        points((1, 2), lambda place: _up_to(0, place), meter)


def test_a_line_keeps_its_places_where_a_system_fails_at_one(tmp_path: Path) -> None:
    def at(place: int) -> Point:
        if place > 1:
            raise BadAnswer("it has lost a message")
        return Point(10.0, 1.0, 50.0)

    line = Measure("line", "line", "MB/s", lambda peer, meter: points((1, 2), at, meter), across="places")
    outcome = _case(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    (measured,) = outcome.measured
    assert measured.dashes == {}
    assert measured.ends == {"barnabas": "ends before 2: failed: it has lost a message"}
    assert "| fake | 10 | ends before 2: failed: it has lost a message |" in page.render(
        [(_case(line), _result(_case(line), outcome))], tmp_path
    )


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
    assert bends.sentence("none/of", "bytes", bent).endswith("at the end it is 80% of the best. Why is not measured yet.")
    monkeypatch.setitem(bends.REASONS, "growth/size", "The disk is full.")
    said = bends.sentence("growth/size", "bytes", bent)
    assert said.startswith("Our line bends at 10 bytes: 50% of the best before;")
    assert said.endswith(" The disk is full.")
    assert bends.sentence("growth/size/cpu", "bytes", bent).endswith(" The reason is that of the rate.")


def test_every_reason_is_of_a_line_that_there_is() -> None:
    lines = {f"{case.name}/{m.name}" for case in (KREPS, GROWTH) for m in case.measures(OPTIONS) if m.across}
    assert bends.REASONS.keys() <= {line + kind for line in lines for kind in ("", *(f"/{each}" for each in page.BESIDE))}


def test_a_line_of_which_less_is_better_bends_where_it_rises() -> None:
    assert bends.sentence("none/of", "bytes", [(1, 10.0), (10, 5.0), (100, 6.0)], less_is_better=True) == ""
    said = bends.sentence("none/of", "bytes", [(1, 10.0), (10, 5.0), (100, 20.0)], less_is_better=True)
    assert said.startswith("Our line bends at 100 bytes: 4.0 times the least before; at the end it is 4.0 times the least.")


def test_each_place_shows_what_it_took_and_is_drawn(tmp_path: Path) -> None:
    line = Measure(
        "line", "line", "MB/s", lambda peer, meter: points((1, 2), lambda place: _up_to(2, place), meter), across="places"
    )
    outcome = _case(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    text = page.render([(_case(line), _result(_case(line), outcome))], tmp_path)
    for title, each in (
        ("CPU seconds of the system for a GB of values", "1"),
        ("The most memory of the system meanwhile (MB)", "50"),
    ):
        assert f"{title}:\n\n| places | 1 | 2 |  |\n| --- | ---: | ---: | --- |\n| fake | {each} | {each} |" in text
    assert {path.name for path in tmp_path.iterdir()} == {f"a-case-line{kind}.svg" for kind in ("", "-cpu", "-peak")}


def test_a_line_of_delays_is_judged_the_other_way_round(tmp_path: Path) -> None:
    def run(peer: Peer, meter: Meter) -> Figures:
        return delays((1, 2), lambda place: 2.0 * place * (1.0 if peer.name == "barnabas" else 3.0 / place), meter)

    line = Measure("line", "line", "ms", run, higher_is_better=False, across="places")
    makers = {"barnabas": lambda: FakePeer(name="barnabas"), "other": lambda: FakePeer(name="other")}
    text = page.render([(_case(line), _result(_case(line), _case(line).run(makers, OPTIONS, print)))], tmp_path)
    assert "Less than 2 times (places): other at 2." in text
    assert "Our line bends at 2 places: 2.0 times the least before" in text


def test_reasons_of_growth_have_no_figures_that_the_results_have() -> None:
    told = " ".join(reason for name, reason in bends.REASONS.items() if name.startswith("growth/"))
    assert not re.search(r"[0-9] (us|s|MB/s|%)( |\.|,|;)", told)


def test_places_that_a_system_does_not_reach_are_dashes(tmp_path: Path) -> None:
    case = Case("growth", "Growth", "", lambda options: [m for m in GROWTH.measures(options) if m.name == "size"])

    def large() -> FakePeer:
        peer = FakePeer(name="large")
        peer.largest_bytes = 10_000_000
        return peer

    outcome = case.run({"barnabas": FakePeer, "large": large}, OPTIONS, lambda line: None)
    assert "| - |  |" in page.render([(case, _result(case, outcome))], tmp_path)


def _result(case: Case, outcome: Outcome) -> results.Result:
    return results.describe(
        case.name,
        text=case.text,
        command="python -m bench run a-case",
        options=OPTIONS,
        peers=outcome.peers,
        measured=outcome.measured,
    )


def test_results_come_back_from_json_as_they_were(tmp_path: Path) -> None:
    case = _case(_produce_50())
    result = _result(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None))
    assert results.write(result, tmp_path) == tmp_path / "a-case.json"
    assert results.read("a-case", tmp_path) == result
    assert results.read("another", tmp_path) is None


def test_who_lacks_the_figure_of_a_view_has_a_dash_there_and_a_figure_elsewhere() -> None:
    def run(peer: Peer, meter: Meter) -> Figures:
        return {"value": 1.0} if peer.name == "lazy" else {"value": 1.0, "made": 2.0}

    view = View("made", "time", "s", "made", missing="made by writing")
    peers = {"eager": FakePeer(name="eager"), "lazy": FakePeer(name="lazy")}
    whole, seen = take_turns(Measure("idle", "idle", "MB", run, views=(view,)), peers, {}, 2).as_json()
    assert (whole["runs"].keys(), whole["dashes"]) == ({"eager", "lazy"}, {})
    assert (seen["runs"], seen["dashes"]) == ({"eager": [{"value": 2.0}] * 2}, {"lazy": "made by writing"})


def test_views_show_other_figures_of_the_same_repetitions() -> None:
    view = View("idle", "memory", "MB", "mb", limit=60.0)
    measure = Measure("ready", "ready", "s", lambda peer, meter: {"value": 1.0, "mb": 50.0}, views=(view,))
    first, second = take_turns(measure, {"barnabas": FakePeer()}, {}, rounds=1).as_json()
    assert first["name"] == "ready"
    assert second["runs"] == {"barnabas": [{"value": 50.0}]}
    assert second["limit"] == 60.0


def test_the_page_has_dashes_ratios_targets_and_charts(tmp_path: Path) -> None:
    fast, slow = (lambda: FakePeer(1e-6, name="barnabas")), (lambda: FakePeer(4e-6, name="Kafka"))
    case = _case(_produce_50(), charts=("fifty",))
    makers = {"barnabas": fast, "kafka": slow, "single": lambda: FakePeer(largest_batch=1, name="single"), "absent": AbsentPeer}
    text = page.render([(case, _result(case, case.run(makers, OPTIONS, lambda line: None)))], tmp_path)
    assert "| 4.00x |" in text
    assert "To reach: 2 times Apache Kafka: yes." in text
    assert "it has no batches |" in text
    assert "Not measured: absent: absent-server is not installed" in " ".join(text.split())
    assert "`sync` = `never` | its documentation |" in text
    (chart,) = tmp_path.glob("*.svg")
    assert f"({tmp_path.name}/{chart.name})" in text
    assert Xml.parse(chart).getroot().tag.endswith("svg")


def test_the_page_says_where_we_lose(tmp_path: Path) -> None:
    case = _case(_produce_50())
    makers = {"barnabas": lambda: FakePeer(4e-6), "kafka": lambda: FakePeer(1e-6, name="Kafka")}
    text = page.render([(case, _result(case, case.run(makers, OPTIONS, lambda line: None)))], tmp_path)
    assert "We lose to Kafka here." in text
    assert "**no**" in text


def _of(name: str, times: dict[str, float], bare: float | None = None) -> results.Result:
    """A result of one measure in which each system takes so many microseconds for a message."""
    makers = {key: (lambda key=key, each=each: FakePeer(each * 1e-6, name=key)) for key, each in times.items()}
    case = _case(_rate(name, producing(Message(100, 1, 1), OPTIONS)))
    result = _result(case, case.run(makers, OPTIONS, lambda line: None))
    if bare is not None:
        result["measures"][0]["runs"][BARE] = [{"value": bare}] * OPTIONS.rounds
    return result


def test_the_page_counts_the_repetitions(tmp_path: Path) -> None:
    case = _case(_produce_50())
    text = page.render([(case, _result(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None)))], tmp_path)
    assert "### Fifty\n\n2 repetitions.\n" in text


def test_a_result_is_shown_with_the_text_that_it_was_measured_under(tmp_path: Path) -> None:
    case = _case(_produce_50())
    result = _result(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None))
    changed = Case("a-case", "A case", "How it is measured from now on.", lambda options: [])
    text = page.render([(changed, result)], tmp_path)
    assert "\n## A case\n\nWhat it is.\n\n" in text
    assert "from now on" not in text


def test_the_commit_stands_with_each_case(tmp_path: Path) -> None:
    first, second = (_of(name, {"barnabas": 1.0}) for name in ("one", "two"))
    second["peers"]["barnabas"]["version"] = "commit 2"
    text = " ".join(
        page.render([(_case(), first), (_case(), second)], tmp_path).split()
    )  # lines end where the machine's name has them
    assert "barnabas: 1; a load" in text
    assert "barnabas: commit 2; a load" in text
    assert "| barnabas | said with each case |" in text


def test_the_page_says_who_is_less_than_half_as_good(tmp_path: Path) -> None:
    result = _of("rate", {"barnabas": 2.0, "kafka": 3.0, "near": 3.0, "ahead": 1.0, "far": 8.0})
    text = page.render([(_case(), result)], tmp_path)
    assert "Less than 2 times: near (1.50), ahead (0.50). We lose to ahead here." in text


def test_the_page_says_of_whom_nothing_can_be_twice_ahead(tmp_path: Path) -> None:
    times = {"barnabas": 2.0, "near": 3.0, "ahead": 1.0, "far": 8.0}
    text = page.render([(_case(), _of("rate", times, 600_000.0))], tmp_path)
    assert "2 times is beyond the bare system calls too: near (1.80), ahead (0.60)." in " ".join(text.split())
    assert "is beyond" not in page.render([(_case(), _of("rate", times, 2_000_000.0))], tmp_path)


def test_the_page_says_how_many_times_as_long_as_the_bare_loop_something_takes(tmp_path: Path) -> None:
    result = _of("delay", {"barnabas": 2.0, "near": 3.0}, 250_000.0)
    measure = result["measures"][0]
    measure["higher_is_better"], measure["bare_name"] = False, "bare interpreter"
    measure["runs"][BARE] = [{"value": 250_000.0, "p50": 3.0, "peak_mb": 12.0}]
    text = page.render([(_case(), result)], tmp_path)
    assert "2.00 times bare |" in text
    assert "| bare interpreter | 250,000 | 3 |  | 12 |  |  |" in text


@pytest.mark.parametrize(("bare", "said"), [(600_000.0, "yes"), (650_000.0, "**no**")])
def test_consuming_is_judged_by_the_bare_loop(bare: float, said: str, tmp_path: Path) -> None:
    text = page.render([(_case(), _of("consume", {"barnabas": 2.0}, bare))], tmp_path)
    assert f"To reach: 80% of bare sendfile: {said}." in text
    assert "sendfile" not in page.render([(_case(), _of("produce", {"barnabas": 2.0}, bare))], tmp_path)


@pytest.mark.parametrize(
    ("higher_is_better", "said"),
    [
        (True, "Less than 2 times (places): near at 10, 100. We lose to near at 100."),
        (False, "Less than 2 times (places): near at 1, 10. We lose to near at 1, 10."),
    ],
)
def test_the_page_says_at_which_places_a_line_is_less_than_twice_anothers(
    higher_is_better: bool, said: str, tmp_path: Path
) -> None:
    def line(peer: Peer, meter: Meter) -> Figures:
        found = (4.0, 4.0, 1.0) if peer.name == "barnabas" else (1.0, 3.0, 2.0)
        return {**{f"at_{place}": value for place, value in zip((1, 10, 100), found, strict=True)}, "value": 1.0}

    case = _case(Measure("line", "line", "MB/s", line, higher_is_better=higher_is_better, across="places"))
    outcome = case.run({"barnabas": lambda: FakePeer(name="barnabas"), "near": lambda: FakePeer(name="near")}, OPTIONS, print)
    assert said in page.render([(case, _result(case, outcome))], tmp_path)


@pytest.mark.parametrize(("theirs", "said"), [(2.5, ">= 2x: yes"), (1.8, ">= 2x: **no**")])
def test_cpu_of_replicated_writes_is_to_be_half_at_most(theirs: float, said: str) -> None:
    runs = {OURS: [{"cpu_s_per_million": 1.0, "peak_mb": 200.0}], THEIRS: [{"cpu_s_per_million": theirs, "peak_mb": 3_000.0}]}
    assert cluster_page._cpu({"unit": "records/s", "title": "bulk, acks=all", "runs": runs})[-3:] == [said, "200", "3,000"]
    assert cluster_page._cpu({"unit": "records/s", "title": "bulk, acks=1", "runs": runs})[-3] == "better"


def test_what_grows_is_drawn_as_lines(tmp_path: Path) -> None:
    case = Case("kreps-2014", "Growth", "", lambda options: [m for m in KREPS.measures(options) if m.name == "stored"])
    page.render([(case, _result(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None)))], tmp_path)
    (chart,) = tmp_path.glob("*.svg")
    assert "<polyline" in chart.read_text()


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


def test_ratios_of_the_page_are_those_of_the_figures() -> None:
    measured = take_turns(_produce_50(), {"barnabas": FakePeer(1e-6), "kafka": FakePeer(3e-6)}, {}, rounds=2)
    assert figures.ratio(measured.as_json()[0], "barnabas", "kafka") == pytest.approx(3.0)


def test_who_would_take_too_long_to_store_it_all_has_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1e12))
    (measure,) = [each for each in KREPS.measures(OPTIONS) if each.name == "stored-beyond-memory"]
    quick, slow = FakePeer(1e-3, LARGE_BATCH, "quick"), FakePeer(1e-2, LARGE_BATCH, "slow")
    assert sum(name.startswith("at_") for name in measure.run(quick, Meter([]))) == 10
    with pytest.raises(CannotDo, match="to store 0 GB would take it 1000 s, over 200 s"):
        measure.run(slow, Meter([]))
    quick.seconds_each = slow.seconds_each
    assert measure.run(quick, Meter([]))  # it was able once


def test_a_line_lies_where_its_places_are_in_the_median(tmp_path: Path) -> None:
    places = iter([10.0, 30.0, 20.0])
    line = Measure(
        "line", "line", "MB/s", lambda peer, meter: {"at_1": 4.0, f"{PLACE}_1": next(places), "value": 1.0}, across="MB"
    )
    outcome = _case(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    assert "| MB | 25 |  |" in page.render([(_case(line), _result(_case(line), outcome))], tmp_path)
