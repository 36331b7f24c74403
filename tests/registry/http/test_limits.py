"""Everything that clients can make grow has a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas import limits
from barnabas.registry.http.forwarding import forward
from barnabas.web.routing import HttpError, Request
from tests.registry.http.asking import InMemory


@pytest.fixture
def registry() -> Iterator[InMemory]:
    made = InMemory()
    for number in range(4):
        made("POST", f"/subjects/s{number}/versions", {"schema": f'{{"f{number}":"int"}}'})
    yield made
    made.close()


@pytest.mark.parametrize(
    ("limit", "url"),
    [("MAX_LISTED_SUBJECTS", "/subjects"), ("MAX_LISTED_SCHEMAS", "/schemas"), ("MAX_LISTED_SCHEMAS", "/schemas?limit=9")],
)
def test_a_list_has_pages(registry: InMemory, monkeypatch: pytest.MonkeyPatch, limit: str, url: str) -> None:
    monkeypatch.setattr(limits, limit, 3)
    assert len(registry("GET", url).body) == 3


def test_few_parsed_schemas_and_answers_are_kept(registry: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PARSED_SCHEMAS", 2)
    monkeypatch.setattr(limits, "MAX_RENDERED_SCHEMAS", 2)
    for number in range(4):
        registry("POST", f"/subjects/s{number}", {"schema": f'{{"g{number}":"int"}}'})
        assert registry("GET", f"/schemas/ids/{number + 1}").status == 200
    assert len(registry.registry.state.answers) <= 2


def test_few_commands_wait(registry: InMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WAITING_REGISTRATIONS", 0)
    assert registry("DELETE", "/subjects/s0").status == 429


def test_a_forwarded_answer_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_FORWARDED_ANSWER_BYTES", 10)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 11\r\n\r\n" + b"x" * 11)
        await writer.drain()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(HttpError) as failed:
                await forward(f"http://127.0.0.1:{port}", Request("GET", "/"))
            assert failed.value.code == 50003

    asyncio.run(scenario())
