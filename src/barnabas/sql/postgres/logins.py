"""Log-ins that the cluster checks: by password, and by SCRAM without ever seeing the password.

The cluster hides the credentials of its users, so this server cannot check a proof of SCRAM itself. Two ways are left, and each gives
the session the caller's own rights:

- `Passwords` asks for the password (over TLS, or on this machine), and logs in to a broker with it. Every connection of the session
  logs in so. It works with every cluster and every mechanism of passwords.
- `RelayedScram` relays the four messages of SCRAM-SHA-256 between the client and a broker, since Postgres' SCRAM and Kafka's are the
  same RFC 7677. The broker checks the proof, and its own proof goes back to the client. The password is never seen, so the further
  connections of the session need something else: over the connection that is now logged in, the server makes a delegation token
  (KIP-48) of the user, and the session logs in with it. Sessions of a user share a token, and end before it does (`relayed_scram.py`).

Clients but asyncpg name no user in their messages, and sign them so. barnabas' brokers take the name from the authorization id then
(`security/scram.py`). Apache Kafka's brokers do not: against them, use `Passwords`.

Rules
  1. To the broker all callers have this server's address, so a guesser is delayed here (`security/penalties.py`).
  2. A refusal says the same for an unknown user and for a wrong password.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.client.connection import Connection
from barnabas.client.errors import ClientError, LoginFailed
from barnabas.client.sasl import Credentials, password_mechanism
from barnabas.errors import ConfigError
from barnabas.security.penalties import Penalties, Source
from barnabas.sql.postgres.answers import CLEARTEXT
from barnabas.sql.postgres.authentication import LoggedIn, Login
from barnabas.sql.postgres.messages import Fatal, decoded

logger = logging.getLogger(__name__)
CREDENTIALS = frozenset({"sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password", "sasl.jaas.config"})


class LoginRefused(Exception):
    """The cluster does not believe a caller."""


class Gate:
    """Admits few log-ins at once, and delays the failures of an address. For any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(limits.MAX_SERVICE_LOGINS_AT_ONCE)
        self._penalties = Penalties(
            limits.SERVICE_LOGIN_DELAY_MS, max_hosts=limits.MAX_SERVICE_LOGINS, max_waiting=limits.MAX_WAITING_LOGINS
        )

    @contextmanager
    def passing(self, login: Login, *, proves: bool = True) -> Iterator[None]:
        """Around one check. A LoginRefused becomes Fatal 28P01, after a delay. Raises Fatal 53300 if too many wait.

        Args:
            proves: whether the user is known at its address from then on.
        """
        user = login.startup.user
        with self._lock:
            source = self._penalties.source(login.address, user)
        self._wait(source)
        try:
            with self._turns:
                yield
        except LoginRefused as error:
            logger.info("event=postgres-login-refused user=%r reason=%r", user, str(error))
            with self._lock:
                delay_ms = self._penalties.delay_ms(source, _now_ms())
            time.sleep(delay_ms / 1000)
            raise Fatal("28P01", f'password authentication failed for user "{user}"') from None
        if proves:
            with self._lock:
                self._penalties.logged_in(login.address, user)

    def _wait(self, source: Source) -> None:
        with self._lock:
            wait_ms = self._penalties.wait_ms(source, _now_ms())
            if wait_ms and not self._penalties.begin_wait(source):
                raise Fatal("53300", "too many log-ins of this address wait")
        if wait_ms:
            time.sleep(wait_ms / 1000)
            with self._lock:
                self._penalties.end_wait(source)


class Passwords:
    """Asks for the password, and lets the cluster check it.

    Args:
        settings: of the server's own client, with `bootstrap.servers` and a `security.protocol` that has SASL; see also
            `client/sasl.py: password_mechanism`.

    Raises:
        ConfigError: the cluster cannot check log-ins.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings, self._config = settings, sasl_config(settings)
        self._mechanism = password_mechanism(settings, self._config.credentials)
        self._gate = Gate()

    def log_in(self, login: Login) -> LoggedIn:
        """Raises Fatal: 28000 where the password would be readable on its way, 28P01, 08006 if the cluster does not answer."""
        if not login.is_encrypted and not _is_local(login.address):
            raise Fatal("28000", "a log-in by password needs TLS", hint="Connect with sslmode=require.")
        user, password = login.startup.user, decoded(login.ask(CLEARTEXT).rstrip(b"\0"))
        with self._gate.passing(login):
            if not password:
                raise LoginRefused("an empty password")
            connect(replace(self._config, credentials=Credentials(self._mechanism, user, password))).close()
        own = {"sasl.mechanism": self._mechanism, "sasl.username": user, "sasl.password": password}
        return LoggedIn(login.caller(settings={**without_credentials(self._settings), **own}))


def sasl_config(settings: Mapping[str, str]) -> ClientConfig:
    """The server's client. Raises ConfigError if its protocol has no SASL."""
    config = ClientConfig.from_options(settings)
    if config.credentials is None:
        protocol = settings.get("security.protocol", "PLAINTEXT")
        raise ConfigError("security.protocol", protocol, "SASL_SSL or SASL_PLAINTEXT, by which the cluster checks callers")
    return config


def without_credentials(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client but for its log-in."""
    return {name: value for name, value in settings.items() if name not in CREDENTIALS}


def connect(config: ClientConfig) -> Connection:
    """A connection to the first broker that answers. Raises LoginRefused, and Fatal 08006."""
    for address in config.bootstrap_servers:
        try:
            return Connection(address, config)
        except LoginFailed as error:
            raise LoginRefused(str(error)) from None
        except ClientError as error:
            logger.warning("event=postgres-login-unchecked error=%r", str(error))
    raise Fatal("08006", "the cluster cannot be asked about this log-in")


def _is_local(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _now_ms() -> float:
    return time.monotonic() * 1000
