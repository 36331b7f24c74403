"""The settings of the services as they may be shown, and those of the host itself."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.tls.settings import HIDDEN

INIT_TIMEOUT = "kafkastore.init.timeout.ms"  # Confluent's name
INIT_TIMEOUT_MS = 60_000
SECRET_WORDS = ("password", "secret", "jaas", "credential", "token", "user.info", "ssl.key.pem", "keystore.key")
PLAIN_ENDINGS = (".location", ".type", ".url", ".file")


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with every value hidden that may be a secret."""
    return {key: HIDDEN if is_secret(key) else value for key, value in sorted(settings.items())}


def is_secret(key: str) -> bool:
    """Whether the value of a key may be a secret, by its name."""
    return any(word in key for word in SECRET_WORDS) and not key.endswith(PLAIN_ENDINGS)


def init_timeout_s(settings: Mapping[str, str]) -> float:
    """How long the services wait for the cluster when they start; raises ConfigError."""
    text = settings.get(INIT_TIMEOUT, str(INIT_TIMEOUT_MS))
    if not is_number(text, 2**31 - 1):
        raise ConfigError(INIT_TIMEOUT, text, "a number of milliseconds")
    return int(text) / 1000
