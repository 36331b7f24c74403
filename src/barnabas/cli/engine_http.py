"""Asks an engine over HTTP, with the log-in that a command has for the cluster."""

from __future__ import annotations

import http.client
import json
import socket
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from barnabas.cli.errors import BadInput, Failure

if TYPE_CHECKING:
    from barnabas.client.config import ClientConfig


class EngineHttp:
    """One engine.

    Args:
        url: its address, as it told the cluster.
        config: of the command's client.
    """

    def __init__(self, url: str, config: ClientConfig) -> None:
        self._url, self._config = url, config

    def get(self, *path: str, **query: object) -> str:
        """The body of an answer. Raises Failure; BadInput for an answer that says so."""
        parts = urlsplit(self._url)
        timeout_s = self._config.request_timeout_ms / 1000
        port = parts.port or (443 if parts.scheme == "https" else 80)
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = self._config.tls() if self._config.tls is not None else None
            connection = http.client.HTTPSConnection(parts.hostname or "", port, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", port, timeout=timeout_s)
        try:
            connection.request(
                "GET",
                f"/{'/'.join(quote(each, safe='') for each in path)}?{urlencode(query)}",
                headers=self._headers(parts.scheme),
            )
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            reason = "no answer in time" if isinstance(error, socket.timeout) else getattr(error, "strerror", None) or str(error)
            raise Failure(f"cannot reach the engine at {self._url}: {reason}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise (BadInput if answer.status in (400, 404) else Failure)(f"the engine at {self._url} refuses: {_message(text)}")
        return text

    def _headers(self, scheme: str) -> dict[str, str]:
        """A password leaves this machine only within TLS, as to the brokers."""
        its = self._config.credentials
        if its is None or (scheme != "https" and self._config.tls is not None):
            return {}
        if its.tokens is not None:
            return {"Authorization": f"Bearer {its.tokens.token()}"}
        return {"Authorization": f"Basic {b64encode(f'{its.username}:{its.password}'.encode()).decode()}"}


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, TypeError, KeyError):
        return text[:200]
