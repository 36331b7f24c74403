"""Topics with keyed records, for compaction: different batches, built once and sent in turn."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence

from barnabas.protocol.records.batch import Compression, Record, build_batch
from bench.storage.servers import AnyServer
from bench.wire import AnswerShape, produce_frame, receive_exactly

IN_FLIGHT = 4
NOW_MS = 1_790_000_000_000


def keyed_batches(
    count: int, records: int, *, keys: int, value_bytes: int, compression: int = Compression.NONE, seed: int = 1
) -> list[bytes]:
    """Batches of records with keys drawn from `keys` different ones; compression halves the values."""
    rng = random.Random(seed)
    batches = []
    for _ in range(count):
        pairs = [(b"key-%010d" % rng.randrange(keys), rng.randbytes(value_bytes // 2).hex().encode()) for _ in range(records)]
        batches.append(build_batch([Record(0, NOW_MS, key, value) for key, value in pairs], compression=compression))
    return batches


def fill(server: AnyServer, topic: str, partition: int, batches: Sequence[bytes], total_bytes: int) -> int:
    """Write batches in turn until there are `total_bytes`; returns the number of batches written."""
    shape = AnswerShape(topic, 1)
    frames = [produce_frame(topic, partition, batch, acks=1) for batch in batches]
    written = sent = answered = 0
    with socket.create_connection(server.address) as line:
        while written < total_bytes or answered < sent:
            while written < total_bytes and sent - answered < IN_FLIGHT:
                line.sendall(frames[sent % len(frames)])
                written += len(batches[sent % len(batches)])
                sent += 1
            shape.check(memoryview(receive_exactly(line, shape.size)), 1, 0)
            answered += 1
    return sent
