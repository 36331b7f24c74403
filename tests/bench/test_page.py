"""The texts and drawings of results on the page."""

from __future__ import annotations

import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest
from bench.cluster import page as cluster_page
from bench.meter import Figures, Meter
from bench.peers.peer import Message, Peer
from bench.report import OURS, THEIRS
from bench.suite import page, results
from bench.suite.case import Case
from bench.suite.growth import GROWTH, Point, delays, points
from bench.suite.kreps import KREPS
from bench.suite.linkedin import producing
from bench.suite.measure import BARE, PLACE, Measure, take_turns
from bench.wire import BadAnswer

from bench import figures
from tests.bench.fakes import AbsentPeer, FakePeer
from tests.bench.made import OPTIONS, case_of, produce_50, rate_of, result_of, up_to


def test_a_system_that_a_case_is_not_for_has_a_dash_with_the_reason(tmp_path: Path) -> None:
    case = Case("a-case", "A case", "", lambda options: [produce_50()], only=("barnabas",), why="no groups")
    outcome = case.run({"barnabas": FakePeer, "other": lambda: FakePeer(name="other")}, OPTIONS, lambda line: None)
    assert outcome.measured[0].dashes == {"other": "no groups"}
    assert "| no groups |" in page.render([(case, result_of(case, outcome))], tmp_path)


def test_a_line_keeps_its_places_where_a_system_fails_at_one(tmp_path: Path) -> None:
    def at(place: int) -> Point:
        if place > 1:
            raise BadAnswer("it has lost a message")
        return Point(10.0, 1.0, 50.0)

    line = Measure("line", "line", "MB/s", lambda peer, meter: points((1, 2), at, meter), across="places")
    outcome = case_of(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    (measured,) = outcome.measured
    assert measured.dashes == {}
    assert measured.ends == {"barnabas": "ends before 2: failed: it has lost a message"}
    assert "| fake | 10 | ends before 2: failed: it has lost a message |" in page.render(
        [(case_of(line), result_of(case_of(line), outcome))], tmp_path
    )


def test_each_place_shows_what_it_took_and_is_drawn(tmp_path: Path) -> None:
    line = Measure(
        "line", "line", "MB/s", lambda peer, meter: points((1, 2), lambda place: up_to(2, place), meter), across="places"
    )
    outcome = case_of(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    text = page.render([(case_of(line), result_of(case_of(line), outcome))], tmp_path)
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
    text = page.render([(case_of(line), result_of(case_of(line), case_of(line).run(makers, OPTIONS, print)))], tmp_path)
    assert "We are less than 2 times better (places) than: other at 2." in text
    assert "Our line rises to 2.0 times the least before at 2 places." in text


def test_places_that_a_system_does_not_reach_are_dashes(tmp_path: Path) -> None:
    case = Case("growth", "Growth", "", lambda options: [m for m in GROWTH.measures(options) if m.name == "size"])

    def large() -> FakePeer:
        peer = FakePeer(name="large")
        peer.largest_bytes = 10_000_000
        return peer

    outcome = case.run({"barnabas": FakePeer, "large": large}, OPTIONS, lambda line: None)
    assert "| - |  |" in page.render([(case, result_of(case, outcome))], tmp_path)


def test_the_page_has_dashes_ratios_targets_and_charts(tmp_path: Path) -> None:
    fast, slow = (lambda: FakePeer(1e-6, name="barnabas")), (lambda: FakePeer(4e-6, name="Kafka"))
    case = case_of(produce_50(), charts=("fifty",))
    makers = {"barnabas": fast, "kafka": slow, "single": lambda: FakePeer(largest_batch=1, name="single"), "absent": AbsentPeer}
    text = page.render([(case, result_of(case, case.run(makers, OPTIONS, lambda line: None)))], tmp_path)
    assert "| 4.00x |" in text
    assert "Target: 2 times Apache Kafka: yes." in text
    assert "it has no batches |" in text
    assert "Not measured: absent: absent-server is not installed" in " ".join(text.split())
    assert "`sync` = `never` | its documentation |" in text
    (chart,) = tmp_path.glob("*.svg")
    assert f"({tmp_path.name}/{chart.name})" in text
    assert Xml.parse(chart).getroot().tag.endswith("svg")


def test_the_page_says_where_we_lose(tmp_path: Path) -> None:
    case = case_of(produce_50())
    makers = {"barnabas": lambda: FakePeer(4e-6), "kafka": lambda: FakePeer(1e-6, name="Kafka")}
    text = page.render([(case, result_of(case, case.run(makers, OPTIONS, lambda line: None)))], tmp_path)
    assert "We lose to Kafka here." in text
    assert "**no**" in text


def _of(name: str, times: dict[str, float], bare: float | None = None) -> results.Result:
    """A result of one measure in which each system takes so many microseconds for a message."""
    makers = {key: (lambda key=key, each=each: FakePeer(each * 1e-6, name=key)) for key, each in times.items()}
    case = case_of(rate_of(name, producing(Message(100, 1, 1), OPTIONS)))
    result = result_of(case, case.run(makers, OPTIONS, lambda line: None))
    if bare is not None:
        result["measures"][0]["runs"][BARE] = [{"value": bare}] * OPTIONS.rounds
    return result


def test_the_page_counts_the_repetitions(tmp_path: Path) -> None:
    case = case_of(produce_50())
    text = page.render([(case, result_of(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None)))], tmp_path)
    assert "### Fifty\n\n2 repetitions.\n" in text


def test_a_result_is_shown_with_the_text_that_it_was_measured_under(tmp_path: Path) -> None:
    case = case_of(produce_50())
    result = result_of(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None))
    changed = Case("a-case", "A case", "How it is measured from now on.", lambda options: [])
    text = page.render([(changed, result)], tmp_path)
    assert "\n## A case\n\nWhat it is.\n\n" in text
    assert "from now on" not in text


def test_the_commit_stands_with_each_case(tmp_path: Path) -> None:
    first, second = (_of(name, {"barnabas": 1.0}) for name in ("one", "two"))
    second["peers"]["barnabas"]["version"] = "commit 2"
    # the line ends depend on the length of the machine's name
    text = " ".join(page.render([(case_of(), first), (case_of(), second)], tmp_path).split())
    assert "barnabas: 1; a load" in text
    assert "barnabas: commit 2; a load" in text
    assert "| barnabas | see each case |" in text


def test_the_page_says_who_is_less_than_half_as_good(tmp_path: Path) -> None:
    result = _of("rate", {"barnabas": 2.0, "kafka": 3.0, "near": 3.0, "ahead": 1.0, "far": 8.0})
    text = page.render([(case_of(), result)], tmp_path)
    assert "We are less than 2 times better than: near (1.50), ahead (0.50). We lose to ahead here." in text


def test_the_page_says_of_whom_nothing_can_be_twice_ahead(tmp_path: Path) -> None:
    times = {"barnabas": 2.0, "near": 3.0, "ahead": 1.0, "far": 8.0}
    text = page.render([(case_of(), _of("rate", times, 600_000.0))], tmp_path)
    assert "Even the bare system calls would be less than 2 times better than: near (1.80), ahead (0.60)." in " ".join(
        text.split()
    )
    assert "Even the" not in page.render([(case_of(), _of("rate", times, 2_000_000.0))], tmp_path)


def test_the_page_says_how_many_times_as_long_as_the_bare_loop_something_takes(tmp_path: Path) -> None:
    result = _of("delay", {"barnabas": 2.0, "near": 3.0}, 250_000.0)
    measure = result["measures"][0]
    measure["higher_is_better"], measure["bare_name"] = False, "bare interpreter"
    measure["runs"][BARE] = [{"value": 250_000.0, "p50": 3.0, "peak_mb": 12.0}]
    text = page.render([(case_of(), result)], tmp_path)
    assert "2.00 times bare |" in text
    assert "| bare interpreter | 250,000 | 3 |  | 12 |  |  |" in text


@pytest.mark.parametrize(("bare", "said"), [(600_000.0, "yes"), (650_000.0, "**no**")])
def test_consuming_is_judged_by_the_bare_loop(bare: float, said: str, tmp_path: Path) -> None:
    text = page.render([(case_of(), _of("consume", {"barnabas": 2.0}, bare))], tmp_path)
    assert f"Target: 80% of bare sendfile: {said}." in text
    assert "sendfile" not in page.render([(case_of(), _of("produce", {"barnabas": 2.0}, bare))], tmp_path)


@pytest.mark.parametrize(
    ("higher_is_better", "said"),
    [
        (True, "We are less than 2 times better (places) than: near at 10, 100. We lose to near at 100."),
        (False, "We are less than 2 times better (places) than: near at 1, 10. We lose to near at 1, 10."),
    ],
)
def test_the_page_says_at_which_places_a_line_is_less_than_twice_anothers(
    higher_is_better: bool, said: str, tmp_path: Path
) -> None:
    def line(peer: Peer, meter: Meter) -> Figures:
        found = (4.0, 4.0, 1.0) if peer.name == "barnabas" else (1.0, 3.0, 2.0)
        return {**{f"at_{place}": value for place, value in zip((1, 10, 100), found, strict=True)}, "value": 1.0}

    case = case_of(Measure("line", "line", "MB/s", line, higher_is_better=higher_is_better, across="places"))
    outcome = case.run({"barnabas": lambda: FakePeer(name="barnabas"), "near": lambda: FakePeer(name="near")}, OPTIONS, print)
    assert said in page.render([(case, result_of(case, outcome))], tmp_path)


@pytest.mark.parametrize(("theirs", "said"), [(2.5, ">= 2x: yes"), (1.8, ">= 2x: **no**")])
def test_cpu_of_replicated_writes_is_to_be_half_at_most(theirs: float, said: str) -> None:
    runs = {OURS: [{"cpu_s_per_million": 1.0, "peak_mb": 200.0}], THEIRS: [{"cpu_s_per_million": theirs, "peak_mb": 3_000.0}]}
    assert cluster_page._cpu({"unit": "records/s", "title": "bulk, acks=all", "runs": runs})[-3:] == [said, "200", "3,000"]
    assert cluster_page._cpu({"unit": "records/s", "title": "bulk, acks=1", "runs": runs})[-3] == "better"


def test_what_grows_is_drawn_as_lines(tmp_path: Path) -> None:
    case = Case("kreps-2014", "Growth", "", lambda options: [m for m in KREPS.measures(options) if m.name == "stored"])
    page.render([(case, result_of(case, case.run({"barnabas": FakePeer}, OPTIONS, lambda line: None)))], tmp_path)
    (chart,) = tmp_path.glob("*.svg")
    assert "<polyline" in chart.read_text()


def test_ratios_of_the_page_are_those_of_the_figures() -> None:
    measured = take_turns(produce_50(), {"barnabas": FakePeer(1e-6), "kafka": FakePeer(3e-6)}, {}, rounds=2)
    assert figures.ratio(measured.as_json()[0], "barnabas", "kafka") == pytest.approx(3.0)


def test_a_line_lies_where_its_places_are_in_the_median(tmp_path: Path) -> None:
    places = iter([10.0, 30.0, 20.0])
    line = Measure(
        "line", "line", "MB/s", lambda peer, meter: {"at_1": 4.0, f"{PLACE}_1": next(places), "value": 1.0}, across="MB"
    )
    outcome = case_of(line).run({"barnabas": FakePeer}, OPTIONS, lambda line: None)
    assert "| MB | 25 |  |" in page.render([(case_of(line), result_of(case_of(line), outcome))], tmp_path)
