"""Records at an even rate, from a process of its own.

Record `i` is due at `began + i / rate`. It has the column k = `i % KEYS`, and the offset `i // PARTITIONS` of the partition
`i % PARTITIONS`. So the count of a key tells when the last counted record was due, and an offset tells it too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self

from confluent_kafka import Producer

from barnabas.testing.children import Child

KEYS, PARTITIONS = 1_000, 2
COLUMNS = "k bigint, x bigint"
LINGER_MS = 1
ROOT = Path(__file__).resolve().parents[2]


class Feed:
    """Sends records until its block ends. The topic is empty, and has PARTITIONS."""

    def __init__(self, bootstrap: str, topic: str, rate: int) -> None:
        self.rate, self.began_s = rate, 0.0
        self._command = [sys.executable, "-m", "bench.views.feed", bootstrap, topic, str(rate)]
        self._process: Child[str] | None = None

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
        self._process = Child(self._command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        self.began_s = float(self._process.stdout.readline())
        return self

    def due_s(self, number: int) -> float:
        """When a record was due, in seconds since the epoch."""
        return self.began_s + number / self.rate

    def due_by_offset_s(self, partition: int, offset: int) -> float:
        return self.due_s(offset * PARTITIONS + partition)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


def main() -> int:
    bootstrap, topic, rate = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda _number, _frame: stopping.set())
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": LINGER_MS, "enable.idempotence": True})
    producer.list_topics(topic)  # connects
    began, number = time.time(), 0
    print(began, flush=True)
    while not stopping.is_set():
        while time.time() >= began + number / rate:
            value = b'{"k":%d,"x":%d}' % (number % KEYS, number)
            producer.produce(topic, value, partition=number % PARTITIONS)
            number += 1
        producer.poll(0)
        stopping.wait(max(0.0, began + number / rate - time.time()))
    producer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
