"""Two registries whose callers show certificates: the one that does not write forwards in the name of its callers."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from http.client import HTTPSConnection
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from barnabas.cli.broker import STANDARD_AUTHORIZER
from barnabas.testing import Broker
from barnabas.testing.certificates import Certificates
from barnabas.testing.services import ServicesProcess
from tests.waiting import wait_until

RIGHTS = [
    (ResourceType.BROKER, "kafka-cluster", "one", AclOperation.CLUSTER_ACTION),
    (ResourceType.BROKER, "kafka-cluster", "two", AclOperation.CLUSTER_ACTION),
    (ResourceType.TOPIC, "orders", "alice", AclOperation.WRITE),
    (ResourceType.TOPIC, "orders", "bob", AclOperation.READ),
]


class Pair:
    """Two registries of one group."""

    def __init__(self, certificates: Certificates, urls: list[str]) -> None:
        self._certificates = certificates
        self.ca_file = certificates.ca_file
        self.urls = urls

    def ask(self, url: str, who: str, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        """The answer to a request with the certificate of `who`."""
        issued = self._certificates.client(who)
        context = ssl.create_default_context(cafile=self.ca_file)
        context.load_cert_chain(issued.certificate, issued.key)
        parts = urlsplit(url)
        with closing(HTTPSConnection(parts.hostname or "", parts.port, timeout=60, context=context)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, None if body is None else json.dumps(body), named)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def has_both(self, url: str) -> bool:
        """Whether a registry knows what was written through each."""
        return self.ask(url, "bob", "GET", "/subjects/orders-value/versions") == (200, [1, 2])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    certificates = Certificates(folder / "certificates")
    broker = Broker(
        {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:service"}, users={"service": "of-service"}
    )
    with ExitStack() as stack:
        stack.enter_context(broker)
        login = {"bootstrap.servers": broker.bootstrap_servers, **broker.login()}
        allow, literal = AclPermissionType.ALLOW, ResourcePatternType.LITERAL
        wanted = [AclBinding(kind, name, literal, f"User:{who}", "*", operation, allow) for kind, name, who, operation in RIGHTS]
        admin = AdminClient({**login})
        for made in admin.create_acls(wanted).values():
            made.result()
        urls = []
        for name in ("one", "two"):
            issued = certificates.authority.issue(name, hosts=("127.0.0.1",))
            settings = {
                **login, "listener.ssl.keystore.type": "PEM", "listener.ssl.keystore.location": str(issued.combined),
                "listener.ssl.truststore.type": "PEM", "listener.ssl.truststore.location": certificates.ca_file,
                "listener.ssl.client.auth": "required", "listener.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            }  # fmt: skip
            process = ServicesProcess("registry", settings, folder / f"{name}.log", "https://127.0.0.1:0")
            stack.callback(process.close)
            urls.append(process.url)
        yield Pair(certificates, urls)


def test_a_caller_has_the_same_rights_at_both(pair: Pair) -> None:
    for number, url in enumerate(pair.urls, 1):
        schema = {"schema": f'{{"type":"record","name":"R","fields":[{{"name":"f{number}","type":"int","default":0}}]}}'}
        status, body = pair.ask(url, "alice", "POST", "/subjects/orders-value/versions", schema)
        assert (status, body.get("id")) == (200, number), body
        status, body = pair.ask(url, "bob", "POST", "/subjects/orders-value/versions", schema)
        assert (status, body["error_code"]) == (403, 40301)
    for url in pair.urls:
        wait_until(partial(pair.has_both, url), "a registry has not read what the other wrote")


def test_nobody_else_speaks_for_others(pair: Pair) -> None:
    claim = {"x_forward": "true", "x_forward_principal": "User:alice", "x_forward_host": "127.0.0.1"}
    for url in pair.urls:
        status, body = pair.ask(url, "bob", "POST", "/subjects/orders-value/versions", {"schema": '"int"'}, **claim)
        assert (status, body["error_code"]) == (403, 40301)


def test_without_a_certificate_there_is_no_connection(pair: Pair) -> None:
    context = ssl.create_default_context(cafile=pair.ca_file)
    with pytest.raises((URLError, ConnectionError)):
        urlopen(f"{pair.urls[0]}/subjects", timeout=60, context=context)
