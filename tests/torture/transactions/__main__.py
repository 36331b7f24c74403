"""`python -m tests.torture.transactions`: copy in transactions while copiers and brokers are killed; each record must be copied once.

Prints a line for each round; the exit code is 1 where a promise was broken, and the last line says how to run the same plan again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.torture.front import Done, parser_of, run_rounds
from tests.torture.transactions.plan import Plan
from tests.torture.transactions.rounds import Round, torture

MODULE = "tests.torture.transactions"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(MODULE, __doc__, rounds=30, decides="victims, pauses and aborts")
    parser.add_argument("--seconds", type=float, default=3.0, help="of work before each kill, at most (default %(default)s)")
    parser.add_argument("--rate", type=int, default=400, help="records a second (default %(default)s)")
    parser.add_argument("--without-java", action="store_true", help="a second confluent-kafka copier takes the place of Java's")
    options = parser.parse_args(arguments)
    plan = Plan(options.rounds, options.seed, options.seconds, options.rate, not options.without_java)
    last: Round | None = None

    def told(each: Round) -> str:
        nonlocal last
        last = each
        return f"killed {each.victim}; {each.sent:,} records in, {each.copied:,} out"

    def summary(done: Done) -> str:
        sent, ends = (last.sent, last.ends) if last is not None else (0, {})
        return (
            f"{done.rounds} rounds in {done.seconds:.0f} s: each of more than {sent:,} records was copied once and in order; "
            f"ended on their own: {ends}; seed {plan.seed}"
        )

    java = " --without-java" if options.without_java else ""
    again = f"python -m {MODULE} --rounds {plan.rounds} --seed {plan.seed} --seconds {plan.seconds:g} --rate {plan.rate}{java}"
    return run_rounds(again, torture(plan), told, summary)


if __name__ == "__main__":
    sys.exit(main())
