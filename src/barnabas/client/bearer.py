"""Where a client's bearer tokens come from: a file, or an identity provider that is asked with client credentials (RFC 6749, section 4.4).

Owns the asking, and the tokens of providers for as long as they are good for others.

Rules
  1. A token is had for each log-in, since a file may have been written anew; one of a provider is shown again for most of its life.
  2. `token` may block: who has an event loop calls it in a thread.
  3. No secret and no token is in an error or a `repr`. A provider that sends elsewhere is not followed, for the secret would go there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from barnabas import limits
from barnabas.client.errors import LoginFailed
from barnabas.digits import is_number
from barnabas.errors import ConfigError

URL = "sasl.oauthbearer.token.endpoint.url"
SCOPE = "sasl.oauthbearer.scope"
# By Kafka's name, by librdkafka's, and as an option of the login context, which is how Kafka said it first
CLIENT_ID = ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id", "clientId")
CLIENT_SECRET = ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret", "clientSecret")
SCOPES = (SCOPE, "scope")
CONNECT_TIMEOUT, READ_TIMEOUT = "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"
DEFAULT_TIMEOUT_MS = 10_000
SHOWN_FOR = 0.8  # of a token's life it is shown to others too, as Kafka's clients do it


class TokenSource(Protocol):
    """Where tokens come from."""

    def token(self) -> str:
        """A token; raises LoginFailed where there is none, ConnectionFailed where it is worth to ask again."""
        ...


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that holds a token, written anew by whoever renews it."""

    path: Path

    def token(self) -> str:
        """What the file holds now; raises LoginFailed."""
        try:
            text = self.path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LoginFailed(str(self.path), f"the file of the token cannot be read ({type(error).__name__})") from None
        if not text or len(text) > limits.MAX_BEARER_BYTES:
            raise LoginFailed(str(self.path), f"the file holds {len(text)} bytes, which are no token")
        return text


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """An identity provider, and what is shown to it."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def token(self) -> str:
        """A token that is good for a while; raises LoginFailed."""
        kept = _kept.get(self)
        if kept is not None and time.monotonic() < kept[1]:
            return kept[0]
        asked_s = time.monotonic()
        token, lifetime_s = _understood(self.url, self._ask())
        _kept[self] = token, asked_s + lifetime_s * SHOWN_FOR
        return token

    def _ask(self) -> bytes:
        from barnabas.client.identity_provider import ask  # loaded only by who asks one

        return ask(self.url, self.client_id, self.client_secret, self.scope, self.timeout_ms / 1000)


_kept: dict[ClientCredentials, tuple[str, float]] = {}  # tokens, and until when they are shown again


def _understood(url: str, text: bytes) -> tuple[str, float]:
    """The token in a provider's answer and the seconds that it lives, 0 if that is not said."""
    try:
        said = json.loads(text if len(text) <= limits.MAX_BEARER_BYTES else b"")
        token, lifetime_s = said["access_token"], float(said.get("expires_in", 0))
        if not isinstance(token, str) or not token:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LoginFailed(url, "the identity provider's answer holds no token") from None
    return token, lifetime_s


def source_from(options: Mapping[str, str]) -> TokenSource:
    """Where tokens come from by the names of Kafka's clients, of librdkafka, and of the options of a login context.

    Raises:
        ConfigError: nothing is named, or not enough.
    """
    url = options.get(URL, "")
    scheme = url.partition(":")[0].lower()
    if scheme == "file":
        path = Path(unquote(urlsplit(url).path))
        if not path.is_file():
            raise ConfigError(URL, url, "a file with a token")
        return TokenFile(path)
    if scheme not in {"http", "https"}:
        raise ConfigError(
            URL, url, "file:///path of a file with a token, or the address where a provider gives them (https:, http:)"
        )
    client_id, client_secret = _first(options, CLIENT_ID), _first(options, CLIENT_SECRET)
    if client_id is None or client_secret is None:
        raise ConfigError(CLIENT_ID[0], client_id or "", f"a client that the provider knows, with {CLIENT_SECRET[0]}")
    timeouts = [options[name] for name in (CONNECT_TIMEOUT, READ_TIMEOUT) if options.get(name)]
    for name in (CONNECT_TIMEOUT, READ_TIMEOUT):
        text = options.get(name) or "1"
        if not (is_number(text) and int(text)):
            raise ConfigError(name, text, "milliseconds, 1 or more")
    timeout_ms = max(map(int, timeouts), default=DEFAULT_TIMEOUT_MS)
    return ClientCredentials(url, client_id, client_secret, _first(options, SCOPES), timeout_ms)


def _first(options: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)
