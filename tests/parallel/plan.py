"""Which tests run together, which go first, and how long the rest takes.

A unit is what one worker runs in one go. The rules:

  1. The tests of one file are one unit, so that the broker or ZooKeeper of the module starts once.
  2. The files of one folder that have the mark `spark` are one unit, so that one Spark session serves them, and few JVMs run at once.
  3. Units that take long start first, the longest before the others; the last units are short, and the workers end together.
  4. All other units keep the random order of pytest-randomly, and so do the tests within each unit.
  5. In a run of one part (`quick_first`) the quickest units start first instead, so that most tests have ended within the first minute
     and a failure is seen early.

`seconds.tsv` has the seconds of each file that takes long, of an earlier run. Only their ratio counts: the time that is left is
estimated by what the run has done so far, and so it holds for a slow machine too. A file without an entry takes `OTHER_S` per test.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SECONDS = Path(__file__).with_name("seconds.tsv")
LONG_S = 5.0
RECORDED_S = 1.0
OTHER_S = 0.02


def read_seconds(path: Path = SECONDS) -> dict[str, float]:
    """The seconds of each file that takes long, by its path below the root of the repository."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {file: float(seconds) for file, seconds in (line.split("\t") for line in lines)}


def write_seconds(seconds: Mapping[str, float], path: Path = SECONDS) -> None:
    """The longest first; files that are quick or gone are left out."""
    ordered = sorted(
        ((file, taken) for file, taken in seconds.items() if (ROOT / file).exists()), key=lambda item: (-item[1], item[0])
    )
    path.write_text("".join(f"{file}\t{taken:.1f}\n" for file, taken in ordered if taken >= RECORDED_S))


def files_of_spark() -> frozenset[str]:
    """The files whose tests start a Spark session or use that of this process."""
    return frozenset(str(path.relative_to(ROOT)) for path in TESTS.rglob("test_*.py") if "pytest.mark.spark" in path.read_text())


def file_of(test: str) -> str:
    return test.partition("::")[0]


class Plan:
    """The units of one run and the seconds that they take."""

    def __init__(
        self, tests: Iterable[str], seconds: Mapping[str, float], of_spark: frozenset[str], *, quick_first: bool = False
    ) -> None:
        self._quick_first = quick_first
        counts = Counter(file_of(test) for test in tests)
        self._of_spark = of_spark
        self._of_test = {file: seconds.get(file, OTHER_S * count) / count for file, count in counts.items()}
        self._of_unit: defaultdict[str, float] = defaultdict(float)
        for file, count in counts.items():
            self._of_unit[self.unit(file)] += self._of_test[file] * count
        self.tests = sum(counts.values())
        self.seconds = sum(self._of_unit.values())

    def unit(self, test: str) -> str:
        """The unit of a test or a file."""
        file = file_of(test)
        return f"spark in {file.rpartition('/')[0]}" if file in self._of_spark else file

    def next_of(self, waiting: Iterable[str]) -> str:
        """The unit that starts next: the longest of the long ones, else the first; or the quickest."""
        units = list(waiting)
        if self._quick_first:
            return min(units, key=self._of_unit.__getitem__)
        longest = max(units, key=self._of_unit.__getitem__)
        return longest if self._of_unit[longest] >= LONG_S else units[0]

    def seconds_of(self, test: str) -> float:
        return self._of_test[file_of(test)]


class Progress:
    """How much of a plan is done, and how long the rest takes."""

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan = plan
        self._began = now
        self._seconds = 0.0
        self.done = 0
        self.failed = 0

    def ended(self, test: str) -> None:
        self.done += 1
        self._seconds += self._plan.seconds_of(test)

    def line(self, now: float) -> str:
        """`2901 of 7774 tests, 37 %, 2 failed, 4:10 so far, about 7:00 left`."""
        share = min(self._seconds / self._plan.seconds, 1.0) if self._plan.seconds else 1.0
        passed = now - self._began
        words = [f"{self.done} of {self._plan.tests} tests", f"{share * 100:.0f} %"]
        if self.failed:
            words.append(f"{self.failed} failed")
        words.append(f"{clock(passed)} so far")
        if share:
            words.append(f"about {clock(passed / share - passed)} left")
        return ", ".join(words)


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
