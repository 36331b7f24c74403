"""Record Apache Kafka 3.9's answers: `python -m tests.differential.older_formats.record --bootstrap HOST:PORT`, of a fresh node of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.differential.older_formats.script import CASES
from tests.differential.older_formats.talk import OldLine

GOLDEN = Path(__file__).with_name("golden.json")
PREFIX = "older-"


def run(name: str, address: tuple[str, int]) -> Any:
    """The results of a broker in one case, as JSON returns them."""
    with OldLine(address) as line:
        made = CASES[name](line, PREFIX + "".join(letter if letter.isalnum() else "-" for letter in name))
    return json.loads(json.dumps(made))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    host, _, port = parser.parse_args().bootstrap.rpartition(":")
    found = {}
    for name in CASES:
        print(name, flush=True)
        found[name] = run(name, (host, int(port)))
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
    GOLDEN.write_text("{\n" + lines + "\n}\n")
    print(f"{len(found)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
