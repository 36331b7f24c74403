"""Asks a worker, and keeps its answers without what must differ: names of the worker, versions, texts of documentation, traces."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from tests.waiting import wait_until

WITHIN_S = 90.0
HIDDEN_KEYS = {"worker_id": "WORKER", "version": "VERSION", "commit": "COMMIT", "kafka_cluster_id": "CLUSTER", "trace": "TRACE",
               "documentation": "TEXT", "last_modified": "TIME"}  # fmt: skip
PACKAGE = "org.apache.kafka.connect."


class Talk:
    """A conversation with a worker.

    Args:
        url: of the worker.
        version: that it tells of its plug-ins.
    """

    def __init__(self, url: str, version: str) -> None:
        self._url, self._version = url, version
        self.answers: dict[str, dict[str, Any]] = {}

    def ask(
        self, step: str, method: str, path: str, body: Any = None, *, raw: bytes | None = None, kind: str = "application/json"
    ) -> None:
        """Ask, and keep the answer under the name of the step."""
        assert step not in self.answers, step
        self.answers[step] = self._answer(method, path, body, raw, kind)

    def keep_errors(self, step: str) -> None:
        """Forget what a validation says of keys without errors: other steps have all of it."""
        body = self.answers[step]["body"]
        if isinstance(body, dict) and "configs" in body:
            body["configs"] = [each["value"] for each in body["configs"] if each["value"]["errors"]]

    def wait(self, path: str, condition: Callable[[Any], bool]) -> None:
        """Ask until the body of the answer is as wished."""

        def holds() -> bool:
            answer = self._answer("GET", path, None, None, "application/json")
            return bool(answer["status"] == 200 and condition(answer["body"]))

        wait_until(holds, f"{self._url}{path} does not come to it", within_s=WITHIN_S)

    def waits_for(self, name: str, state: str, tasks: list[str]) -> None:
        """Wait for the states of a connector and its tasks."""
        self.wait(
            f"/connectors/{name}/status",
            lambda found: (found["connector"]["state"], [each["state"] for each in found["tasks"]]) == (state, tasks),
        )

    def granted(self, method: str, path: str, body: Any = None) -> None:
        """Ask until it is granted."""
        wait_until(
            lambda: self._answer(method, path, body, None, "application/json")["status"] < 300,
            f"{method} {path}",
            within_s=WITHIN_S,
        )

    def _answer(self, method: str, path: str, body: Any, raw: bytes | None, kind: str) -> dict[str, Any]:
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
                status, text, headers = answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                status, text, headers = error.code, error.read(), error.headers
        location = headers.get("location")
        return {
            "status": status,
            "type": (headers.get("content-type") or "").partition(";")[0] if text else "",
            "location": location and location.removeprefix(self._url),
            "body": self._without(json.loads(text)) if text else None,
        }

    def _without(self, data: Any) -> Any:
        if isinstance(data, dict):
            return {
                key: HIDDEN_KEYS[key] if key in HIDDEN_KEYS and value is not None else self._value(key, value)
                for key, value in data.items()
            }
        if isinstance(data, list):
            return [self._without(each) for each in data]
        return data.replace(self._version, "VERSION") if isinstance(data, str) else data

    def _value(self, key: str, value: Any) -> Any:
        if key in HIDDEN_KEYS and (value is not None or key == "version"):  # a worker forgets the version of what restarts
            return HIDDEN_KEYS[key]
        if key == "recommended_values" and any(str(each).startswith(PACKAGE) for each in value):
            return ["CLASSES"]  # which plug-ins there are is another matter
        return self._without(value)
