"""The client's side of GSSAPI against the server's, with contexts that are functions. A real centre: `tests/interop/test_kerberos.py`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.client.config import credentials_from
from barnabas.client.errors import LoginFailed
from barnabas.client.kerberos import Handshake, Tickets
from barnabas.errors import ConfigError
from barnabas.security.exchange import Identity
from barnabas.security.kerberos import GssapiExchange
from tests.security.test_kerberos import FakeContext

pytest.importorskip("gssapi")
GSSAPI = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
KAFKA = {"sasl.kerberos.service.name": "kafka"}
MODULE = "com.sun.security.auth.module.Krb5LoginModule"


class FakeInitiator:
    """Complete after one answer of the server's; wraps as `FakeContext` does."""

    def __init__(self) -> None:
        self.complete = False

    def step(self, token: bytes) -> bytes | None:
        assert token == b"mutual"
        self.complete = True
        return None

    def wrap(self, message: bytes, encrypt: bool) -> SimpleNamespace:
        assert not encrypt
        return SimpleNamespace(message=b"wrapped:" + message)

    def unwrap(self, message: bytes) -> SimpleNamespace:
        return SimpleNamespace(message=message.removeprefix(b"wrapped:"))


def test_both_sides_of_a_log_in() -> None:
    server = GssapiExchange(FakeContext(b"mutual"), lambda name: name.partition("@")[0])
    client = Handshake(FakeInitiator(), b"last", "localhost").tokens()
    answer, sent = server.evaluate(next(client)), 1
    while server.identity is None:
        answer, sent = server.evaluate(client.send(answer)), sent + 1
    assert (server.identity, answer, sent) == (Identity("alice"), b"", 3)
    with pytest.raises(StopIteration):
        client.send(answer)


@pytest.mark.parametrize("offer", [b"wrapped:\x02\0\0\0", b"wrapped:\x01", b""])
def test_a_server_that_wants_to_wrap_what_follows(offer: bytes) -> None:
    client = Handshake(FakeInitiator(), b"first", "localhost").tokens()
    next(client)
    client.send(b"mutual")
    with pytest.raises(LoginFailed, match="localhost: it wants to wrap"):
        client.send(offer)


@pytest.mark.parametrize(
    ("options", "tickets"),
    [
        (KAFKA, Tickets("kafka")),
        (
            {"sasl.jaas.config": f"{MODULE} required useTicketCache=true serviceName=kafka ticketCache='/c';"},
            Tickets("kafka", cache="/c"),
        ),
        (
            {**KAFKA, "sasl.jaas.config": f"{MODULE} required useKeyTab=true keyTab='file:/k' principal='a@R';"},
            Tickets("kafka", "/k", "a@R"),
        ),
        ({**KAFKA, "sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "a@R"}, Tickets("kafka", "/k", "a@R")),
    ],
)
def test_where_tickets_are_had_from(options: dict[str, str], tickets: Tickets) -> None:
    credentials = credentials_from({**GSSAPI, **options})
    assert credentials is not None
    assert credentials.tickets == tickets
    assert credentials.come_from_elsewhere


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({}, "sasl.kerberos.service.name"),
        ({**KAFKA, "sasl.jaas.config": f"{MODULE} required keyTab='/k';"}, "sasl.jaas.config"),
    ],
)
def test_what_is_not_enough(options: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        credentials_from({**GSSAPI, **options})
    assert caught.value.key == key
