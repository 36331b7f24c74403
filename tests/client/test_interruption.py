"""Another thread ends what a blocking client waits for."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.interruption import Interrupted, Interruption
from barnabas.testing import Broker
from tests.waiting import wait_until

HOUR_MS = 3_600_000
MESSAGE = "the operation was interrupted"


def client_of(port: int) -> tuple[BlockingClient, Interruption]:
    """A client that does not give up by itself."""
    interruption = Interruption()
    config = ClientConfig(
        (("127.0.0.1", port),),
        interruption=interruption,
        request_timeout_ms=HOUR_MS,
        default_api_timeout_ms=2 * HOUR_MS,  # a pause of an hour ends before it
        retry_backoff_ms=HOUR_MS,
        retry_backoff_max_ms=HOUR_MS,
    )
    return BlockingClient(config), interruption


def interrupted(client: BlockingClient, interruption: Interruption, waits: Callable[[], object]) -> str:
    """Ask for topics in a thread, interrupt it as soon as it waits, and return the message of its error."""
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.topics)
        wait_until(waits)
        interruption.interrupt()
        with pytest.raises(Interrupted) as raised:
            asked.result(60)
        return str(raised.value)


def test_a_wait_for_an_answer_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # takes connections and never answers
        client, interruption = client_of(server.getsockname()[1])
        with client:
            for _ in range(2):
                assert interrupted(client, interruption, lambda: interruption._waiting) == MESSAGE
                assert not interruption._waiting
                interruption.resume()


def refused(server: socket.socket) -> bool:
    """The client connected and lost the connection."""
    server.accept()[0].close()
    return True


def test_a_pause_between_attempts_ends() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client, interruption = client_of(server.getsockname()[1])
        with client:
            assert interrupted(client, interruption, lambda: refused(server)) == MESSAGE


def test_an_operation_that_begins_later_ends_too_until_they_may_go_on() -> None:
    with Broker() as broker:
        client, interruption = client_of(broker.port)
        with client:
            interruption.interrupt()
            with pytest.raises(Interrupted):
                client.topics()
            interruption.resume()
            assert client.topics() == {}
