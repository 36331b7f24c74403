"""Workers of Connect as processes, and questions to their REST interface."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from barnabas.testing.services import ServicesProcess
from tests.waiting import wait_until

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


class Reached(Protocol):
    """A process that has a REST interface."""

    @property
    def url(self) -> str: ...

    @property
    def pid(self) -> int: ...


class Worker:
    """One worker."""

    def __init__(self, process: Reached) -> None:
        self.process, self.url = process, process.url

    def ask(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None) -> tuple[int, Any]:
        """Status and body of an answer."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def make(self, name: str, config: Mapping[str, Any], state: str | None = None) -> Any:
        status, found = self.ask(
            "POST", "/connectors", {"name": name, "config": config} | ({"initial_state": state} if state else {})
        )
        assert status == 201, found
        return found

    def states(self, name: str) -> tuple[str | None, list[str]]:
        """The state of a connector and those of its tasks."""
        status, found = self.ask("GET", f"/connectors/{quote(name, safe='')}/status")
        return (None, []) if status != 200 else (found["connector"]["state"], [each["state"] for each in found["tasks"]])

    def waits_for(self, name: str, state: str | None, tasks: list[str]) -> None:
        wait_until(lambda: self.states(name) == (state, tasks), f"{name} is not {state} with {tasks}", within_s=30)


@contextmanager
def worker(bootstrap: str, folder: Path, group: str, **settings: str) -> Iterator[Worker]:
    """A worker of a group, whose topics are its own."""
    topics = {f"{name}.storage.topic": f"{group}-{name}" for name in ("config", "status", "offset")}
    given = {key.replace("__", "."): value for key, value in settings.items()}
    properties = {"bootstrap.servers": bootstrap, "group.id": group, **topics, **given}
    process = ServicesProcess("connect", properties, folder / "connect.log")
    try:
        yield Worker(process)
    finally:
        process.close()
