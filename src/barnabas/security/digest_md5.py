"""The client's side of SASL DIGEST-MD5 (RFC 2831), ZooKeeper's only log-in mechanism besides Kerberos.

Owns the answer to a server's challenge, and the check that the server also knows the password. No I/O, no randomness: the nonce
is an argument. The mechanism is obsolete (RFC 6331) and does not replace TLS; brokers use it for ZooKeeper only.

Rule: an error names only the wrong part of a challenge.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import NamedTuple

_DIRECTIVE = re.compile(r'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_NONCE_COUNT = "00000001"  # each nonce is used once
QOP = "auth"  # authentication only: TLS protects the integrity and confidentiality of later messages


class BadChallenge(ValueError):
    """The server's challenge cannot be answered, or the server does not know the password."""


@dataclass(frozen=True, slots=True)
class Login:
    """The user and the target of a log-in: `uri` is `service/host`."""

    user: str
    password: str = field(repr=False)
    uri: str


class Answer(NamedTuple):
    """The response to send, and the expected reply of the server."""

    response: bytes
    expected: str


def answer(login: Login, challenge: bytes, client_nonce: str) -> Answer:
    """Raises BadChallenge."""
    said = _directives(challenge)
    if "nonce" not in said:
        raise BadChallenge("a challenge without a nonce")
    if said.get("algorithm", "md5-sess") != "md5-sess":
        raise BadChallenge("a challenge of another algorithm than md5-sess")
    if QOP not in [word.strip() for word in said.get("qop", QOP).split(",")]:
        raise BadChallenge(f"a challenge without the quality of protection {QOP!r}")
    realm, nonce = said.get("realm", ""), said["nonce"]
    secret = hashlib.md5(b":".join(map(_hashed_bytes, (login.user, realm, login.password)))).digest()
    session = hashlib.md5(secret + f":{nonce}:{client_nonce}".encode()).hexdigest()

    def proof(method: str) -> str:
        what = hashlib.md5(f"{method}:{login.uri}".encode()).hexdigest()
        return hashlib.md5(f"{session}:{nonce}:{_NONCE_COUNT}:{client_nonce}:{QOP}:{what}".encode()).hexdigest()

    quoted = {"username": login.user, "realm": realm, "nonce": nonce, "cnonce": client_nonce, "digest-uri": login.uri}
    parts = ["charset=utf-8", *(f'{name}="{_escaped(value)}"' for name, value in quoted.items())]
    parts += [f"nc={_NONCE_COUNT}", f"qop={QOP}", f"response={proof('AUTHENTICATE')}"]
    return Answer(",".join(parts).encode(), proof(""))


def check_server(expected: str, message: bytes) -> None:
    """Raises BadChallenge unless the server's last message shows that it knows the password."""
    if not hmac.compare_digest(_directives(message).get("rspauth", "").encode(), expected.encode()):
        raise BadChallenge("a server that does not know the password")


def _directives(message: bytes) -> dict[str, str]:
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise BadChallenge("a challenge that is no text") from None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        directive = _DIRECTIVE.match(text, position)
        if directive is None:
            raise BadChallenge(f"a challenge that cannot be read at character {position + 1}")
        name, quoted, word = directive.groups()
        found[name.lower()] = word if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        position = directive.end()
    return found


def _hashed_bytes(text: str) -> bytes:
    """The bytes of a text for hashes: Latin-1 if it has all characters, as the RFC requires, even if the text is sent as
    UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
