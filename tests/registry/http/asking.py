"""Requests to a registry without a web server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl

from barnabas.client.config import ClientConfig
from barnabas.registry.core.commands import Command
from barnabas.registry.core.parsing import Found
from barnabas.registry.core.registry import Registry
from barnabas.registry.http.rights import Rights
from barnabas.registry.http.routes import router_for
from barnabas.registry.http.surface import Surface
from barnabas.registry.service import RegistryService
from barnabas.registry.store.memory import MemoryLog, MemoryStore
from barnabas.registry.store.writer import Writer
from barnabas.web.routing import Caller, HttpError, Request, Response, Router
from barnabas.web.service import ServiceContext
from tests.registry.core.fake_format import fake_format
from tests.registry.http import described

Value = TypeVar("Value")
NOBODY = Caller()
NOWHERE = ClientConfig.from_options({"bootstrap.servers": "127.0.0.1:1"})


class Answer(NamedTuple):
    """Status and JSON of an answer."""

    status: int
    body: Any
    media: str


# method, URL, body, status, and the expected error code, fields or whole body
Row = tuple[str, str, Any, int, Any]


async def ask(
    router: Router,
    method: str,
    url: str,
    body: object = None,
    *,
    caller: Caller = NOBODY,
    any_query: bool = False,
    **headers: str,
) -> Answer:
    """One request; `headers` with underscores."""
    path, _, query = url.partition("?")
    pairs = tuple(parse_qsl(query, keep_blank_values=True))
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(method, path, dict(pairs), pairs, {key.replace("_", "-"): value for key, value in headers.items()}, data)
    request.caller = caller
    try:
        handler, segments = router.find(method, path)
        response: Response = await handler(request, *segments)
    except HttpError as error:
        response = error_response(error)
    media = dict(response.headers).get(b"content-type", b"").decode()
    described.check(request, response, any_query=any_query)
    return Answer(response.status, json.loads(response.body) if response.body else None, media)


def error_response(error: HttpError) -> Response:
    return RegistryService.error(cast(RegistryService, None), error)


class InMemory:
    """A registry over a store in memory, whose requests a test makes one after another."""

    def __init__(self, log: MemoryLog | None = None, formats: Found = fake_format, rights: Rights | None = None) -> None:
        self.registry = Registry(formats)
        self.store = MemoryStore(log)
        self.router = router_for(Surface(self.registry, self, rights))
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self.store.start(self.registry.replay))
        self.writer = Writer(self.registry, self.store)
        self._loop.run_until_complete(self.writer.take_over())

    def __call__(
        self, method: str, url: str, body: object = None, *, caller: Caller = NOBODY, any_query: bool = False, **headers: str
    ) -> Answer:
        return self.run(ask(self.router, method, url, body, caller=caller, any_query=any_query, **headers))

    def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        return self._loop.run_until_complete(coroutine)

    def close(self) -> None:
        self.run(self.writer.close())
        self.run(self.store.close())
        self._loop.close()

    async def write(self, request: Request, command: Command) -> Any:
        return await self.writer.submit(command)

    async def cluster_id(self) -> str:
        return "cluster"

    def group(self) -> str:
        return "schema-registry"


def service(bootstrap_servers: str, listener: str = "http://127.0.0.1:8081", **options: str) -> RegistryService:
    """A registry over a broker's topic; `options` of the client, with underscores."""
    given = {key.replace("_", "."): value for key, value in options.items()}
    client = ClientConfig.from_options({"bootstrap.servers": bootstrap_servers, **given})
    context = ServiceContext(client, listener, {})
    return RegistryService(context, Registry(fake_format))


def play(registry: InMemory, rows: Iterable[Row]) -> None:
    """Make requests one after another, and check each answer."""
    for method, url, body, status, expected in rows:
        answer = registry(method, url, body)
        assert answer.status == status, (method, url, body, answer)
        if status >= 400:
            assert answer.body["error_code"] == expected, (method, url, body, answer)
        elif isinstance(expected, dict):
            assert expected.items() <= answer.body.items(), (method, url, body, answer)
        elif expected is not None:
            assert answer.body == expected, (method, url, body, answer)
