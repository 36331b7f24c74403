"""`python -m tests.torture.transactions`: copy in transactions while copiers and brokers are killed; each record must be copied once.

Prints a line for each round; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.torture.transactions.plan import Plan
from tests.torture.transactions.rounds import torture


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.transactions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="kills (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="decides victims, pauses and aborts (default 1)")
    parser.add_argument("--seconds", type=float, default=3.0, help="of work before each kill, at most (default 3)")
    parser.add_argument("--rate", type=int, default=400, help="records a second (default 400)")
    parser.add_argument("--without-java", action="store_true", help="a second confluent-kafka copier takes the place of Java's")
    options = parser.parse_args(arguments)
    plan = Plan(options.rounds, options.seed, options.seconds, options.rate, not options.without_java)
    began = time.monotonic()
    number = sent = 0
    ends: dict[str, int] = {}
    try:
        for each in torture(plan):
            number, sent, ends = each.number, each.sent, each.ends
            print(f"round {number}: killed {each.victim}; {each.sent:,} records in, {each.copied:,} out", flush=True)
    except AssertionError as broken:
        print(f"broken after round {number}: {broken}")
        print(f"again: python -m tests.torture.transactions --rounds {plan.rounds} --seed {plan.seed} --seconds {plan.seconds:g}")
        return 1
    print(
        f"{number} rounds in {time.monotonic() - began:.0f} s: each of more than {sent:,} records was copied once and in order; "
        f"ended on their own: {ends}; seed {plan.seed}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
