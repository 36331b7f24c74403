"""The client's side of a SASL log-in: PLAIN, SCRAM (RFC 5802), OAUTHBEARER (RFC 7628) and GSSAPI (`kerberos.py`).

Owns a client's credentials, and the exchange as a generator: it yields requests, receives responses, and returns the lifetime
of the session. No I/O; the nonce is an argument.

Rules
  1. With SCRAM, the server proves that it knows the password before the client trusts it.
  2. No error text and no `repr` contains a secret.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.client.bearer import TokenSource
from barnabas.client.errors import LoginFailed
from barnabas.client.kerberos import GSSAPI, Handshake, Tickets
from barnabas.error_codes import ErrorCode, code_name
from barnabas.errors import ConfigError
from barnabas.protocol.base_message import Message
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
PASSWORDS = (PLAIN, *HASHES)  # mechanisms of a user with a password
MECHANISMS = (*PASSWORDS, OAUTHBEARER, GSSAPI)
PASSWORD_MECHANISM = "authentication.sasl.mechanism"  # a setting of services
MAX_ITERATIONS = 1_000_000  # a broker that requests more is faulty or hostile
RENEWED_AFTER = 0.85  # share of a session's lifetime until the next log-in; the minimum of Kafka's clients
Tokens = Generator[bytes, bytes, None]
Login = Generator[Message, Any, int]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a client.

    Args:
        mechanism: one of MECHANISMS.
        username: a user, or with `by_token` the id of a delegation token.
        password: the user's password, or the token's HMAC.
        tokens: the source of tokens for OAUTHBEARER.
        tickets: the source of tickets for GSSAPI.
        handshake: a begun log-in with its ticket, for GSSAPI.
    """

    mechanism: str
    username: str = ""
    password: str = field(default="", repr=False)
    by_token: bool = False
    tokens: TokenSource | None = None
    tickets: Tickets | None = None
    handshake: Handshake | None = field(default=None, repr=False)

    @property
    def come_from_elsewhere(self) -> bool:
        """Whether `at_hand` may block."""
        return self.tokens is not None or self.tickets is not None

    def at_hand(self, host: str) -> Credentials:
        """These credentials with a bearer token, or with a ticket for a broker's host, if the mechanism needs one. May block;
        raises ClientError."""
        if self.tickets is not None:
            return replace(self, handshake=self.tickets.begin(host))
        return self if self.tokens is None else replace(self, password=self.tokens.token())


def password_mechanism(settings: Mapping[str, str], own: Credentials | None) -> str:
    """The mechanism by which a service passes the passwords of its callers to the cluster. Raises ConfigError.

    Args:
        settings: of the service; without the setting, it is the mechanism of the service itself if that has passwords, else PLAIN.
        own: of the service itself.
    """
    mechanism = settings.get(PASSWORD_MECHANISM, own.mechanism if own is not None and own.mechanism in PASSWORDS else PLAIN)
    if mechanism not in PASSWORDS:
        raise ConfigError(PASSWORD_MECHANISM, mechanism, f"one of {', '.join(PASSWORDS)}")
    return mechanism


def log_in(credentials: Credentials, broker: str, nonce: str) -> Login:
    """The requests of a log-in; returns the session's lifetime in milliseconds, 0 for an unlimited session.

    Args:
        credentials: complete, from `at_hand`.
        broker: the broker's name in errors.
        nonce: random and printable, without a comma.

    Raises:
        LoginFailed: the broker refuses, or does not prove its identity.
    """
    answer = yield SaslHandshakeRequest(mechanism=credentials.mechanism)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise LoginFailed(
            broker, f"it does not accept the mechanism {credentials.mechanism}, only {', '.join(answer.mechanisms)}"
        )
    if answer.error_code:
        raise LoginFailed(broker, f"the handshake was refused ({code_name(answer.error_code)})")
    tokens = _tokens(credentials, broker, nonce)
    token = next(tokens)
    while True:
        answer = yield SaslAuthenticateRequest(auth_bytes=token)
        if answer.error_code:
            raise LoginFailed(broker, answer.error_message or code_name(answer.error_code))
        try:
            token = tokens.send(bytes(answer.auth_bytes))
        except StopIteration:
            return int(answer.session_lifetime_ms)


def _tokens(credentials: Credentials, broker: str, nonce: str) -> Tokens:
    if credentials.mechanism in HASHES:
        return _scram(credentials, broker, nonce)
    if credentials.mechanism == OAUTHBEARER:
        return _bearer(credentials)
    if credentials.handshake is not None:
        return credentials.handshake.tokens()
    return _plain(credentials)


def _plain(credentials: Credentials) -> Tokens:
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _bearer(credentials: Credentials) -> Tokens:
    answer = yield f"n,,\x01auth=Bearer {credentials.password}\x01\x01".encode()
    if answer:  # the server's answer is the reason of a refusal; the client must send this byte to end the exchange
        yield b"\x01"


def _scram(credentials: Credentials, broker: str, nonce: str) -> Tokens:
    name = HASHES[credentials.mechanism]
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={user},r={nonce}" + (",tokenauth=true" if credentials.by_token else "")
    first = (yield f"n,,{bare}".encode()).decode(errors="replace")
    fields = dict(part.partition("=")[::2] for part in first.split(","))
    try:
        salt, iterations = b64decode(fields["s"], validate=True), int(fields["i"])
        if not fields["r"].startswith(nonce) or fields["r"] == nonce or not 0 < iterations <= MAX_ITERATIONS:
            raise ValueError
    except (KeyError, ValueError):
        raise LoginFailed(broker, "its first SCRAM message is invalid") from None
    salted = hashlib.pbkdf2_hmac(name, credentials.password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    without_proof = f"c=biws,r={fields['r']}"
    auth = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(name, client_key).digest(), auth, name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    final = yield f"{without_proof},p={b64encode(proof).decode()}".encode()
    expected = b"v=" + b64encode(hmac.digest(hmac.digest(salted, b"Server Key", name), auth, name))
    if not hmac.compare_digest(final.split(b",")[0], expected):
        raise LoginFailed(broker, "it does not know the password either")
