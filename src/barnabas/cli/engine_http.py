"""Asks an engine over HTTP, with the log-in that a command has for the cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.service_http import ServiceHttp

if TYPE_CHECKING:
    from barnabas.client.config import ClientConfig


class EngineHttp:
    """One engine.

    Args:
        url: its address, as it told the cluster.
        config: of the command's client.
    """

    def __init__(self, url: str, config: ClientConfig) -> None:
        self._service = ServiceHttp("the engine", url, config)

    def get(self, *path: str, **query: object) -> str:
        """The body of an answer. Raises Failure; BadInput for an answer that says so."""
        status, text = self._service.ask("GET", path, query)
        if status != 200:
            refused = BadInput if status in (400, 404) else Failure
            raise refused(f"the engine at {self._service.url} refuses: {_message(text)}")
        return text


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        return text[:200]
