"""A small REST catalog of Iceberg over HTTP: the requests that a sink sends, answered by a catalog in SQLite."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest, StagedTable, Table

TOKEN = "the-token"


class RestCatalog:
    """The server.

    Attributes:
        failures: how many of the next commits are answered with 503; nothing is committed then.
        unknown: how many of the next commits are made, and answered with 500.
    """

    def __init__(self, folder: Path) -> None:
        self.catalog: Any = load_catalog("rest", type="sql", uri=f"sqlite:///{folder}/rest.db", warehouse=f"file://{folder}/rest")
        self.lock = threading.Lock()
        self.failures = self.unknown = 0
        self.staged: dict[tuple[str, str], StagedTable] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def properties(self) -> dict[str, str]:
        """Of the catalog, for clients."""
        return {"type": "rest", "uri": f"http://127.0.0.1:{self._server.server_address[1]}", "token": TOKEN}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.catalog.engine.dispose()


@contextmanager
def running(folder: Path) -> Iterator[RestCatalog]:
    made = RestCatalog(folder)
    try:
        yield made
    finally:
        made.close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"

    def __init__(self, rest: RestCatalog, *connection: Any) -> None:
        self.rest = rest
        super().__init__(*connection)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Nothing is logged."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("authorization") != f"Bearer {TOKEN}":
            self._answer(401, _error("NotAuthorizedException", "no token"))
            return
        path = [unquote(each) for each in self.path.partition("?")[0].removeprefix("/v1/").split("/")]
        with self.rest.lock:
            try:
                status, found = self._found(path, body)
            except NoSuchTableError as error:
                status, found = 404, _error("NoSuchTableException", str(error))
            except NamespaceAlreadyExistsError as error:
                status, found = 409, _error("AlreadyExistsException", str(error))
            except CommitFailedException as error:
                status, found = 409, _error("CommitFailedException", str(error))
        self._answer(status, found)

    do_GET = do_HEAD = do_POST = _handle

    def _found(self, path: list[str], body: bytes) -> tuple[int, Any]:
        rest, catalog = self.rest, self.rest.catalog
        match self.command, path:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "HEAD" | "GET", ["namespaces", name]:
                return (200, {"namespace": [name]}) if catalog.namespace_exists(name) else (404, None)
            case "POST", ["namespaces"]:
                catalog.create_namespace(tuple(json.loads(body)["namespace"]))
                return 200, json.loads(body)
            case "POST", ["namespaces", space, "tables"]:
                return 200, self._created(space, json.loads(body))
            case "GET", ["namespaces", space, "tables", name]:
                return 200, _shown(catalog.load_table((space, name)))
            case "POST", ["namespaces", space, "tables", name]:
                if rest.failures:
                    rest.failures -= 1
                    return 503, _error("ServiceUnavailableException", "not now")
                answer = self._committed((space, name), CommitTableRequest.model_validate_json(body))
                if rest.unknown:
                    rest.unknown -= 1
                    return 500, _error("CommitStateUnknownException", "nobody knows")
                return 200, answer
        return 404, _error("NotFoundException", self.path)

    def _created(self, space: str, request: dict[str, Any]) -> Any:
        name, schema = request["name"], Schema.model_validate(request["schema"])
        staged = self.rest.catalog._create_staged_table((space, name), schema, properties=request.get("properties", {}))
        self.rest.staged[space, name] = staged
        return _shown(staged)

    def _committed(self, name: tuple[str, str], request: Any) -> Any:
        staged = self.rest.staged.get(name)
        table: Table = staged if staged is not None else self.rest.catalog.load_table(name)
        answer = self.rest.catalog.commit_table(table, request.requirements, request.updates)
        self.rest.staged.pop(name, None)
        return {"metadata-location": answer.metadata_location, "metadata": json.loads(answer.metadata.model_dump_json())}

    def _answer(self, status: int, found: Any) -> None:
        data = b"" if found is None or self.command == "HEAD" else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _shown(table: Table) -> Any:
    return {"metadata-location": table.metadata_location, "metadata": json.loads(table.metadata.model_dump_json()), "config": {}}


def _error(kind: str, text: str) -> Any:
    return {"error": {"message": text, "type": kind, "code": 0}}
