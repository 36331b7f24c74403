"""A copier with aiokafka: `python -m tests.torture.transactions.asynchronous BOOTSTRAP NAME SEED`; it runs until it is killed.

It assigns all partitions to itself. When its transactional id is its own, every open transaction has ended, and it reads committed records.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from tests.torture.transactions.plan import (
    ABORTED_SHARE,
    BATCH_RECORDS,
    OWN,
    PARTITIONS,
    TRANSACTION_TIMEOUT_MS,
    output_of,
)

POLL_MS = 200
FAILED = 3
PLACES = [TopicPartition(OWN, index) for index in range(PARTITIONS[OWN])]


class Aborted(Exception):
    """The copier changes its mind."""


async def copy(bootstrap: str, name: str, seed: int) -> None:
    chance = random.Random(seed)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    await producer.start()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    consumer.assign(PLACES)
    while True:
        found = await consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH_RECORDS)
        if not found:
            continue
        try:
            async with producer.transaction():
                sent = [
                    await producer.send(output_of(OWN), record.value, partition=place.partition)
                    for place, records in found.items()
                    for record in records
                ]
                await asyncio.gather(*sent)  # the end of a transaction does not report refused records
                ends = {place: records[-1].offset + 1 for place, records in found.items()}
                await producer.send_offsets_to_transaction(ends, name)
                if chance.random() < ABORTED_SHARE:
                    raise Aborted
        except Aborted:
            await consumer.seek_to_committed()


def main() -> int:
    bootstrap, name, seed = sys.argv[1:]
    logging.basicConfig(level=logging.CRITICAL)
    try:
        asyncio.run(copy(bootstrap, name, int(seed)))
    except KafkaError as error:
        print(f"copier {name} ends: {error!r}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
