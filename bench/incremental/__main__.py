"""`python -m bench run incremental`: the time of a step of the flow that keeps a view, by the rows of its state and of the step.

The state is a file; a step ends with its commit.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from barnabas.incremental.flow import DuckFlow, open_flow
from bench import report
from bench.front import parser_of, tell
from bench.incremental.plans import CASES, Case, Inputs
from bench.storage.result import Result, measured

STATES, QUICK_STATES = (1_000_000, 5_000_000), (1_000_000,)
STEPS = (100, 10_000, 500_000)
MEMORY_BYTES, THREADS = 1 << 30, 2


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("bench.incremental", __doc__)
    parser.add_argument("--case", choices=sorted(CASES), help="only this one")
    options = parser.parse_args(arguments)
    cases = {options.case: CASES[options.case]} if options.case else CASES
    states = QUICK_STATES if options.quick else STATES
    command = report.command_of("bench.incremental", arguments)
    page = measured(lambda: measure(cases, states, STEPS, options.repeat), command, quick=options.quick)
    return tell(page, options.json)


def measure(cases: Mapping[str, Case], states: Sequence[int], steps: Sequence[int], repeat: int) -> list[Result]:
    """All results; their unit is a millisecond."""
    return [_measured(name, case, total, steps, repeat) for name, case in cases.items() for total in states]


def _measured(name: str, case: Case, total: int, steps: Sequence[int], repeat: int) -> Result:
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-flow-") as folder:
        path = Path(folder) / "state"
        flow = open_flow(case.plan, path, MEMORY_BYTES, THREADS)
        for inputs in case.fill(total):
            _timed(flow, inputs)
        for rows in steps:
            figures[f"a step of {rows:,} rows"] = [_timed(flow, case.step(rows, total)) for _ in range(repeat)]
        flow.close()
        began = time.perf_counter()
        flow = open_flow(case.plan, path, MEMORY_BYTES, THREADS)
        figures["opening the state again"] = [(time.perf_counter() - began) * 1e3]
        size = flow.size()
        flow.close()
        remark = f"The state has {size.rows:,} rows in {path.stat().st_size / 1e6:,.0f} MB."
    return Result(f"{name}-{total}", f"{case.title}, after {total:,} rows", "ms", figures, remark=remark)


def _timed(flow: DuckFlow, inputs: Inputs) -> float:
    """The milliseconds of a step with its commit."""
    began = time.perf_counter()
    flow.step(flow.position + 1, inputs)
    flow.commit()
    return (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    sys.exit(main())
