"""`python -m tests.torture.mirroring`: torment two clusters with a mirror link, and the network between them, under load.

Each round kills a broker of the source or of the target, or cuts, delays and loses the packets between them. Then every batch of every
partition is compared between source and copy, over the wire and in the files of all six brokers. Every acknowledged record must be in the
copy, with the end of its transaction, and the offsets of consumer groups must be copied and lie in the copy. The exit code is 1 where a
promise was broken.
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
from tests.torture.cluster.network import Loopback, Namespaces, NoNetwork, enter, is_in_hub
from tests.torture.mirroring.clusters import Source, Target
from tests.torture.mirroring.faults import KINDS, NEED_NETWORK
from tests.torture.mirroring.rounds import HOLD_S, SOURCES, Plan, Round, torture

MODULE = "tests.torture.mirroring"
NODES = [*Source.brokers, *Source.quorum, *Target.brokers, *Target.quorum]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="(default 30)")
    parser.add_argument("--seed", type=int, default=1, help="decides moments and choices (default 1)")
    parser.add_argument("--kinds", default="", metavar="KIND,...", help=f"of rounds; all of them, or some of: {', '.join(KINDS)}")
    parser.add_argument(
        "--hold", type=float, default=HOLD_S, help=f"seconds that a fault of the network lasts (default {HOLD_S:g})"
    )
    parser.add_argument("--source", choices=SOURCES, default="barnabas", help="the cluster that is copied (default barnabas)")
    parser.add_argument("--loopback", action="store_true", help="without network namespaces, and so only kills")
    options = parser.parse_args(arguments)
    kinds = tuple(kind for kind in options.kinds.split(",") if kind) or tuple(KINDS)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind of round {unknown[0]!r}; there are {', '.join(KINDS)}")
    if not is_in_hub() and not options.loopback:
        try:
            enter(MODULE, arguments)
        except NoNetwork as error:
            print(f"{error}; brokers are killed, and no way is cut", file=sys.stderr)
    if not is_in_hub():
        kinds = tuple(kind for kind in kinds if kind not in NEED_NETWORK)
        if not kinds:
            parser.error("all of these kinds need network namespaces")
    return _run(Plan(options.rounds, options.seed, kinds, options.hold, options.source))


def _run(plan: Plan) -> int:
    say = partial(Console().print, highlight=False, markup=False, soft_wrap=True)
    done: list[Round] = []
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="barnabas-torture-"))
    try:
        with Guard() as guard, (Namespaces if is_in_hub() else Loopback)(NODES) as network:
            for each in torture(plan, network, folder, guard):
                done.append(each)
                resumed = f", copied again after {each.resumed_s:.1f} s" if each.resumed_s else ""
                say(f"{each.number}: {each.told}{resumed}; {each.batches:,} batches equal, {each.acknowledged:,} records "
                    f"acknowledged so far, {each.offsets} offsets of groups")  # fmt: skip
    except AssertionError as broken:
        say(f"broken in round {len(done) + 1}: {broken}", style="red")
        say(f"files are in {folder}; again: python -m {MODULE} --rounds {len(done) + 1} --seed {plan.seed} "
            f"--kinds {','.join(plan.kinds)} --hold {plan.hold_s:g} --source {plan.source}")  # fmt: skip
        return 1
    shutil.rmtree(folder)
    say(f"{len(done)} rounds in {time.monotonic() - began:.0f} s: {sum(each.batches for each in done):,} batches compared, all equal; "
        f"{done[-1].acknowledged:,} records acknowledged, none is missing in the copy")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
