"""`python -m barnabas.testing.simulation`: run seeds, or one of them again.

Without --seed: `--seeds` runs from `--first` on, in `--processes` processes. The output is one line for each seed that fails,
with the command that repeats it, and a summary. With --seed: this one run, with its trace. The exit code is 1 if a run failed,
and 2 for invalid arguments.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from barnabas.streams import open_missing_streams
from barnabas.testing.simulation.runner import WHOLE_PROFILES, keep_quiet, run_seeds, simulation
from barnabas.testing.simulation.scenario import PROFILES
from barnabas.testing.simulation.simulated_run import Verdict

COMMAND = "python -m barnabas.testing.simulation"


def main(arguments: list[str] | None = None) -> int:
    """Run the seeds that `arguments` name; returns the exit code, 0 if every run passed."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seeds", type=_positive, default=100, help="how many runs (100)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--seed", type=int, help="run only this one, and show what happens")
    parser.add_argument("--profile", choices=(*PROFILES, *WHOLE_PROFILES), help="the kind of run; drawn from the seed otherwise")
    parser.add_argument("--processes", type=_positive, default=2, help="at once (2)")
    options = parser.parse_args(arguments)
    keep_quiet()
    if options.seed is not None:
        return _show(options.seed, options.profile)
    return _run_many(range(options.first, options.first + options.seeds), options.profile, options.processes)


def _show(seed: int, profile: str | None) -> int:
    verdict = simulation(seed, profile, echo=True).run()
    print(_line(verdict, profile))
    return 1 if verdict.failure else 0


def _run_many(seeds: range, profile: str | None, processes: int) -> int:
    started = time.monotonic()
    counts: Counter[str] = Counter()
    failed = 0
    for verdict in run_seeds(seeds, profile, processes):
        counts.update(verdict.counts)
        counts["events"] += verdict.events
        if verdict.failure:
            failed += 1
            print(_line(verdict, profile), flush=True)
    took_s = time.monotonic() - started
    told = " ".join(f"{name}={count}" for name, count in sorted(counts.items()))
    print(f"{len(seeds)} seeds, {failed} failed, {took_s:.0f} s, {len(seeds) / took_s:.1f} seeds/s: {told}")
    return 1 if failed else 0


def _line(verdict: Verdict, profile: str | None) -> str:
    outcome = verdict.failure or "passed"
    again = f"{COMMAND} --seed {verdict.seed}" + (f" --profile {profile}" if profile else "")
    return f"seed {verdict.seed} ({verdict.scenario}): {outcome} | checksum {verdict.checksum:08x}, {verdict.events} events | {again}"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


if __name__ == "__main__":
    open_missing_streams()
    sys.exit(main())
