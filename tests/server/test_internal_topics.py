"""What coordinators write is theirs: clients may read it, and nothing else."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from barnabas.testing import Broker
from tests.server.clients import WAIT_S, Client

TOPICS = ["__consumer_offsets", "__transaction_state", "__share_group_state"]


def test_clients_neither_write_to_internal_topics_nor_delete_their_records() -> None:
    refusals: dict[str | None, KafkaError | None] = {}
    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retries": 0})
        for topic in TOPICS:
            client = Client(broker, topic).create()
            producer.produce(topic, b"forged", on_delivery=lambda error, message: refusals.update({message.topic(): error}))
            with pytest.raises(KafkaException) as refused:
                client.delete_before(0)
            assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
        assert producer.flush(WAIT_S) == 0
        del producer
    assert {topic: error and error.code() for topic, error in refusals.items()} == dict.fromkeys(
        TOPICS, KafkaError.TOPIC_EXCEPTION
    )
