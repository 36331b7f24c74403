"""A process that takes step after step until it is killed, and says before each part of a step what it begins."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pyarrow as pa

from barnabas.incremental.plan import Plan
from tests.incremental.flows import opened
from tests.incremental.test_conformance import BIDS, JOINED, PEOPLE, SUMMED, bids, people
from tests.incremental.test_conformance import planned as planned_of

KEYS = 40


def plan() -> Plan:
    joined = (PEOPLE, BIDS, JOINED)
    return planned_of(*joined, type(SUMMED)(2, SUMMED.keys, SUMMED.sums, SUMMED.columns))


def inputs(number: int) -> dict[str, pa.Table]:
    """The rows of a step."""
    chance = random.Random(number)
    some = [(b"%d" % chance.randrange(KEYS), chance.randrange(KEYS), "a") for _ in range(30)]
    gone = [b"%d" % chance.randrange(KEYS) for _ in range(5)]
    return {**people(*some, *gone), **bids(*((chance.randrange(KEYS), chance.randrange(100)) for _ in range(30)))}


def main() -> None:
    flow = opened(plan(), Path(sys.argv[1]))
    while True:
        number = flow.position + 1
        print("step", number, flush=True)
        flow.step(number, inputs(number))
        print("commit", number, flush=True)
        flow.commit()


if __name__ == "__main__":
    main()
