"""SCRAM between a Postgres client and a broker, relayed; see `logins.py`.

Each log-in asks the cluster for a token of the user, and makes one only if none is good enough. So tokens do not pile up when the
server starts again, several servers share them, and a token that its user has ended is not used any more. A token for sessions names
its owner as the only renewer: this gives nobody a right, and tells it from the tokens that the user has for other ends.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError
from barnabas.client.plans import Call
from barnabas.config.jaas import quote
from barnabas.error_codes import ErrorCode
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.security.scram import UNNAMED
from barnabas.security.tokens import USER
from barnabas.sql.postgres.answers import SASL, SASL_CONTINUE, SASL_FINAL
from barnabas.sql.postgres.authentication import LoggedIn, Login
from barnabas.sql.postgres.logins import Gate, LoginRefused, connect, sasl_config, without_credentials
from barnabas.sql.postgres.messages import Fatal, decoded, parse_sasl_start

MECHANISM = "SCRAM-SHA-256"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
MARGIN_S = 60.0  # of a session before the end of its token
TOKEN_LIFETIME_MS = 24 * 3600 * 1000  # Kafka's delegation.token.expiry.time.ms


class _Token(NamedTuple):
    name: str
    hmac: bytes
    ends_ms: int  # by the cluster's clock


class RelayedScram:
    """Lets a broker check the client's proof, and gives the session a delegation token.

    Args:
        settings: of the server's own client, with `bootstrap.servers` and a `security.protocol` that has SASL.

    Raises:
        ConfigError: the cluster cannot check log-ins.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._config = replace(sasl_config(settings), credentials=None)
        self._gate = Gate()

    def log_in(self, login: Login) -> LoggedIn:
        """Raises Fatal: 28P01, 28000 if the cluster makes no tokens, 08006 if it does not answer, 08P01 for another message."""
        mechanism, first = parse_sasl_start(login.ask(SASL, f"{MECHANISM}\0\0".encode()))
        if mechanism != MECHANISM:
            raise Fatal("08P01", "client selected an invalid SASL authentication mechanism")
        user = login.startup.user
        message = relayed(decoded(first), user)
        with self._gate.passing(login, proves=False):
            connection = connect(self._config)
        try:
            with self._gate.passing(login, proves=False):
                _ask(connection, SaslHandshakeRequest(mechanism=MECHANISM))
                second = _authenticate(connection, message)
            third = login.ask(SASL_CONTINUE, second)
            with self._gate.passing(login):
                last = _authenticate(connection, third)
            token = _token(connection, user)
        except ClientError:
            raise Fatal("08006", "the cluster cannot be asked about this log-in") from None
        finally:
            connection.close()
        login.tell(SASL_FINAL, last)
        caller = login.caller(settings={**without_credentials(self._settings), **_settings_of(token)})
        return LoggedIn(caller, token.ends_ms / 1000 - time.time() - MARGIN_S)


def _token(connection: Connection, user: str) -> _Token:
    """A token for sessions of the user, over a connection that is logged in as the user. Raises Fatal."""
    owner = DescribeDelegationTokenOwner(principal_type=USER, principal_name=user)
    known = _with_tokens(connection, DescribeDelegationTokenRequest(owners=[owner])).tokens
    found = max((each for each in known if _is_for_sessions(each, user)), key=lambda each: each.expiry_timestamp, default=None)
    if found is not None:
        return _Token(found.token_id, bytes(found.hmac), found.expiry_timestamp)
    renewers = [CreatableRenewers(principal_type=USER, principal_name=user)]
    made = _with_tokens(connection, CreateDelegationTokenRequest(max_lifetime_ms=TOKEN_LIFETIME_MS, renewers=renewers))
    return _Token(made.token_id, bytes(made.hmac), made.expiry_timestamp_ms)


def _is_for_sessions(token: DescribedDelegationToken, user: str) -> bool:
    """Whether the token was made by `_token` for this user, and half of its life at least is left."""
    middle_ms = (token.issue_timestamp + token.expiry_timestamp) / 2
    renewers = [(each.principal_type, each.principal_name) for each in token.renewers]
    return (
        (token.principal_type, token.principal_name) == (USER, user)
        and renewers == [(USER, user)]
        and time.time() * 1000 < middle_ms
    )


def _with_tokens(connection: Connection, request: Any) -> Any:
    """The answer to a request about tokens. Raises Fatal 28000."""
    answer = _answer(connection, request)
    if answer.error_code:
        code = ErrorCode(answer.error_code).name
        raise Fatal(
            "28000", f"the cluster gives no delegation token ({code}), which a log-in by SCRAM needs",
            hint="Set delegation.token.secret.key on the brokers, or let clients log in by password.",
        )  # fmt: skip
    return answer


def relayed(first: str, user: str) -> str:
    """The client's first message as the broker takes it. Raises Fatal 08P01 for one with channel binding or another user's name."""
    flag, authorization, bare = (*first.split(",", 2), "", "")[:3]
    if flag not in ("n", "y") or authorization:
        raise Fatal(
            "08P01", "malformed SCRAM message", detail="The server offers no channel binding and takes no authorization id."
        )
    named, escaped = bare.partition(",")[0], user.replace("=", "=3D").replace(",", "=2C")
    if named == f"n={escaped}":
        return first
    if named not in {f"n={each}" for each in UNNAMED}:
        raise Fatal("28000", "the user of the SCRAM message is not that of the startup packet")
    return f"{flag},a={escaped},{bare}"


def _authenticate(connection: Connection, message: bytes | str) -> bytes:
    data = message if isinstance(message, bytes) else message.encode()
    return bytes(_ask(connection, SaslAuthenticateRequest(auth_bytes=data)).auth_bytes)


def _ask(connection: Connection, request: Any) -> Any:
    answer = _answer(connection, request)
    if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise Fatal("28000", f"the cluster does not accept {MECHANISM}")
    if answer.error_code:
        raise LoginRefused(getattr(answer, "error_message", None) or f"error code {answer.error_code}")
    return answer


def _answer(connection: Connection, request: Any) -> Any:
    connection.send(Call(request))
    return connection.receive()


def _settings_of(token: _Token) -> dict[str, str]:
    password = b64encode(token.hmac).decode()
    login = f'{MODULE} required username={quote(token.name)} password={quote(password)} tokenauth="true";'
    return {"sasl.mechanism": MECHANISM, "sasl.jaas.config": login}
