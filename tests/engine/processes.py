"""A supervisor in a process of its own, for tests that kill it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.engine.cluster import FAKE, Cluster

SUPERVISING, SERVING = (str(Path(__file__).with_name(name)) for name in ("supervising.py", "serving.py"))


@contextmanager
def supervising(cluster: Cluster, pipelines: Path) -> Iterator[subprocess.Popen[bytes]]:
    task = {"bootstrap": cluster.bootstrap, "folder": str(cluster.folder), "pipelines": str(pipelines), "driver": FAKE}
    process = subprocess.Popen([sys.executable, "-P", SUPERVISING, json.dumps(task)])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Service:
    """An engine as a service, with the fake driver."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url

    def request(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """The status and the body of an answer, from JSON if it is that."""
        data = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"content-type": "application/json"}
        asked = Request(f"{self.url}{path}", data=data, method=method, headers={**kind, **(headers or {})})
        try:
            with urlopen(asked, timeout=60) as answer:
                status, text, its = answer.status, answer.read(), answer.headers
        except HTTPError as error:
            with error:
                status, text, its = error.code, error.read(), error.headers
        return status, json.loads(text) if its.get_content_type() == "application/json" else text.decode()


@contextmanager
def serving(cluster: Cluster, listener: str = "http://127.0.0.1:0", **settings: str) -> Iterator[Service]:
    properties = {
        "bootstrap.servers": cluster.bootstrap, "engine.data.dir": str(cluster.folder), "engine.linger.ms": "300",
        **{key.replace("_", "."): value for key, value in settings.items()},
    }  # fmt: skip
    task = {"driver": FAKE, "listener": listener, "properties": properties}
    process = subprocess.Popen(
        [sys.executable, "-P", SERVING, json.dumps(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("barnabas engine accepts connections on "), f"the service said {line!r}"
        yield Service(process, line.split()[-1])
    finally:
        process.terminate()
        process.communicate(timeout=60)
