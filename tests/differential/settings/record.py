"""Record what Apache Kafka says of every setting: `python -m tests.differential.settings.record` (`make differential`)."""

from __future__ import annotations

import argparse
import sys

from tools.kafka import KafkaNode

from tests.differential.settings.known import PAGE, page_with
from tests.differential.settings.walk import GOLDEN, STATIC, as_text, load, walk
from tests.differential.talk import Address


def main() -> int:
    """0 when the golden file holds what was found, or was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where Kafka differs from the golden file")
    parser.add_argument("--page", action="store_true", help="only write the table of differences into docs/compatibility.md")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page_with(PAGE.read_text()))
        return 0
    with KafkaNode(config=STATIC) as node:
        table = walk(Address.of(node.bootstrap))
    print(", ".join(f"{name}: {len(keys)} keys" for name, keys in table.items()))
    if options.check:
        return 1 if table != load() else 0
    GOLDEN.write_text(as_text(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
