"""One conversation with a listener that requires a log-in: its requests, their answers, and the recorded part of them.

Values that a broker makes up (nonces, salts, proofs, ids and times of tokens) become a word. Everything else is compared as it is, also the
sentences for people.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from typing import Any, NamedTuple

from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.differential.plain import plain, text_or_hex
from tests.differential.wire import ConnectionEnded, Line, api_of, framed

CLOSED = "<connection closed>"
NONCE = "made-up"
LEFT_OPEN_S = 0.5  # a connection that is still open after this time counts as left open
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MADE_UP = re.compile(r"\b([rsv])=[^,]+")
# other scripts compare these fields
ELSEWHERE = {"api_keys", "finalized_features", "supported_features", "finalized_features_epoch"}
WORDS = {"token_id": "<id>", "hmac": "<hmac>"}


class Place(NamedTuple):
    """Where a broker listens."""

    plain: tuple[str, int]
    sasl: tuple[str, int]


class Speaker:
    """A client on a connection of its own. `heard` has the recorded answers, by step."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.heard: dict[str, Any] = {}
        self._lines = [Line(place.sasl)]
        self._failed = False  # the last step failed

    @property
    def line(self) -> Line:
        return self._lines[-1]

    def reconnect(self, *, in_the_clear: bool = False) -> None:
        self._lines.append(Line(self.place.plain if in_the_clear else self.place.sasl))

    def close(self) -> None:
        for line in self._lines:
            line.close()

    def ask(self, step: str, request: Message, version: int) -> Any:
        """Send and hear; None where the connection was closed instead."""
        step = f"{api_of(request)} v{version} {step}".rstrip()
        try:
            self.line.send(request, version, by_kio=False)
            answer = self.line.receive()
        except (ConnectionEnded, ConnectionError):
            self._note(step, CLOSED)
            return None
        self._note(step, _kept(plain(answer, version)))
        return answer

    def ask_quietly(self, request: Message, version: int) -> Any:
        """As `ask`, and nothing is kept."""
        self.line.send(request, version, by_kio=False)
        return self.line.receive()

    def bare(self, step: str, token: bytes) -> bytes | None:
        """As `ask`, for a token that comes bare behind its size."""
        try:
            self.line.socket.sendall(framed(token))
            answer = self.line.receive_frame()
        except (ConnectionEnded, ConnectionError):
            self._note(f"bare {step}", CLOSED)
            return None
        self._note(f"bare {step}", MADE_UP.sub(r"\1=<made up>", text_or_hex(answer)))
        return answer

    def shake(self, mechanism: str, version: int = 1, step: str = "") -> Any:
        return self.ask(step or mechanism, SaslHandshakeRequest(mechanism=mechanism), version)

    def show(self, step: str, token: bytes, version: int = 2) -> bytes | None:
        """The bytes that are answered; None after a failure."""
        answer = self.ask(step, SaslAuthenticateRequest(auth_bytes=token), version)
        return None if answer is None or answer.error_code else bytes(answer.auth_bytes)

    def log_in(self, user: str = "alice") -> None:
        """By PLAIN, on this connection."""
        self.shake("PLAIN", step="to come in")
        self.show("to come in", f"\0{user}\0{user}".encode())

    def is_open(self, step: str) -> None:
        """After a failure, note whether the connection is still there."""
        if not self._failed:
            return
        self.line.socket.settimeout(LEFT_OPEN_S)
        try:
            is_closed = self.line.socket.recv(1) == b""
        except TimeoutError:
            is_closed = False
        except ConnectionError:
            is_closed = True
        self._note(step, CLOSED if is_closed else "<open>")

    def _note(self, step: str, value: Any) -> None:
        assert step not in self.heard, f"two steps are called {step}"
        self.heard[step] = value
        self._failed = value == CLOSED or (isinstance(value, dict) and value.get("error_code", 0) != 0)


def _kept(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {each: _kept(part, each) for each, part in value.items() if each not in ELSEWHERE}
    if name == "mechanisms":
        return sorted(value)
    if isinstance(value, list):
        return [_kept(part, name) for part in value]
    if name in WORDS:
        return WORDS[name] if value else value
    if name.endswith(("timestamp_ms", "timestamp", "lifetime_ms")) and isinstance(value, int):
        return "<time>" if value > 0 else value
    if name == "auth_bytes":
        return MADE_UP.sub(r"\1=<made up>", value)
    return value


class Scram:
    """The client's side of an exchange, that may be made wrong at each step."""

    def __init__(self, mechanism: str, user: str, password: str, *, extension: str = "") -> None:
        self._name = HASHES[mechanism]
        self._password = password
        self._bare = f"n={user},r={NONCE}{extension}"

    def first(self, header: str = "n,,") -> bytes:
        return f"{header}{self._bare}".encode()

    def final(
        self, server_first: bytes | None, *, nonce: str | None = None, binding: str = "biws", proof: bytes | None = None
    ) -> bytes:
        """The answer to the server's first message; the given values replace the right ones."""
        text = (server_first or b"").decode()
        fields = dict(part.partition("=")[::2] for part in text.split(","))
        salted = hashlib.pbkdf2_hmac(
            self._name, self._password.encode(), b64decode(fields.get("s", "")), int(fields.get("i", "4096"))
        )
        key = hmac.digest(salted, b"Client Key", self._name)
        without = f"c={binding},r={fields.get('r', '') if nonce is None else nonce}"
        signed = hmac.digest(hashlib.new(self._name, key).digest(), f"{self._bare},{text},{without}".encode(), self._name)
        right = bytes(a ^ b for a, b in zip(key, signed, strict=True))
        return f"{without},p={b64encode(right if proof is None else proof).decode()}".encode()
