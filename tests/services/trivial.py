"""A small service for tests of the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence

from barnabas.services.web_server import WebServer
from barnabas.web.routing import HttpError, Request, Response, Router
from barnabas.web.service import ServiceContext, ServiceEntry

LARGE = 32 * 1024 * 1024  # more than the kernel's buffers hold
JSON = ((b"content-type", b"application/json"),)


class Trivial:
    """Answers with what it was asked."""

    ready_lines: Sequence[str] = ()

    def __init__(self, context: ServiceContext) -> None:
        self.context = context
        self.router = Router()
        for method, pattern, handler in (
            ("GET", "/", self.root), ("GET", "/echo/{}", self.echo), ("POST", "/echo/{}", self.echo),
            ("GET", "/fault", self.fault), ("GET", "/slow", self.slow),
            ("GET", "/large", self.large), ("GET", "/stream/{}", self.stream),
        ):  # fmt: skip
            self.router.add(method, pattern, handler)
        self.is_started = False
        self.streams_ended = 0
        self.web: WebServer | None = None
        self.reached, self.proceed = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        self.is_started = True

    async def close(self) -> None:
        self.is_started = False

    def is_ready(self) -> bool:
        return self.is_started

    def error(self, error: HttpError) -> Response:
        return Response(json.dumps({"error_code": error.code, "message": error.message}).encode(), error.status, JSON)

    async def metrics(self) -> bytes:
        return b""

    async def root(self, request: Request) -> Response:
        return Response(b"{}", headers=JSON)

    async def echo(self, request: Request, word: str) -> Response:
        said = {
            "word": word, "query": dict(request.query), "body": len(request.body), "who": request.caller.principal,
            "authorized": "authorization" in request.headers,
        }  # fmt: skip
        return Response(json.dumps(said).encode(), headers=JSON)

    async def fault(self, request: Request) -> Response:
        raise RuntimeError("a secret of the code")

    async def slow(self, request: Request) -> Response:
        self.reached.set()
        await self.proceed.wait()
        return Response(b"late")

    async def large(self, request: Request) -> Response:
        return Response(bytes(LARGE))

    async def stream(self, request: Request, kind: str) -> Response:
        pieces = self._pieces(kind)
        return Response(await anext(pieces), headers=JSON, stream=pieces)

    async def _pieces(self, kind: str) -> AsyncGenerator[bytes, None]:
        try:
            yield b"[0"
            yield b",1"
            if kind == "broken":
                raise RuntimeError("a secret of the code")
            while kind == "endless":
                yield b"x" * 65_536
            if kind == "silent":
                self.reached.set()
                await self.proceed.wait()
            yield b"]"
        finally:
            self.streams_ended += 1


TRIVIAL = ServiceEntry("trivial", "trivial service", 0, "registry", (), Trivial)
