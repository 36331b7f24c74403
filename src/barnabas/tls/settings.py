"""The TLS settings of one listener or one client, with the names of Kafka's Java code.

Owns the parsing of settings into `TlsSettings`; `stores` and `contexts` check files and keys. librdkafka's names for the same
settings are accepted too, because users have settings of either client.

Rule: a `TlsSettings` contains secrets, and its text shows none of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from barnabas.errors import ConfigError

PROTOCOLS = ("TLSv1.2", "TLSv1.3")  # older versions are insecure, and refused
HIDDEN = "[hidden]"


class ClientAuth(enum.Enum):
    """Whether a server requests a client's certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The attributes are Kafka's keys without `ssl.`; None where a key is unset.

    Args:
        prefix: the text before `ssl.` in the names of the keys, for messages.
    """

    prefix: str = ""
    keystore_type: str | None = None
    keystore_location: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = None
    key_password: str | None = field(default=None, repr=False)
    key_location: str | None = None  # librdkafka: a separate file with the private key
    certificate_location: str | None = None  # librdkafka: a separate file with the certificate chain
    truststore_type: str | None = None
    truststore_location: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    enabled_protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    check_host_name: bool = True  # False if ssl.endpoint.identification.algorithm is empty
    verify: bool = True  # librdkafka: enable.ssl.certificate.verification

    def __post_init__(self) -> None:
        for protocol in self.enabled_protocols:
            if protocol not in PROTOCOLS:
                allowed = f"{' and '.join(PROTOCOLS)}; older versions are not safe"
                raise ConfigError(self.key("enabled.protocols"), ",".join(self.enabled_protocols), allowed)
        if not self.enabled_protocols:
            raise ConfigError(self.key("enabled.protocols"), "", f"one of {', '.join(PROTOCOLS)} at least")

    def key(self, name: str) -> str:
        """The name of a key for messages."""
        return f"{self.prefix}ssl.{name}"

    @property
    def files(self) -> tuple[str, ...]:
        """All files that the settings name."""
        named = (self.keystore_location, self.key_location, self.certificate_location, self.truststore_location)
        return tuple(name for name in named if name)


TEXTS = tuple(
    item.name
    for item in fields(TlsSettings)
    if item.name not in {"prefix", "client_auth", "enabled_protocols", "cipher_suites", "check_host_name", "verify"}
)
# librdkafka's name -> Kafka's. `ssl.keystore.location` and `.password` have the same name; librdkafka's key stores are PKCS12.
OF_LIBRDKAFKA = {
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}


def server_settings(listener: str, value_of: Callable[[str], object], *, prefix: str | None = None) -> TlsSettings:
    """The settings of a broker's listener.

    Args:
        value_of: function from a key without prefix to its value on this listener.
        prefix: the text before `ssl.` in messages; by default that of the broker's listener.
    """

    def text(name: str) -> str | None:
        value = value_of(f"ssl.{name.replace('_', '.')}")
        return str(value) if value else None

    stores = {name: text(name) for name in TEXTS if name not in {"key_location", "certificate_location"}}
    protocols, suites = value_of("ssl.enabled.protocols"), value_of("ssl.cipher.suites")
    return TlsSettings(
        prefix=f"listener.name.{listener.lower()}." if prefix is None else prefix,
        **stores,  # type: ignore[arg-type]  # all values are str
        client_auth=ClientAuth(value_of("ssl.client.auth")),
        enabled_protocols=tuple(protocols) if isinstance(protocols, tuple) else PROTOCOLS,
        cipher_suites=tuple(suites) if isinstance(suites, tuple) else (),
        check_host_name=bool(value_of("ssl.endpoint.identification.algorithm")),
    )


def client_settings(options: Mapping[str, str]) -> TlsSettings:
    """The settings of a client, by the Java client's names or librdkafka's.

    Raises:
        ConfigError: an invalid value.
    """
    named = {OF_LIBRDKAFKA.get(name, name): value for name, value in options.items()}
    verification = named.get("enable.ssl.certificate.verification", "true").lower()
    if verification not in {"true", "false"}:
        raise ConfigError("enable.ssl.certificate.verification", verification, "true or false")
    stores = {name: named.get(f"ssl.{name.replace('_', '.')}") or None for name in TEXTS}
    return TlsSettings(
        **stores,  # type: ignore[arg-type]  # all values are str
        enabled_protocols=_words(named.get("ssl.enabled.protocols")) or PROTOCOLS,
        cipher_suites=_words(named.get("ssl.cipher.suites")),
        check_host_name=_identification(named.get("ssl.endpoint.identification.algorithm", "https")),
        verify=verification == "true",
    )


def _identification(text: str) -> bool:
    """Whether to check the server's name. For no check, Java has an empty text and librdkafka `none`."""
    if text.lower() not in {"", "none", "https"}:
        raise ConfigError("ssl.endpoint.identification.algorithm", text, "https, or nothing for no check")
    return text.lower() == "https"


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())
