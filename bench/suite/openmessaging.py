"""`openmessaging`: workloads of the OpenMessaging Benchmark, at fixed rates, with a schedule that does not hide stalls.

A message's time begins when it was meant to leave, so a system that stalls pays for all that it held up (coordinated omission).
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.peer import Message
from bench.suite.case import Case
from bench.suite.kreps import delays
from bench.suite.measure import Measure, Options

VALUE_BYTES = 100
SECONDS = 3.0
WORKLOADS = ((1, 5_000), (1, 20_000), (16, 5_000), (100, 5_000))  # partitions, messages a second


def _measures(options: Options) -> Sequence[Measure]:
    return [
        Measure(
            f"partitions-{partitions}-rate-{rate}",
            f"{partitions} partition{'s' if partitions > 1 else ''}, {rate:,} messages/s, p99",
            "ms",
            delays(Message(VALUE_BYTES, 1, 1), rate, max(SECONDS, options.seconds), partitions),
            higher_is_better=False,
            target=2.0 if rate >= 5_000 else None,
        )
        for partitions, rate in WORKLOADS
    ]


OPENMESSAGING = Case(
    "openmessaging",
    "End to end at a fixed rate",
    "Messages of 100 bytes leave one by one on a schedule that was made beforehand, over one connection to each partition; their time runs "
    "from when they were meant to leave until a consumer has them.",
    _measures,
    charts=("partitions-1-rate-5000", "partitions-1-rate-20000", "partitions-100-rate-5000"),
)
