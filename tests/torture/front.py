"""The command line that torture runs share: a line for each round, and the command that runs the same plan again where one was broken."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar


class Numbered(Protocol):
    """A round of a torture run."""

    @property
    def number(self) -> int: ...


Each = TypeVar("Each", bound=Numbered)


@dataclass(frozen=True)
class Done:
    """Rounds that were right, and how long they took in s."""

    rounds: int
    seconds: float


def parser_of(module: str, description: str | None, *, rounds: int, decides: str) -> argparse.ArgumentParser:
    """The options that each torture run has.

    Args:
        rounds: by default.
        decides: what the seed decides.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("--rounds", type=int, default=rounds, help="default %(default)s")
    parser.add_argument("--seed", type=int, default=1, help=f"decides {decides} (default %(default)s)")
    return parser


def run_rounds(again: str, rounds: Iterable[Each], told: Callable[[Each], str], summary: Callable[[Done], str]) -> int:
    """Run all rounds; the exit code: 1 where a promise was broken.

    Args:
        again: the command that runs the same plan.
        told: what is said of a round.
        summary: what is said at the end.
    """
    began_s, number = time.monotonic(), 0
    try:
        for each in rounds:
            number = each.number
            print(f"round {number}: {told(each)}", flush=True)
    except AssertionError as broken:
        print(f"broken after round {number}: {broken}")
        print(f"again: {again}")
        return 1
    print(summary(Done(number, time.monotonic() - began_s)))
    return 0
