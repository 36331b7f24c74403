"""A blocking client of a schema registry, for commands and for tasks that decode records.

It keeps one connection open. Names of subjects are percent-encoded in paths. Settings have confluent-kafka's names.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from barnabas import limits
from barnabas.errors import BarnabasError, ConfigError

DEFAULT_URL = "http://127.0.0.1:8081"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
SETTINGS = {
    "url",
    "basic.auth.user.info",
    "bearer.auth.token",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
}


class RegistryError(BarnabasError):
    """The registry refused a request.

    Args:
        status: the HTTP status.
        code: the registry's error code, such as 40401 for an unknown subject.
        message: the registry's text.
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.message} (error code {self.code})"


class RegistryUnreachable(BarnabasError):
    """There was no answer, or one that cannot be from a registry."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return f"cannot reach the schema registry at {self.url}: {self.reason}"


class RegistryClient:
    """Sends requests to one registry. As a context manager it closes its connection at the end. It is not thread-safe.

    Args:
        url: such as `http://127.0.0.1:8081`; of several URLs with commas, it uses the first that answers.
        settings: keys of `SETTINGS`, without `url`.
        timeout_s: the timeout of each request in seconds.
        tls: a context that replaces the one from the settings.

    Raises:
        ConfigError: a setting is unknown, or a URL is invalid.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        settings: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        given = dict(settings or {})
        for key in given:
            if key not in SETTINGS:
                raise ConfigError(key, given[key], f"one of {', '.join(sorted(SETTINGS))}")
        self.urls = [each.strip().rstrip("/") for each in url.split(",") if each.strip()]
        for each in self.urls:
            if urlsplit(each).scheme not in {"http", "https"} or not urlsplit(each).hostname:
                raise ConfigError("url", each, "a URL such as http://127.0.0.1:8081")
        if not self.urls:
            raise ConfigError("url", url, "a URL such as http://127.0.0.1:8081")
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": CONTENT_TYPE, "Accept": f"{CONTENT_TYPE}, application/json", **_log_in(given)}
        self._tls = tls or _tls_context(given) if any(each.startswith("https:") for each in self.urls) else None
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def abort(self) -> None:
        """End the request of another thread; after this, only `close` may be called."""
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def get(self, *path: object, **query: object) -> Any:
        return self.request("GET", path, query)

    def post(self, *path: object, body: Any, **query: object) -> Any:
        return self.request("POST", path, query, body)

    def put(self, *path: object, body: Any, **query: object) -> Any:
        return self.request("PUT", path, query, body)

    def delete(self, *path: object, **query: object) -> Any:
        return self.request("DELETE", path, query)

    def request(self, method: str, path: tuple[object, ...], query: Mapping[str, object], body: Any = None) -> Any:
        """The answer's JSON.

        Args:
            path: the segments of the path, not encoded.
            query: the parameters; None and False are left out, True is sent as `true`.

        Raises:
            RegistryError: the registry refused.
            RegistryUnreachable: none of the URLs gave the answer of a registry.
        """
        target = "/" + "/".join(quote(str(each), safe="") for each in path)
        given = {key: "true" if value is True else str(value) for key, value in query.items() if value not in (None, False)}
        if given:
            target += "?" + urlencode(given)
        data = None if body is None else json.dumps(body).encode()
        failed: RegistryUnreachable | None = None
        for url in list(self.urls):
            try:
                status, text = self._ask(url, method, target, data)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                failed = RegistryUnreachable(url, getattr(error, "strerror", None) or str(error) or type(error).__name__)
                self.urls = [*self.urls[1:], self.urls[0]]
                continue
            return _json_of(url, status, text)
        assert failed is not None
        raise failed

    def _ask(self, url: str, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        is_reused = self._connection is not None
        try:
            return self._ask_once(url, method, target, data)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not is_reused:
                raise
            self.close()  # the server closed the idle connection
            return self._ask_once(url, method, target, data)

    def _ask_once(self, url: str, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            parts = urlsplit(url)
            if parts.scheme == "https":
                self._connection = http.client.HTTPSConnection(parts.netloc, timeout=self._timeout_s, context=self._tls)
            else:
                self._connection = http.client.HTTPConnection(parts.netloc, timeout=self._timeout_s)
        self._connection.request(method, urlsplit(url).path + target, body=data, headers=self._headers)
        answer = self._connection.getresponse()
        text = answer.read(limits.MAX_REGISTRY_ANSWER_BYTES + 1)
        if len(text) > limits.MAX_REGISTRY_ANSWER_BYTES:
            raise http.client.HTTPException(f"the answer is longer than {limits.MAX_REGISTRY_ANSWER_BYTES} bytes")
        return answer.status, text


def _json_of(url: str, status: int, text: bytes) -> Any:
    try:
        found = json.loads(text) if text else None
    except ValueError:
        found = text.decode(errors="replace") if status == http.client.OK else None
    if status < http.client.BAD_REQUEST:
        return found
    if isinstance(found, dict) and "message" in found:
        raise RegistryError(status, int(found.get("error_code", status)), str(found["message"]))
    if status == http.client.UNAUTHORIZED:
        raise RegistryError(status, status, "the registry wants a user and a password")
    raise RegistryUnreachable(url, f"it answered with status {status}, not as a schema registry does")


def _log_in(settings: Mapping[str, str]) -> dict[str, str]:
    user_info, token = settings.get("basic.auth.user.info"), settings.get("bearer.auth.token")
    if user_info is not None and token is not None:
        raise ConfigError("bearer.auth.token", "...", "not set beside basic.auth.user.info")
    if user_info is not None:
        return {"Authorization": "Basic " + b64encode(user_info.encode()).decode()}
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def _tls_context(settings: Mapping[str, str]) -> ssl.SSLContext:
    key = "ssl.ca.location"
    try:
        context = ssl.create_default_context(cafile=settings.get(key))
        certificate = settings.get("ssl.certificate.location")
        if certificate is not None:
            key = "ssl.certificate.location"
            context.load_cert_chain(certificate, settings.get("ssl.key.location"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(key, settings.get(key, ""), f"a PEM file that can be read ({error.strerror or error})") from error
    return context
