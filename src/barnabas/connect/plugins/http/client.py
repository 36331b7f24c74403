"""Sends requests with the library urllib3: open connections, log-in, a limit of the rate, and the answers that may be tried again."""

from __future__ import annotations

import base64
import json
import random
import threading
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError

from barnabas.connect.errors import ConnectError, RetriableError

MOST_BYTES = 64 << 20  # of an answer
LONGEST_PAUSE_S = 60.0
EARLY_S = 10.0  # a token is renewed before it ends
_REDIRECTS = urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=5)


class Request(NamedTuple):
    """A request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class Answer(NamedTuple):
    """An answer, whatever its code, unless it may be tried again."""

    status: int
    reason: str
    headers: Mapping[str, str]
    data: bytes


class RefusedForNow(RetriableError):
    """The server answers with a code after which a request may be tried again.

    Args:
        status: the code.
    """

    def __init__(self, text: str, status: int, *, after_s: float | None = None) -> None:
        super().__init__(text, after_s=after_s)
        self.status = status

    @property
    def is_of_request(self) -> bool:
        """Whether the code blames the request, not the server or the moment."""
        return 400 <= self.status < 500 and self.status not in {401, 403, 408, 425, 429}


class Client:
    """The requests of one task.

    Args:
        config: parsed with the keys of `settings.py`.
        codes: of answers that may be tried again.
        connections: that are kept open; so many threads may send at once.
    """

    def __init__(
        self, config: Mapping[str, Any], codes: frozenset[int], headers: Mapping[str, str], connections: int = 1
    ) -> None:
        timeout_s = config["http.timeout.ms"] / 1000
        ca = {"ca_certs": config["ssl.ca.location"]} if config["ssl.ca.location"] else {}
        self._pool = urllib3.PoolManager(timeout=timeout_s, retries=_REDIRECTS, maxsize=connections, **ca)
        self._config, self._codes, self._headers = config, codes, headers
        rate = config["requests.per.second"]
        self._gap_s = 1 / rate if rate > 0 else 0.0
        self._next_s = 0.0
        self._lock = threading.Lock()
        self._token: tuple[str, float] | None = None

    def delay_s(self) -> float:
        """How long the next request has to wait for the limit of the rate."""
        return max(0.0, self._next_s - time.monotonic())

    def turn_s(self) -> float:
        """How long a thread has to wait before it sends. Its turn is taken."""
        with self._lock:
            now_s = time.monotonic()
            turn_s = max(now_s, self._next_s)
            self._next_s = turn_s + self._gap_s
            return turn_s - now_s

    def send(self, request: Request) -> Answer:
        """The answer to a request.

        Raises:
            RetriableError: the server cannot be reached, or says that it may be tried again.
            ConnectError: the log-in fails, or the answer is too large.
        """
        self._next_s = max(self._next_s, time.monotonic() + self._gap_s)
        answer = self._sent(request, self._merged(request))
        if answer.status == 401 and self._token is not None:  # it was withdrawn
            self._token = None
            answer = self._sent(request, self._merged(request))
        if answer.status in self._codes:
            told = f"{request.method} {place_of(request.url)} answers {answer.status} {answer.reason}"
            raise RefusedForNow(told, answer.status, after_s=_retry_after_s(answer.headers.get("retry-after")))
        if answer.status in {401, 403}:
            raise ConnectError(f"{request.method} {place_of(request.url)} refuses the log-in: {answer.status} {answer.reason}")
        return answer

    def _merged(self, request: Request) -> dict[str, str]:
        """The headers of a request. Those of the config go before its own, such as another content type."""
        given = {name.lower() for name in self._headers}
        own = {name: value for name, value in request.headers.items() if name.lower() not in given}
        return {**self._headers, **own, **self._authorization()}

    def _sent(self, request: Request, headers: Mapping[str, str]) -> Answer:
        try:
            found = self._pool.request(request.method, request.url, body=request.body, headers=headers, preload_content=False)
            try:
                data = found.read(MOST_BYTES + 1, decode_content=True)
            finally:
                found.release_conn()
        except (HTTPError, OSError) as error:
            raise RetriableError(f"{request.method} {place_of(request.url)} has no answer: {_reason(error)}") from None
        if len(data) > MOST_BYTES:
            found.close()
            raise ConnectError(f"{request.method} {place_of(request.url)} answers with more than {MOST_BYTES} bytes")
        lower = {name.lower(): value for name, value in found.headers.items()}
        return Answer(found.status, found.reason or "", lower, data)

    def _authorization(self) -> Mapping[str, str]:
        config = self._config
        match config["auth.type"].upper():
            case "BASIC":
                text = f"{config['connection.user'] or ''}:{_secret(config['connection.password'])}"
                return {"authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}
            case "BEARER":
                return {"authorization": f"Bearer {_secret(config['bearer.token'])}"}
            case "OAUTH2":
                with self._lock:
                    return {"authorization": f"Bearer {self._oauth_token()}"}
        return {}

    def _oauth_token(self) -> str:
        """A token by the client credentials (RFC 6749, 4.4), kept until shortly before its end."""
        if self._token is not None and time.monotonic() < self._token[1]:
            return self._token[0]
        config = self._config
        form = {
            "grant_type": "client_credentials", "client_id": config["oauth2.client.id"] or "",
            "client_secret": _secret(config["oauth2.client.secret"]),
        }  # fmt: skip
        if config["oauth2.client.scope"]:
            form["scope"] = config["oauth2.client.scope"]
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        url = config["oauth2.token.url"]
        answer = self._sent(Request("POST", url, headers, urlencode(form).encode()), headers)
        if answer.status >= 500 or answer.status == 429:
            raise RetriableError(f"the token of {place_of(url)} is not there: {answer.status} {answer.reason}")
        try:
            found = json.loads(answer.data)
            token, lasts_s = str(found[config["oauth2.token.property"]]), float(found.get("expires_in", 300))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConnectError(f"{place_of(url)} gives no token: {answer.status} {answer.reason}") from None
        self._token = token, time.monotonic() + max(lasts_s - EARLY_S, lasts_s / 2)
        return token

    def close(self) -> None:
        """Release the connections."""
        self._pool.clear()


def pause_s(tries: int, first_s: float, after_s: float | None) -> float:
    """How long to wait before another try: twice as long each time, with jitter, and not less than the server wants."""
    longest = min(first_s * 2 ** min(tries, 30), LONGEST_PAUSE_S)
    own_s: float = longest * random.uniform(0.5, 1.0)
    return max(own_s, after_s or 0.0)


def place_of(url: str) -> str:
    """A URL without what may be a secret: user, password, query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _secret(value: Any) -> str:
    return "" if value is None else str(value.value)


def _reason(error: BaseException) -> str:
    inner: Any = error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
    text = str(inner)
    return (
        text.rpartition(": ")[2]
        if isinstance(inner, urllib3.exceptions.NewConnectionError)
        else text.rpartition(">: ")[2] or text
    )


def _retry_after_s(text: str | None) -> float | None:
    """Retry-After: seconds, or a date."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
