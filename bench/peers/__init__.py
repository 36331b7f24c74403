"""The systems that barnabas is compared with: all are started on loopback, loaded, measured and stopped with the same interface
(`peer.Peer`)."""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.activemq import ActiveMq
from bench.peers.kafka_protocol import ApacheKafka, Barnabas
from bench.peers.nats import Nats
from bench.peers.peer import Peer
from bench.peers.rabbitmq import RabbitMq
from bench.peers.rabbitmq_queues import RabbitMqQueues
from bench.peers.redis import Redis

OURS = "barnabas"
PEERS: dict[str, Callable[[], Peer]] = {
    OURS: Barnabas,
    "kafka": ApacheKafka,
    "rabbitmq": RabbitMq,
    "rabbitmq-queues": RabbitMqQueues,
    "activemq": ActiveMq,
    "nats": Nats,
    "redis": Redis,
}
