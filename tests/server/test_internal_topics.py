"""Only coordinators write to their topics: clients may read it, and nothing else."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

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


def test_what_coordinators_keep_is_made_again_after_it_was_deleted() -> None:
    with Broker(config={"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}) as broker:
        client = Client(broker, "t").create()
        for group in ("before", "after"):
            _commit(broker, group, 0)
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": group})
            producer.init_transactions(WAIT_S)
            producer.begin_transaction()
            producer.produce("t", group.encode())
            producer.commit_transaction(WAIT_S)
            if group == "before":
                for deleted in client.admin.delete_topics(TOPICS[:2]).values():
                    deleted.result(WAIT_S)
        names = [each.group_id for each in client.admin.list_consumer_groups().result(WAIT_S).valid]
        assert names == ["after"]


def test_more_partitions_of_an_internal_topic_are_coordinated_at_once() -> None:
    with Broker(config={"offsets.topic.num.partitions": 1}) as broker:
        client = Client(broker, "t").create()
        _commit(broker, "first", 7)
        client.admin.create_partitions([NewPartitions(TOPICS[0], 4)])[TOPICS[0]].result(WAIT_S)
        groups = [f"g{number}" for number in range(8)]
        for group in groups:
            _commit(broker, group, 7)
        listed = client.admin.list_consumer_groups().result(WAIT_S).valid
        assert sorted(each.group_id for each in listed) == ["first", *groups]
        assert [_committed(broker, group) for group in groups] == [7] * 8


def _commit(broker: Broker, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def _committed(broker: Broker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    (found,) = consumer.committed([TopicPartition("t", 0)], WAIT_S)
    consumer.close()
    return found.offset
