"""A registry with the few requests that brokers send: over real HTTP, in a thread, as slow as a test wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class SmallRegistry:
    """Owns the server.

    Fields:
        subjects: the subjects of each id.
        schemas: what `GET /schemas/ids/{id}` answers, by id; `serialized` has the descriptors of Protobuf schemas.
        guids: the ids of each GUID.
        aliases: of subjects.
        asked: the paths, in their order.
        open: answers wait for it.
        status: of every answer, if it is not 200.
    """

    def __init__(self) -> None:
        self.subjects: dict[int, list[str]] = {}
        self.schemas: dict[int, dict[str, Any]] = {}
        self.serialized: dict[int, str] = {}
        self.guids: dict[str, list[dict[str, Any]]] = {}
        self.aliases: dict[str, str] = {}
        self.asked: list[str] = []
        self.logins: set[str | None] = set()
        self.open = Event()
        self.open.set()
        self.status = 200
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                registry.asked.append(self.path)
                registry.logins.add(self.headers.get("Authorization"))
                registry.open.wait()
                answer = registry.answer(self.path)
                status = registry.status if registry.status != 200 or answer is not None else 404
                body = json.dumps({"error_code": status, "message": "no"} if status != 200 else answer).encode()
                with suppress(OSError):  # after its timeout the broker closes the connection
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str) -> Any:
        """The JSON; None for 404."""
        parts = urlsplit(path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        match words:
            case ["schemas", "ids", number, "subjects"]:
                found = self.subjects.get(int(number))
                offset = int(query.get("offset", 0))
                return None if found is None else found[offset : offset + 1_000]
            case ["schemas", "ids", number]:
                if query.get("format") == "serialized":
                    return {"schemaType": "PROTOBUF", "schema": self.serialized[int(number)]}
                return self.schemas.get(int(number))
            case ["schemas", "guids", guid, "ids"]:
                return self.guids.get(guid)
            case ["config", subject]:
                return {"alias": self.aliases[subject]} if subject in self.aliases else None
        return None


@contextmanager
def small_registry() -> Iterator[SmallRegistry]:
    """One that serves."""
    registry = SmallRegistry()
    thread = Thread(target=registry.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        registry.open.set()
        registry.server.shutdown()
        registry.server.server_close()
        thread.join()
