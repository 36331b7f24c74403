"""`compression`: batches of compressed text. A server decompresses them to check their records, and stores them unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.kafka_protocol import CODECS, batch_of
from bench.peers.peer import Message
from bench.suite.case import Case
from bench.suite.linkedin import producing
from bench.suite.measure import Measure, Options

VALUE_BYTES, BATCH = 200, 500


def _measures(options: Options) -> Sequence[Measure]:
    plain = len(batch_of(BATCH, VALUE_BYTES))
    return [
        Measure(
            codec,
            f"{BATCH} messages of {VALUE_BYTES} B a batch, {codec}, to {len(batch_of(BATCH, VALUE_BYTES, codec)) / plain:.0%}",
            "messages/s",
            producing(Message(VALUE_BYTES, BATCH, 1, codec), options),
        )
        for codec in CODECS
    ]


COMPRESSION = Case(
    "compression",
    "Compressed batches",
    "The same words in batches of each codec. The percentage is the compressed size. Only the compression of Kafka's protocol is "
    "measured. RabbitMQ's clients can compress sub-entries of streams, which are not used here.",
    _measures,
    only=("barnabas", "kafka"),
    why="its compression is not used here: it is that of its clients, or it has none",
)
