"""SASL DIGEST-MD5 (RFC 2831), a client's side: the one mechanism, beside Kerberos, that ZooKeeper has for log-ins.

Owns the answer to a server's challenge, and the check that the server knows the password too. No I/O, no randomness: the nonce is an
argument. The mechanism is old (RFC 6331) and no reason to leave a connection without TLS; brokers speak it to ZooKeeper only.

Rule: no error says more than what part of a challenge is wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import NamedTuple

_DIRECTIVE = re.compile(r'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_NONCE_COUNT = "00000001"  # a nonce is used once
QOP = "auth"  # neither integrity nor secrecy of what follows: TLS is for that


class BadChallenge(ValueError):
    """The server says what cannot be answered, or does not know the password."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, and to what: `uri` is `service/host`."""

    user: str
    password: str = field(repr=False)
    uri: str


class Answer(NamedTuple):
    """What to send, and what the server must say then."""

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
    """Latin-1 where that has all characters, as the RFC wants it, also where the text is sent as UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
