"""`python -m tests.torture`: kill a broker again and again under load; every record that it acknowledged must be there.

Prints a line for each round and a summary; the exit code is 1 where a promise was broken, and the last line says how to run the same
plan again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.torture.moments import Moment
from tests.torture.rounds import Plan, Round, torture

KINDS = {moment.name.lower().replace("_", "-"): moment for moment in Moment}
HEADINGS = ("round", "moment", "seen", "starts", "acked", "read", "start ms")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="kills (default 30)")
    parser.add_argument("--seed", type=int, default=1, help="decides moments, pauses and sizes (default 1)")
    parser.add_argument("--seconds", type=float, default=2.0, help="of load before each kill, at most (default 2)")
    parser.add_argument("--kinds", default="", metavar="KIND,...", help=f"of rounds; all of them, or some of: {', '.join(KINDS)}")
    options = parser.parse_args(arguments)
    wanted = [kind for kind in options.kinds.split(",") if kind]
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind of round {unknown[0]!r}; there are {', '.join(KINDS)}")
    plan = Plan(options.rounds, options.seed, options.seconds, moments=tuple(KINDS[kind] for kind in wanted or KINDS))
    console = Console()
    began = time.monotonic()
    done: list[Round] = []
    try:
        for each in torture(plan):
            done.append(each)
            console.print(f"round {each.number}: {each.moment.value}", highlight=False)
    except AssertionError as broken:
        console.print(table_of(done))
        console.print(f"broken in round {len(done) + 1}: {broken}", style="red", highlight=False, markup=False)
        again = f"python -m tests.torture --rounds {len(done) + 1} --seed {plan.seed} --seconds {plan.seconds:g}"
        again += f" --kinds {','.join(wanted)}" if wanted else ""
        console.print(f"again: {again}", highlight=False)
        return 1
    console.print(table_of(done))
    console.print(
        f"{len(done)} rounds in {time.monotonic() - began:.0f} s: {sum(r.acknowledged for r in done):,} records acknowledged, all there; "
        f"{sum(r.start_kills for r in done)} starts were killed too; seed {plan.seed}",
        highlight=False,
    )
    return 0


def table_of(rounds: Sequence[Round]) -> Table:
    table = Table(*HEADINGS, caption="starts: how many were killed too; acked, read: records")
    for each in rounds:
        table.add_row(
            str(each.number), each.moment.value, "yes" if each.hit else "no", str(each.start_kills),
            f"{each.acknowledged:,}", f"{each.read:,}", f"{each.start_ms:.0f}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    sys.exit(main())
