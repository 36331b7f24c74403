"""The settings of the services: shows them without secrets, reads those of the host itself, and finds those that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.tls.settings import HIDDEN

INIT_TIMEOUT = "kafkastore.init.timeout.ms"  # the same name as in Confluent's registry
INIT_TIMEOUT_MS = 60_000
SECRET_WORDS = ("password", "secret", "jaas", "credential", "token", "user.info", "ssl.key.pem", "keystore.key")
PLAIN_ENDINGS = (".location", ".type", ".url", ".file")
OF_CONNECTIONS = ("ssl.", "sasl.", "listener.ssl.")  # settings of one kind of connection; another kind may be configured too
ELSEWHERE = {  # settings of Confluent's registry -> the equivalent here
    "kafkastore.bootstrap.servers": "--bootstrap-server",
    "kafkastore.security.protocol": "security.protocol",
    "mode.mutability": "ACLs of the cluster on topics",
    "listeners": "--listener",
    "resource.extension.class": "ACLs of the cluster on topics",
    "confluent.schema.registry.authorizer.class": "ACLs of the cluster on topics",
    "avro.compatibility.level": "schema.compatibility.level",
}
WITHOUT_PREFIX = ("kafkastore.ssl.", "kafkastore.sasl.")


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings, with every value hidden that may be a secret."""
    return {key: HIDDEN if is_secret(key) else value for key, value in sorted(settings.items())}


def is_secret(key: str) -> bool:
    """Whether the value of a key may be a secret, by its name."""
    return any(word in key for word in SECRET_WORDS) and not key.endswith(PLAIN_ENDINGS)


def init_timeout_s(settings: Mapping[str, str]) -> float:
    """The seconds that the services wait for the cluster at their start; raises ConfigError."""
    text = settings.get(INIT_TIMEOUT, str(INIT_TIMEOUT_MS))
    if not is_number(text, 2**31 - 1):
        raise ConfigError(INIT_TIMEOUT, text, "a number of milliseconds")
    return int(text) / 1000


class NotedSettings(Mapping[str, str]):
    """Settings that record which keys were read. Raises ConfigError for a key that has another name here."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        for key in settings:
            instead = key.removeprefix("kafkastore.") if key.startswith(WITHOUT_PREFIX) else ELSEWHERE.get(key)
            if instead is not None:
                raise ConfigError(key, HIDDEN if is_secret(key) else settings[key], f"not set here; use {instead}")
        self._settings, self._asked = dict(settings), set[str]()

    def __getitem__(self, key: str) -> str:
        self._asked.add(key)
        return self._settings[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def unused(self) -> list[str]:
        """The keys that were not read, except those of connections that are not used."""
        return sorted(key for key in self._settings.keys() - self._asked if not key.startswith(OF_CONNECTIONS))
