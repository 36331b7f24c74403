"""Asks a service over HTTP, with the log-in that a command has for the cluster."""

from __future__ import annotations

import http.client
import json
import socket
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode, urlsplit

from barnabas.cli.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.client.config import ClientConfig


class ServiceHttp:
    """One service.

    Args:
        name: in messages, such as `the engine`.
        url: its address.
        config: of the command's client.
    """

    def __init__(self, name: str, url: str, config: ClientConfig) -> None:
        self.name, self.url, self._config = name, url.rstrip("/"), config
        self.warnings: list[str] = []  # of the last answer

    def ask(
        self, method: str, path: tuple[str, ...], query: Mapping[str, object] | None = None, body: bytes | None = None
    ) -> tuple[int, str]:
        """Status and body of an answer. Raises Failure if there is none."""
        parts = urlsplit(self.url)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        target = f"{parts.path}/{'/'.join(quote(each, safe='') for each in path)}"
        if query:
            target += f"?{urlencode(query, doseq=True)}"
        headers = self._headers(parts.scheme) | ({} if body is None else {"Content-Type": "application/json"})
        try:
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            self.warnings = [_warning(each) for each in answer.headers.get_all("warning", [])]
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            reason = "no answer in time" if isinstance(error, socket.timeout) else getattr(error, "strerror", None) or str(error)
            raise Failure(f"cannot reach {self.name} at {self.url}: {reason}") from None
        finally:
            connection.close()

    def _connection(self, scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        timeout_s = self._config.request_timeout_ms / 1000
        if scheme == "https":
            context = self._config.tls() if self._config.tls is not None else None
            return http.client.HTTPSConnection(host, port or 443, timeout=timeout_s, context=context)
        return http.client.HTTPConnection(host, port or 80, timeout=timeout_s)

    def _headers(self, scheme: str) -> dict[str, str]:
        """A password leaves this machine only within TLS, as to the brokers."""
        its = self._config.credentials
        if its is None or (scheme != "https" and self._config.tls is not None):
            return {}
        if its.tokens is not None:
            return {"Authorization": f"Bearer {its.tokens.token()}"}
        return {"Authorization": f"Basic {b64encode(f'{its.username}:{its.password}'.encode()).decode()}"}


def _warning(text: str) -> str:
    """The text of a header `Warning`: `299 barnabas "text"`."""
    quoted = text.partition('"')[2].rpartition('"')[0]
    try:
        return str(json.loads(f'"{quoted}"'))
    except ValueError:
        return quoted
