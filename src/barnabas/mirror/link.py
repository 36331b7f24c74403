"""The settings of a link, parsed, and the decision which topics of the source it copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from msgspec import Struct

from barnabas.client.config import ClientConfig
from barnabas.config import definitions

LEAST_FETCH_BYTES = 128 << 10  # of one answer: on a slow line it must not take longer than the timeout
FIRST_FETCH_BYTES = 1 << 20
MOST_FETCH_BYTES = 48 << 20  # below fetch.max.bytes of brokers; an answer is appended while it arrives, so it needs no memory
PATTERN_KEYS = (
    "topics",
    "topics.exclude",
    "groups",
    "groups.exclude",
    "acls.principals",
    "acls.principals.exclude",
    "users.exclude",
)
CLIENT_KEYS = ("bootstrap.servers", "security.protocol")
SCHEMAS_TOPIC = "_schemas"  # of schema registries
CLIENT_PREFIXES = ("sasl.", "ssl.")


Matcher = Callable[[str], bool]  # whether a name matches a pattern as a whole


class Link(Struct, frozen=True):
    """A link.

    Args:
        settings: as stored.
        values: parsed, with defaults.
        patterns: match topics and groups of the source, by key.
    """

    name: str
    settings: Mapping[str, str]
    values: dict[str, Any]
    patterns: Mapping[str, tuple[Matcher, ...]]

    @classmethod
    def of(cls, name: str, settings: Mapping[str, str], compile_pattern: Callable[[str], Matcher]) -> Self:
        """The link with these settings, which were checked when they were stored; raises as `compile_pattern`."""
        values: dict[str, Any] = {
            key.name: key.read(settings[key.name]) if key.name in settings else key.default for key in definitions.LINK.values()
        }
        patterns = {key: tuple(map(compile_pattern, values[key])) for key in PATTERN_KEYS}
        return cls(name, settings, values, patterns)

    @property
    def is_paused(self) -> bool:
        return bool(self.values["paused"])

    @property
    def refresh_s(self) -> int:
        return int(self.values["refresh.topics.interval.seconds"])

    def copies(self, topic: str) -> bool:
        """Whether the link copies a topic of the source. Schemas are copied by choice, whatever the patterns say."""
        return bool(self.values["sync.schemas.enabled"]) if topic == SCHEMAS_TOPIC else self._takes("topics", topic)

    def copies_group(self, group: str) -> bool:
        """Whether the link copies the offsets of a group of this name."""
        return self._takes("groups", group)

    def copies_acls_of(self, principal: str) -> bool:
        """Whether the link copies ACLs of a principal, such as User:alice."""
        return self._takes("acls.principals", principal)

    def copies_user(self, user: str) -> bool:
        """Whether the link copies a SCRAM user."""
        return not any(matches(user) for matches in self.patterns["users.exclude"])

    @property
    def prefix(self) -> str:
        """The beginning of the names of the copies."""
        return str(self.values["cluster.link.prefix"])

    def local_name(self, topic: str) -> str:
        """The name of the copy of a topic of the source."""
        return self.prefix + topic

    def source_name(self, copy: str) -> str:
        """The name in the source of a copy."""
        return copy.removeprefix(self.prefix)

    def _takes(self, key: str, name: str) -> bool:
        is_excluded = any(matches(name) for matches in self.patterns[f"{key}.exclude"])
        return not is_excluded and any(matches(name) for matches in self.patterns[key])

    def client_config(self) -> ClientConfig:
        """The settings of a client of the source; raises ConfigError."""
        options = {name: text for name, text in self.settings.items() if name in CLIENT_KEYS or name.startswith(CLIENT_PREFIXES)}
        return ClientConfig.from_options(
            {
                **options,
                "client.id": f"barnabas-mirror-{self.name}",
                "default.api.timeout.ms": "10000",
                "request.timeout.ms": "10000",
                "metadata.max.age.ms": str(self.refresh_s * 1000),
                "max.partition.fetch.bytes": str(FIRST_FETCH_BYTES),
            }
        )
