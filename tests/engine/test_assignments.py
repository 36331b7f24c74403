"""Tasks of connectors are shared evenly, with few moves, and none of them moves before its engine has ended it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from barnabas.engine.assignments import assignment_changes
from barnabas.engine.jobs import Assignment, ConnectorWork, Job, JobState, State
from tests.engine.cluster import view


def task(name: str, *, needs_spark: bool = False) -> Job:
    return Job(name, ConnectorWork(name, 0, 1, "source", "x", {}, needs_spark=needs_spark))


class Engines:
    """A cluster in which engines obey when a test says so."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.known: dict[str, Assignment] = {}
        self.states: dict[str, JobState] = {}

    def decide(self, members: Collection[str]) -> dict[str, Assignment | None]:
        """One look of the active engine."""
        changes = assignment_changes(self.jobs, self.known, self.states, members)
        for name, each in changes.items():
            if each is None:
                del self.known[name]
            else:
                before = self.states.get(name)
                assert before is None or before.worker is None or before.worker not in members or before.worker == each.worker
                self.known[name] = each
        return changes

    def obey(self, members: Collection[str]) -> None:
        """Each engine that is there runs its jobs, and no others."""
        for name in self.jobs:
            its, state = self.known.get(name), self.states.get(name)
            if its is not None and its.worker in members:
                self.states[name] = JobState(name, 0, 0, State.RUNNING, 0, worker=its.worker)
            elif its is None and state is not None and state.worker in members:
                self.states[name] = JobState(name, 0, 0, State.STARTING, 0)

    def settle(self, members: Collection[str]) -> int:
        """Go on until nothing changes; returns how many jobs moved."""
        before = {name: each.worker for name, each in self.states.items()}
        for _ in range(100):
            if not self.decide(members):
                break
            self.obey(members)
        assert self.decide(members) == {}
        return sum(before.get(name) not in (None, each.worker) for name, each in self.states.items())

    def counts(self, members: Sequence[str]) -> list[int]:
        workers = [each.worker for each in self.known.values()]
        return [workers.count(each) for each in members]


def test_jobs_stay_where_they_are_if_that_is_even() -> None:
    engines = Engines()
    engines.jobs = {name: task(name) for name in "pqrst"}
    engines.settle(["a"])
    assert engines.settle(["a", "b"]) == 2
    assert engines.counts(["a", "b"]) == [3, 2]
    assert engines.settle(["a", "b", "c"]) == 1
    assert engines.settle(["a", "b", "c", "d"]) == 1


def test_a_job_that_moves_has_no_engine_until_the_earlier_one_has_ended_it() -> None:
    engines = Engines()
    engines.jobs = {name: task(name) for name in "pq"}
    engines.settle(["a"])
    assert engines.decide(["a", "b"]) == {"q": None}
    assert engines.decide(["a", "b"]) == {}
    engines.states["q"] = JobState("q", 0, 0, State.STARTING, 0)
    assert engines.decide(["a", "b"]) == {"q": Assignment("q", "b")}


def test_a_job_of_an_engine_that_is_gone_is_assigned_at_once() -> None:
    engines = Engines()
    engines.jobs = {"p": task("p")}
    engines.settle(["a"])
    assert engines.decide(["b"]) == {"p": Assignment("p", "b")}
    assert engines.decide([]) == {}


def test_only_tasks_without_spark_are_assigned() -> None:
    engines = Engines()
    engines.jobs = {"v": view("v"), "s": task("s", needs_spark=True), "p": task("p")}
    assert engines.decide(["a"]) == {"p": Assignment("p", "a")}
    engines.jobs["p"] = task("p", needs_spark=True)
    assert engines.decide(["a"]) == {"p": None}
    del engines.jobs["p"]
    assert engines.decide(["a"]) == {}


STEPS = st.lists(st.tuples(st.sets(st.sampled_from("abcd"), min_size=1), st.sets(st.sampled_from("pqrstuvw")), st.booleans()))


@given(STEPS)
def test_engines_have_one_job_more_than_others_at_most(steps: list[tuple[set[str], set[str], bool]]) -> None:
    engines = Engines()
    for members, names, obeys in steps:
        engines.jobs = {name: task(name) for name in names}
        engines.states = {name: each for name, each in engines.states.items() if name in names}
        engines.decide(members)
        if obeys:
            engines.obey(members)
    engines.settle(["a", "b", "c"])
    counts = engines.counts(["a", "b", "c"])
    assert sum(counts) == len(engines.jobs)
    assert max(counts) - min(counts) <= 1
