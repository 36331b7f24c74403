"""`python -m tests.torture.cluster`: torment three brokers and what they agree by, under load; nothing acknowledged may be lost.

Prints a line for each round and a table of how long partitions could not be written to; the exit code is 1 where a promise was broken,
and the last line says how to run the same plan again. Every process is in a network namespace of its own.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from barnabas.testing.children import Guard
from tests.torture.cluster.clusters import BROKERS, QUORUM, BarnabasCluster, Cluster, KafkaCluster
from tests.torture.cluster.faults import CUTS, HOLD_S, KINDS
from tests.torture.cluster.load import LANGUAGES
from tests.torture.cluster.network import Loopback, Namespaces, NoNetwork, enter, is_in_hub
from tests.torture.cluster.report import save, table_of
from tests.torture.cluster.rounds import Plan, Round, torture

MODULE = "tests.torture.cluster"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="(default 30)")
    parser.add_argument("--seed", type=int, default=1, help="decides moments and choices (default 1)")
    parser.add_argument("--kinds", default="", metavar="KIND,...", help=f"of rounds; all of them, or some of: {', '.join(KINDS)}")
    parser.add_argument("--hold", type=float, default=HOLD_S, help=f"seconds that what is no kill lasts (default {HOLD_S:g})")
    parser.add_argument("--clients", default=",".join(LANGUAGES), help=f"languages, of {', '.join(LANGUAGES)} (default: all)")
    parser.add_argument("--loopback", action="store_true", help="without network namespaces, and so without cuts")
    parser.add_argument("--beside-kafka", action="store_true", help="the same with Apache Kafka's brokers and controllers")
    parser.add_argument("--only-kafka", action="store_true", help="only that")
    parser.add_argument("--save", action="store_true", help="write the times to bench/results/failover.json")
    options = parser.parse_args(arguments)
    wanted = [kind for kind in options.kinds.split(",") if kind]
    if not set(options.clients.split(",")) <= set(LANGUAGES):
        parser.error(f"there are clients in {', '.join(LANGUAGES)}, not in {options.clients!r}")
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind of round {unknown[0]!r}; there are {', '.join(KINDS)}")
    kinds = tuple(wanted or KINDS)
    if not is_in_hub() and not options.loopback:
        try:
            enter(MODULE, arguments)
        except NoNetwork as error:
            if not CUTS.isdisjoint(wanted):
                parser.error(f"{error}; without that there are no rounds of {', '.join(CUTS)}")
            print(f"{error}; no way is blocked", file=sys.stderr)
    if not is_in_hub():  # with --loopback, or without a network of namespaces
        kinds = tuple(kind for kind in kinds if kind not in CUTS)
    plan = Plan(options.rounds, options.seed, kinds, options.hold, tuple(options.clients.split(",")))
    clusters: list[type[Cluster]] = [] if options.only_kafka else [BarnabasCluster]
    clusters += [KafkaCluster] if options.beside_kafka or options.only_kafka else []
    return _run(clusters, plan, Console(), may_save=options.save)


def _run(clusters: Sequence[type[Cluster]], plan: Plan, console: Console, *, may_save: bool) -> int:
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    done: dict[str, list[Round]] = {}
    for kind in clusters:
        done[kind.name] = rounds = []
        began = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="barnabas-torture-"))
        try:
            with Guard() as guard, (Namespaces if is_in_hub() else Loopback)([*BROKERS, *QUORUM]) as network:
                for each in torture(kind(folder / "cluster", network, guard), network, folder, guard, plan):
                    rounds.append(each)
                    say(f"{kind.name} {each.number}: {each.kind} of {each.node}, {each.unwritable_s:.2f} s not written to, "
                        f"{each.acknowledged:,} acknowledged")  # fmt: skip
        except AssertionError as broken:
            console.print(table_of(done))
            say(f"{kind.name} is broken in round {len(rounds) + 1}: {broken}", style="red")
            say(f"files are in {folder}; again: python -m {MODULE} --rounds {len(rounds) + 1} --seed {plan.seed} "
                f"--kinds {','.join(plan.kinds)} --hold {plan.hold_s:g}")  # fmt: skip
            return 1
        shutil.rmtree(folder)
        say(f"{kind.name}: {len(rounds)} rounds in {time.monotonic() - began:.0f} s, "
            f"{sum(r.acknowledged for r in rounds):,} records acknowledged, all there and once")  # fmt: skip
    console.print(table_of(done))
    if may_save:
        save(done, plan)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
