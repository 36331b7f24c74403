"""The https listener on the event loop of the host."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from pathlib import Path

import pytest
import uvloop

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.services.application import Application
from barnabas.services.listener import Listener, bind
from barnabas.services.metrics import RequestTimes
from barnabas.services.tls import listener_tls, listening_context, peers_context
from barnabas.services.web_server import WebServer
from barnabas.testing.certificates import Certificates
from barnabas.tls.names import subject_of
from barnabas.web.service import ServiceContext
from tests.services.trivial import TRIVIAL, Trivial
from tests.waiting import until

HOSTS = ("127.0.0.1",)


def settings(certificates: Certificates, file: Path) -> dict[str, str]:
    return {
        "listener.ssl.keystore.type": "PEM", "listener.ssl.keystore.location": str(file),
        "listener.ssl.truststore.type": "PEM", "listener.ssl.truststore.location": certificates.ca_file,
    }  # fmt: skip


async def started(given: dict[str, str]) -> tuple[WebServer, int]:
    service = Trivial(ServiceContext(ClientConfig((("127.0.0.1", 1),)), "https://127.0.0.1:0", {}))
    await service.start()
    listening = bind(TRIVIAL, Listener("https", "127.0.0.1", 0), "--listener")
    server = WebServer(Application("trivial", service, RequestTimes()), listening, listening_context(listener_tls(given)))
    await server.start()
    return server, listening.getsockname()[1]


async def subject_shown(port: int, context: ssl.SSLContext) -> str:
    """The name in the certificate of the server, after a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"{}")
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return subject_of(shown)


def test_a_renewed_certificate_is_shown_to_the_next_client(tmp_path: Path) -> None:
    certificates, file = Certificates(tmp_path / "ca"), tmp_path / "shown.pem"

    def show(name: str) -> None:
        fresh = tmp_path / "fresh.pem"
        fresh.write_bytes(certificates.authority.issue(name, hosts=HOSTS).combined.read_bytes())
        os.replace(fresh, file)

    async def scenario() -> None:
        show("old")
        server, port = await started(settings(certificates, file))
        try:
            context = peers_context(settings(certificates, file))
            assert await subject_shown(port, context) == "CN=old"
            show("renewed")
            assert await subject_shown(port, context) == "CN=renewed"
            file.write_text("nonsense")
            assert await subject_shown(port, context) == "CN=renewed"
        finally:
            await server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_slow_handshakes_and_still_readers_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_HEAD_TIMEOUT_S", 0.2)
    monkeypatch.setattr(limits, "SERVICE_ANSWER_TIMEOUT_S", 0.1)
    certificates = Certificates(tmp_path / "ca")
    given = settings(certificates, certificates.authority.issue("here", hosts=HOSTS).combined)

    async def scenario() -> None:
        server, port = await started(given)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            context = peers_context(given)
            still = await asyncio.to_thread(connected, port, context)
            await until(lambda: server.connections == 0, "the connection stays")
            still.close()
            assert await subject_shown(port, context) == "CN=here"
        finally:
            await server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def connected(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A client that asks for much and reads nothing."""
    still = context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
    still.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    return still
