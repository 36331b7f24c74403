"""Checks of values that have a syntax of their own."""

from __future__ import annotations

import re

from barnabas.config import jaas
from barnabas.config.config_key import Value
from barnabas.digits import is_number
from barnabas.errors import ConfigError

REPLICA = r"\d+:\d+"
REPLICAS_ALLOWED = (
    "must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
RESET_ALLOWED = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
REGISTRY_URL = r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/:?#\[\]]+)(:\d{1,5})?(/[^\s?#]*)?"
DURATION = r"by_duration:[pP](?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d{1,9})?S)?)?"


class Replicas:
    """`*`, or a list of partition:broker."""

    def __call__(self, key: str, value: Value) -> None:
        assert isinstance(value, tuple)
        if value not in {(), ("*",)} and not all(re.fullmatch(REPLICA, word) for word in value):
            raise ConfigError(key, f"[{', '.join(value)}]", f"{key} {REPLICAS_ALLOWED}")

    def __str__(self) -> str:
        return "*, or partition:broker, ..."


class OffsetReset:
    """The start position of a share group: a word, or a duration before now (ISO 8601)."""

    def __call__(self, key: str, value: Value) -> None:
        text = str(value)
        if text not in {"latest", "earliest"} and not re.fullmatch(DURATION, text, re.IGNORECASE):
            raise ConfigError(key, text, f"Invalid value `{text}` for configuration {key}. {RESET_ALLOWED}")

    def __str__(self) -> str:
        return "latest, earliest, by_duration:PnDTnHnMn.nS"


class LoginContexts:
    """JAAS syntax; errors do not show the text, since it contains passwords."""

    def __call__(self, key: str, value: Value) -> None:
        if value is None:
            return
        try:
            jaas.parse(str(value))
        except jaas.JaasError as error:
            raise ConfigError(key, "[hidden]", str(error)) from None

    def __str__(self) -> str:
        return "login contexts in JAAS syntax"


class Digest:
    """user:password; errors do not show it."""

    def __call__(self, key: str, value: Value) -> None:
        user, _, password = str(value).partition(":")
        if value is not None and not (user and password):
            raise ConfigError(key, "[hidden]", "user:password")

    def __str__(self) -> str:
        return "user:password"


class RegistryUrls:
    """URLs without a user and a password. Another setting has these, and nothing shows its value."""

    def __call__(self, key: str, value: Value) -> None:
        assert isinstance(value, tuple)
        for url in value:
            if "@" in url:
                raise ConfigError(key, url.rpartition("@")[2], "URLs without a user, whom confluent.basic.auth.user.info names")
            if not re.fullmatch(REGISTRY_URL, url):
                raise ConfigError(key, url, "URLs such as http://127.0.0.1:8081")

    def __str__(self) -> str:
        return "URLs of http or https"


class Patterns:
    """Regular expressions."""

    def __call__(self, key: str, value: Value) -> None:
        assert isinstance(value, tuple)
        for pattern in value:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ConfigError(key, pattern, f"a regular expression ({error})") from None

    def __str__(self) -> str:
        return "regular expressions"


class Ends:
    """End offsets of partitions, as partition:offset."""

    def __call__(self, key: str, value: Value) -> None:
        assert isinstance(value, tuple)
        for word in value:
            partition, _, offset = word.partition(":")
            if not is_number(partition) or not is_number(offset):
                raise ConfigError(key, word, str(self))

    def __str__(self) -> str:
        return "partition:offset, ..."


class TopicPrefix:
    """The beginning of a topic's name."""

    def __call__(self, key: str, value: Value) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9._-]{0,100}", str(value)) or str(value).startswith("__"):
            raise ConfigError(key, str(value), str(self))

    def __str__(self) -> str:
        return "at most 100 letters, digits, dots, underscores and hyphens, without __ at the beginning"


class Servers:
    """Addresses as host:port."""

    def __call__(self, key: str, value: Value) -> None:
        assert isinstance(value, tuple)
        for server in value:
            host, _, port = server.rpartition(":")
            if not host or not is_number(port, 65535) or not int(port):
                raise ConfigError(key, server, "host:port")

    def __str__(self) -> str:
        return "host:port, ..."
