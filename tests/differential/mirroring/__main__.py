"""`python -m tests.differential.mirroring`: copy a source under load, and compare every batch again and again.

The source takes idempotent and transactional writes with all codecs, is compacted, loses records by DeleteRecords, and grows. Copies are
compared as a prefix all the time; after each round as a whole, over the wire and in data folders; at the end by Kafka's dump tool. The
exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from barnabas.testing import Broker
from tests.differential.mirroring.differ import Differ
from tests.differential.mirroring.load import COMPACTED, PARTITIONS, PLAIN, SETTINGS, Load
from tests.server.mirroring.clusters import create_link
from tests.waiting import wait_until

CLEANING: dict[str, str | int | bool] = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "200"}


def compare_rounds(rounds: int, seed: int, seconds: float, *, with_dumps: bool) -> Differ:
    """Run the rounds.

    Raises:
        Unequal: something differs.
    """
    rng = random.Random(seed)
    with Broker(CLEANING) as source, Broker(CLEANING) as target:
        theirs, ours = source.bootstrap_servers, target.bootstrap_servers
        differ = Differ(theirs, ours, source.data_dirs, target.data_dirs)
        with Load(theirs, seed) as load:
            create_link(ours, theirs, refresh_topics_interval_seconds="1")
            for number in range(rounds):
                deadline = time.monotonic() + seconds
                while time.monotonic() < deadline:
                    differ.compare_prefix(load.partitions)
                load.delete_records(rng, rng.choice((PLAIN, COMPACTED)))
                if number % 3 == 1:
                    load.grow(rng.choice((PLAIN, COMPACTED)))
                with load.pause():
                    found = differ.compare(load.partitions, load.ledger)
                print(f"round {number + 1}: {differ.batches:,} batches compared, {found:,} of {load.ledger.count:,} acknowledged "
                      "records are in the copies, the others were deleted", flush=True)  # fmt: skip
            # The load goes on meanwhile: the last segment of a partition is compacted once there is another one.
            compacted = [each for each in load.partitions if each[0] == COMPACTED]
            wait_until(lambda: all(map(all, differ.have_gaps(compacted))), "source or copy is not compacted")
            with load.pause():
                _demand_that_it_happened(load, differ, rounds)
                differ.compare(load.partitions)
                bounds = differ.bounds(load.partitions)
                partitions = load.partitions
        source.stop()
        target.stop()
        if with_dumps:
            differ.compare_dumps(partitions, bounds)
            print(f"kafka-dump-log shows {differ.dumped:,} equal batches")
    return differ


def _demand_that_it_happened(load: Load, differ: Differ, rounds: int) -> None:
    """Raises AssertionError if the load was not what the module says: then equal copies would show little."""
    ends, partitions = differ.bounds(load.partitions), load.partitions
    assert load.ledger.aborted, "no transaction was aborted"
    assert load.ledger.committed, "no transaction was committed"
    assert any(start for start, _ in ends.values()), "no record was deleted"
    assert rounds < 2 or len(partitions) > len(SETTINGS) * PARTITIONS, "no partition was added"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential.mirroring", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="(default 5)")
    parser.add_argument("--seed", type=int, default=1, help="decides sizes, codecs and deletions (default 1)")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load in each round (default 4)")
    parser.add_argument("--no-dumps", action="store_true", help="without Kafka's dump tool, which needs Java and Maven")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        differ = compare_rounds(options.rounds, options.seed, options.seconds, with_dumps=not options.no_dumps)
    except AssertionError as broken:
        print(f"different: {broken}", file=sys.stderr)
        return 1
    print(f"{options.rounds} rounds in {time.monotonic() - began:.0f} s, {differ.batches:,} batches compared, all equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
