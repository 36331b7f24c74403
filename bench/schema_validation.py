"""`python -m bench.schema_validation`: the time of a produce request on a topic with schema validation, and on a topic without.

The handler is called with one request after the other on a broker in this process, as in `bench.steps`. The broker knows their
schema ids, as it does after the first request with an id. A figure is the median of the rounds, in microseconds for one
request.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence

import uvloop

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.results import NewTopic
from barnabas.config.broker import BrokerConfig
from barnabas.protocol.records.compression import Compression
from barnabas.server.broker import Broker
from barnabas.server.environment import Environment
from barnabas.server.schema_validation.subject import Verdict
from barnabas.server.schema_validation.topic_check import TopicCheck
from bench.steps import MANY, TOPIC, VALUE_BYTES, Steps, each_us
from bench.wire import batch_of, produce_frame

CHECKED_TOPIC = f"{TOPIC}-checked"
SCHEMA_ID = b"\0\0\0\0\1"
VALUE = SCHEMA_ID + bytes(32 + i % 95 for i in range(VALUE_BYTES - len(SCHEMA_ID)))
NO_REGISTRY = "http://127.0.0.1:1"  # never called, because the schema id is already known
CASES = (
    ("1 record", 1, Compression.NONE),
    (f"{MANY} records", MANY, Compression.NONE),
    (f"{MANY} records, lz4", MANY, Compression.LZ4),
)


def _know_the_id(broker: Broker) -> None:
    """Set the broker's state as if the registry had answered."""
    partition = broker.partitions.require_leader(CHECKED_TOPIC, 0)
    check = getattr(partition.log.appender, "check", None)
    assert isinstance(check, TopicCheck)
    assert check.values is not None
    check.values.missing((), broker.loop.time())
    check.values.take(SCHEMA_ID, Verdict(True, ""), broker.loop.time())


def _alone_us(steps: Steps, topic: str, batch: bytes) -> float:
    """The microseconds of a request, for requests that arrive one by one."""
    framed = produce_frame(topic, 0, batch, acks=1)
    received, connection = bytearray(framed), steps.connection()

    def repeat() -> None:
        received[:] = framed
        steps.dispatch(connection, memoryview(received))

    return each_us(repeat)


async def _measure() -> list[tuple[str, Sequence[float]]]:
    with tempfile.TemporaryDirectory(prefix="barnabas-validation-") as folder:
        properties = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": folder,
            "confluent.schema.registry.url": NO_REGISTRY,
        }
        config, _ = BrokerConfig.from_properties(properties)
        broker = Broker(config, asyncio.get_running_loop(), Environment())
        await broker.start()
        try:
            async with AsyncClient.to(f"127.0.0.1:{broker.endpoints[0].port}") as client:
                checked = NewTopic(CHECKED_TOPIC, 1, configs={"confluent.value.schema.validation": "true"})
                await client.create_topics([NewTopic(TOPIC, 1), checked])
                topic_id = (await client.topics())[TOPIC].topic_id
            _know_the_id(broker)
            steps = Steps(broker, topic_id)
            found: list[tuple[str, Sequence[float]]] = []
            for title, records, codec in CASES:
                batch = batch_of([VALUE] * records, codec=codec)
                frames = [produce_frame(topic, 0, batch, acks=1) for topic in (TOPIC, CHECKED_TOPIC)]
                alone = [_alone_us(steps, topic, batch) for topic in (TOPIC, CHECKED_TOPIC)]
                together = [steps.run([framed] * 16) for framed in frames]
                found.append((title, [*alone, *together]))
            return found
        finally:
            await broker.stop()


def main() -> int:
    heads = ("off", "on", "off, 16 at once", "on, 16 at once")
    print(f"{'produce, us of a request':26}" + "".join(f"{head:>18}" for head in heads))
    for title, figures in uvloop.run(_measure()):
        print(f"  {title:24}" + "".join(f"{figure:18.1f}" for figure in figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
