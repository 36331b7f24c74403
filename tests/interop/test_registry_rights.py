"""The schema registry with log-in over Apache Kafka: its users and its access control lists decide."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
from tools.kafka import KafkaNode, free_ports

from barnabas.testing.services import ServicesProcess

USERS = {"service": "of-service", "alice": "of-alice", "bob": "of-bob"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
KAFKA = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{LOGIN} {JAAS};",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:service;User:ANONYMOUS",
}
RIGHTS = {"alice": AclOperation.WRITE, "bob": AclOperation.READ}
pytestmark = pytest.mark.timeout(300)
SCHEMA = Schema('{"type":"record","name":"Order","fields":[]}', "AVRO")


class Secured(KafkaNode):
    """A node with a second listener, for clients that log in."""

    secured = ""

    def _properties(self, port: int, controller_port: int) -> dict[str, str]:
        (third,) = free_ports(1)
        self.secured = f"127.0.0.1:{third}"
        found = super()._properties(port, controller_port)
        more = f",SASL_PLAINTEXT://{self.secured}"
        return {**found, "listeners": found["listeners"] + more, "advertised.listeners": found["advertised.listeners"] + more}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = Secured(heap="512m", config=KAFKA)
    with node:
        login = {"bootstrap.servers": node.secured, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN",
                 "sasl.username": "service", "sasl.password": "of-service"}  # fmt: skip
        admin = AdminClient({**login})
        literal, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        acls = [
            AclBinding(ResourceType.TOPIC, "orders", literal, f"User:{user}", "*", right, allow) for user, right in RIGHTS.items()
        ]
        for made in admin.create_acls(acls).values():
            made.result()
        settings = {**login, "authentication.method": "BASIC", "super.users": "User:service"}
        registry = ServicesProcess("registry", settings, tmp_path_factory.mktemp("registry") / "log")
        try:
            yield registry.url
        finally:
            registry.close()


def code_of(client: SchemaRegistryClient, call: str, *arguments: object) -> int:
    """The code of a refusal."""
    with pytest.raises(SchemaRegistryError) as refused:
        getattr(client, call)(*arguments)
    return int(refused.value.error_code)


def test_users_have_the_rights_that_kafka_gives_them(url: str, tmp_path: Path) -> None:
    def user(name: str, password: str | None = None) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": url, "basic.auth.user.info": f"{name}:{password or USERS[name]}", "max.retries": 0})

    with user("service") as service, user("alice") as alice, user("bob") as bob, user("bob", "wrong") as nobody:
        assert alice.register_schema("orders-value", SCHEMA) == 1
        assert bob.get_latest_version("orders-value").schema_id == 1
        assert code_of(bob, "register_schema", "orders-value", SCHEMA) == 40301
        assert code_of(alice, "delete_subject", "orders-value") == 40301
        assert code_of(alice, "register_schema", "payments-value", SCHEMA) == 40301
        assert code_of(nobody, "get_subjects") == 401
        assert service.register_schema("payments-value", SCHEMA) == 1
        assert bob.get_subjects() == ["orders-value"]
        assert service.delete_subject("payments-value") == [1]
