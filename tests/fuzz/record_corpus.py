"""Requests as real clients send them, taken down on their way to a broker: what the campaign damages.

    python -m tests.fuzz.record_corpus

writes `corpus.bin` anew: a few frames of each API and version that confluent-kafka, kafka-python and aiokafka send, and the tools of Apache
Kafka where they are to be had (`make differential` fetches them).
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, IsolationLevel, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, OffsetSpec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from tools.kafka import HOME, run_tool

from barnabas.protocol.request_headers import read_request_header
from barnabas.testing import Broker
from tests.fuzz.corpus import CORPUS, SIZE

MOST_OF_A_KIND = 3  # frames of one API in one version from one client
WITHIN_S = 30.0
log = logging.getLogger(__name__)


class Recorder:
    """A port that passes bytes on to a broker, and keeps the frames that clients send."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: dict[tuple[int, int, str], list[bytes]] = {}
        self.client = ""
        self.port = 0
        self.broker_port = 0
        self._loop = loop
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Nothing is passed on any more."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, requests = await asyncio.open_connection("127.0.0.1", self.broker_port)
        except OSError:  # the broker ended before its clients
            writer.close()
            return
        back = self._loop.create_task(_copy(answers, writer))
        try:
            while True:
                head = await reader.readexactly(SIZE.size)
                frame = await reader.readexactly(SIZE.unpack(head)[0])
                self._keep(frame)
                requests.write(head + frame)
                await requests.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            log.debug("a client has left")
        finally:
            back.cancel()
            requests.close()
            writer.close()

    def _keep(self, frame: bytes) -> None:
        header = read_request_header(memoryview(frame))
        kept = self.frames.setdefault((header.api_key, header.api_version, self.client), [])
        if len(kept) < MOST_OF_A_KIND and len(frame) < 4_096:
            kept.append(frame)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()


@contextmanager
def recording() -> Iterator[tuple[Recorder, str]]:
    """A broker behind a recorder, and the address of that."""
    loop = asyncio.new_event_loop()
    recorder = Recorder(loop)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(recorder.listen(), loop).result(WITHIN_S)
    with socket.create_server(("127.0.0.1", 0)) as free:
        recorder.broker_port = free.getsockname()[1]
    config: dict[str, str | int | bool] = {
        "listeners": f"PLAINTEXT://127.0.0.1:{recorder.broker_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{recorder.port}",
        "transaction.state.log.num.partitions": 1,
    }
    try:
        with Broker(config):
            yield recorder, f"127.0.0.1:{recorder.port}"
    finally:
        asyncio.run_coroutine_threadsafe(recorder.close(), loop).result(WITHIN_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WITHIN_S)
        loop.close()


def confluent(address: str) -> None:
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": address}
    admin = AdminClient(common)
    admin.create_topics([NewTopic("c", 2, 1, config={"retention.ms": "100000"})])["c"].result(WITHIN_S)
    admin.create_partitions([NewPartitions("c", 3)])["c"].result(WITHIN_S)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer({**common, "compression.type": codec, "enable.idempotence": codec == "gzip"})
        for number in range(10):
            producer.produce("c", b"value %d" % number, b"key", headers=[("h", b"x")])
        producer.flush(WITHIN_S)
    writer = Producer({**common, "transactional.id": "t"})
    writer.init_transactions(WITHIN_S)
    for ends in (writer.commit_transaction, writer.abort_transaction):
        writer.begin_transaction()
        writer.produce("c", b"in a transaction")
        ends(WITHIN_S)
    consumer = Consumer({**common, "group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["c"])
    assert consumer.consume(10, WITHIN_S)
    writer.begin_transaction()
    writer.send_offsets_to_transaction([Place("c", 0, 1)], consumer.consumer_group_metadata(), WITHIN_S)
    writer.commit_transaction(WITHIN_S)
    consumer.commit(asynchronous=False)
    consumer.committed([Place("c", 0)], WITHIN_S)
    consumer.offsets_for_times([Place("c", 0, 1)], WITHIN_S)
    consumer.get_watermark_offsets(Place("c", 0), WITHIN_S)
    consumer.seek(Place("c", 0, OFFSET_BEGINNING))
    topic = ConfigResource(ConfigResource.Type.TOPIC, "c")
    admin.describe_configs([topic])[topic].result(WITHIN_S)
    entry = ConfigEntry("retention.ms", "5", incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, "c", incremental_configs=[entry])
    admin.incremental_alter_configs([changed])[changed].result(WITHIN_S)
    admin.list_consumer_groups().result(WITHIN_S)
    admin.describe_consumer_groups(["g"])["g"].result(WITHIN_S)
    admin.describe_cluster().result(WITHIN_S)
    place = Place("c", 0)
    admin.list_offsets({place: OffsetSpec.for_timestamp(0)}, isolation_level=IsolationLevel.READ_COMMITTED)[place].result(
        WITHIN_S
    )
    admin.delete_records([Place("c", 0, 0)])[Place("c", 0, 0)].result(WITHIN_S)
    admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])["g"].result(WITHIN_S)
    consumer.close()
    admin.delete_consumer_groups(["g"])["g"].result(WITHIN_S)
    admin.delete_topics(["c"])["c"].result(WITHIN_S)


def kafka_python(address: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address)
    producer.send("k", b"value", b"key", headers=[("h", b"x")]).get(WITHIN_S)
    producer.close()
    consumer = KafkaConsumer("k", bootstrap_servers=address, group_id="k", auto_offset_reset="earliest")
    assert consumer.poll(timeout_ms=WITHIN_S * 1000)
    consumer.commit()
    consumer.close()
    admin = KafkaAdminClient(bootstrap_servers=address)
    admin.describe_cluster()
    admin.list_topics()
    admin.close()


def aio(address: str) -> None:
    asyncio.run(_aio(address))


async def _aio(address: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id="a") as producer, producer.transaction():
        await producer.send_and_wait("a", b"value")
    async with AIOKafkaConsumer("a", bootstrap_servers=address, group_id="a", auto_offset_reset="earliest") as consumer:
        assert await asyncio.wait_for(consumer.getone(), WITHIN_S)
        await consumer.commit()
        await consumer.end_offsets([TopicPartition("a", 0)])


def java(address: str) -> None:
    """Apache Kafka's own tools, if they are here."""
    if not HOME.exists():
        log.warning("Apache Kafka is not here: nothing of its tools is taken down")
        return
    for line in (
        "kafka-topics --create --topic j --partitions 2",
        "kafka-topics --describe",
        "kafka-configs --entity-type topics --entity-name j --alter --add-config retention.ms=5",
        "kafka-configs --entity-type brokers --entity-name 0 --describe --all",
        "kafka-configs --entity-type users --entity-name u --alter --add-config producer_byte_rate=9",
        "kafka-configs --entity-type users --entity-name u --alter --add-config SCRAM-SHA-256=[password=p]",
        "kafka-acls --add --allow-principal User:u --producer --topic j",
        "kafka-acls --list",
        "kafka-acls --remove --force --allow-principal User:u --producer --topic j",
        "kafka-configs --entity-type users --entity-name u --describe",
        "kafka-verifiable-producer --topic j --max-messages 10",
        "kafka-consumer-groups --all-groups --describe",
        "kafka-consumer-groups --group j --topic j --reset-offsets --to-earliest --execute",
        "kafka-get-offsets --topic j",
        "kafka-log-dirs --describe",
        "kafka-leader-election --election-type preferred --all-topic-partitions",
        "kafka-transactions list",
        "kafka-transactions describe-producers --topic j --partition 0",
        "kafka-topics --delete --topic j",
    ):
        name, *flags = line.split()
        done = run_tool(name, "--bootstrap-server", address, *flags, check=False)
        if done.returncode:  # only the requests of the tool matter
            log.warning("%s: %s", line, (done.stdout + done.stderr).strip().splitlines()[-1:])


CLIENTS: dict[str, Callable[[str], None]] = {"confluent": confluent, "kafka-python": kafka_python, "aiokafka": aio, "java": java}


def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    with recording() as (recorder, address):
        for recorder.client, act in CLIENTS.items():
            act(address)
    frames = [frame for kind in sorted(recorder.frames) for frame in recorder.frames[kind]]
    CORPUS.write_bytes(zlib.compress(b"".join(SIZE.pack(len(frame)) + frame for frame in frames), 9))
    kinds = Counter(api_key for api_key, *_ in recorder.frames)
    print(f"{len(frames)} frames of {len(kinds)} APIs in {CORPUS.name}, {CORPUS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
