"""`python -m bench run|render|guard|list` for the suite; without a verb, only barnabas and Apache Kafka, in turns
(`bench.pair`)."""

from __future__ import annotations

import sys

from bench import pair
from bench.suite import front

VERBS = ("run", "render", "guard", "list")


def main() -> int:
    words = sys.argv[1:]
    return front.main(words) if words and words[0] in VERBS else pair.main(words)


if __name__ == "__main__":
    sys.exit(main())
