"""A cluster whose only listener asks everybody to log in, the brokers too."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path

import pytest

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.config import ClientConfig
from barnabas.client.results import NewTopic
from barnabas.cluster.metadata import store_entries
from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.store.interface import Put
from barnabas.cluster.store.memory import MemoryStore, MemoryTree
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.protocol.records.batch import Record, build_batch
from barnabas.security.scram import HASHES, credential_of
from barnabas.security.users import encode
from barnabas.server.broker import Broker
from barnabas.server.cluster.peers import inter_broker_credentials
from tests.client.token_endpoint import Endpoint
from tests.security.tokens import Provider, key_set
from tests.server.cluster.in_process import Cluster, running

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENER = {
    "listeners": "SECURE://127.0.0.1:0",
    "listener.security.protocol.map": "SECURE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SECURE",
}


def settings(mechanism: str) -> dict[str, str]:
    module, users = (PLAIN, "user_broker=geheim user_alice=pw") if mechanism == "PLAIN" else (SCRAM, "")
    return {
        **LISTENER,
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.jaas.config": f"{module} required username=broker password=geheim {users};",
    }


def client(cluster: Cluster, mechanism: str) -> AsyncClient:
    servers = ",".join(f"127.0.0.1:{broker.endpoints[0].port}" for broker in cluster.brokers.values())
    shown = {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": "pw"}
    return AsyncClient(ClientConfig.from_options({"bootstrap.servers": servers, "security.protocol": "SASL_PLAINTEXT", **shown}))


def add_users(tree: MemoryTree, **users: str) -> None:
    """As `barnabas user add --metadata` does, before there is a broker."""
    for user, password in users.items():
        kept = {mechanism: encode(credential_of(mechanism, password, b"salt", 4096)) for mechanism in HASHES}
        MemoryStore(tree).commit([Put(store_entries.declaration_path(Kind.USER, user), store_entries.encode(kept))])


def end_of(broker: Broker, number: int) -> int:
    partition = broker.partitions.get("t", number)
    return -1 if partition is None or partition.is_offline else partition.log.log_end_offset


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
async def test_brokers_log_in_to_each_other_and_follow(tmp_path: Path, mechanism: str) -> None:
    async with running(tmp_path, count=0, **settings(mechanism)) as cluster:
        add_users(cluster.tree, broker="geheim", alice="pw")
        for broker_id in (1, 2, 3):
            await cluster.start(broker_id)
        async with client(cluster, mechanism) as asking:
            await asking.create_topics([NewTopic("t", 3, 3)])
            for partition in range(3):
                await asking.produce("t", partition, build_batch([Record(0, 0, None, b"hello")]))
        brokers = cluster.brokers.values()
        found = [(broker, number) for broker in brokers for number in range(3)]
        await cluster.until(lambda: all(end_of(broker, number) == 1 for broker, number in found))
        assert all(broker.sasl_listeners.counts.failures == 0 for broker in brokers)


async def test_brokers_log_in_by_tokens_that_are_written_anew(tmp_path: Path) -> None:
    """One broker shows the token of a file, which is over after a while, the other one what a provider gives."""
    provider, now_s = Provider(), int(time.time())
    keys, file = tmp_path / "keys.json", tmp_path / "token"
    keys.write_text(key_set(provider.public()))
    bearer = {
        **LISTENER,
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "connections.max.reauth.ms": "1500",
    }
    signed = iter(provider.sign(now_s, sub="broker", aud="kafka", jti=str(number)) for number in count())
    file.write_text(next(signed))
    with Endpoint() as endpoint:
        endpoint.answers = [(200, json.dumps({"access_token": next(signed), "expires_in": 300}))]
        own = {
            1: {"sasl.oauthbearer.token.endpoint.url": file.as_uri()},
            2: {
                "sasl.oauthbearer.token.endpoint.url": endpoint.url,
                "sasl.oauthbearer.client.credentials.client.id": "kafka",
                "sasl.oauthbearer.client.credentials.client.secret": "geheim",
            },
        }
        async with running(tmp_path / "data", count=0, **bearer) as cluster:
            for broker_id, settings_of_one in own.items():
                await cluster.start(broker_id, **settings_of_one)
            servers = ",".join(f"127.0.0.1:{broker.endpoints[0].port}" for broker in cluster.brokers.values())
            shown = {"bootstrap.servers": servers, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
            config = ClientConfig.from_options({**shown, "sasl.oauthbearer.token.endpoint.url": file.as_uri()})
            async with AsyncClient(config) as asking:
                await asking.create_topics([NewTopic("t", 2, 2)])
                for partition in range(2):
                    await asking.produce("t", partition, build_batch([Record(0, 0, None, b"hello")]))
            brokers = cluster.brokers.values()
            await cluster.until(lambda: all(end_of(broker, number) == 1 for broker in brokers for number in range(2)))
            file.write_text(next(signed))
            await cluster.until(lambda: all(broker.sasl_listeners.counts.renewals >= 2 for broker in brokers))
            assert all(broker.sasl_listeners.counts.failures == 0 for broker in brokers)
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"sasl.mechanism.inter.broker.protocol": "CRAM-MD5"}, "sasl.mechanism.inter.broker.protocol"),
        ({"sasl.mechanism.inter.broker.protocol": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.jaas.config": f"{PLAIN} required user_a=b;"}, "listener.name.secure.plain.sasl.jaas.config"),
    ],
)
def test_a_broker_that_could_not_log_in_does_not_start(changes: dict[str, str], key: str) -> None:
    properties = {"zookeeper.connect": "a:1", **settings("PLAIN"), **changes}
    config, _ = BrokerConfig.from_properties(properties)
    with pytest.raises(ConfigError) as caught:
        inter_broker_credentials(config)
    assert caught.value.key == key
