"""The settings of a client, with Kafka's names, and with Kafka's defaults where they are good for raw batches.

Ugly: settings of the Java client without a meaning here (deserializers, poll sizes) are accepted and ignored, because pipelines
pass on every option that begins with `kafka.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.client.bearer import source_from
from barnabas.client.interruption import Interruption
from barnabas.client.kerberos import GSSAPI, tickets_from
from barnabas.client.sasl import MECHANISMS, OAUTHBEARER, Credentials
from barnabas.config import jaas
from barnabas.config.listeners import PROTOCOLS, has_tls
from barnabas.digits import is_number
from barnabas.errors import ConfigError
from barnabas.tls.client import ClientTls, MakeContext
from barnabas.tls.settings import client_settings

Address = tuple[str, int]  # host and port
MAX_RESPONSE_BYTES = 256 << 20  # a larger frame from a broker is refused before memory is allocated
DEFAULT_FETCH_BYTES = 8 << 20  # decoding 8 MB at once is 1.5 times as fast as decoding 1 MB at once


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Addresses, timeouts and security settings of a client.

    Args:
        bootstrap_servers: `host:port` pairs.
        request_timeout_ms: the limit for one request, from its first byte sent to the last byte received.
        default_api_timeout_ms: the limit for a whole operation with its retries. `from_options` lets no request or connection wait
            longer.
        retry_backoff_ms, retry_backoff_max_ms: the wait before a retry; it doubles up to the maximum.
        fetch_bytes: the maximum bytes of one partition in a response (but a larger first batch is returned too).
        tls: the TLS context of connections; None for unencrypted connections.
        credentials: the credentials for protocols with SASL.
        interruption: ends the operations of a blocking client from another thread.
    """

    bootstrap_servers: tuple[Address, ...]
    client_id: str = "barnabas"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    socket_connection_setup_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    receive_buffer_bytes: int = -1
    read_committed: bool = False
    tls: MakeContext | None = None
    credentials: Credentials | None = None
    interruption: Interruption | None = field(default=None, compare=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ClientConfig:
        """The settings in `options`, by Kafka's names; unknown names are ignored.

        Raises:
            ConfigError: an invalid value.
        """
        security_protocol = _security(options.get("security.protocol", "PLAINTEXT"))
        whole_ms = _integer(options, "default.api.timeout.ms", 60_000)
        longest_ms = max(whole_ms, 1)  # one step of an operation waits no longer than the whole; 0 would mean no limit
        return cls(
            bootstrap_servers=parse_servers(options.get("bootstrap.servers", "")),
            client_id=options.get("client.id", "barnabas"),
            request_timeout_ms=min(_integer(options, "request.timeout.ms", 30_000), longest_ms),
            default_api_timeout_ms=whole_ms,
            socket_connection_setup_timeout_ms=min(_integer(options, "socket.connection.setup.timeout.ms", 10_000), longest_ms),
            retry_backoff_ms=_integer(options, "retry.backoff.ms", 100),
            retry_backoff_max_ms=_integer(options, "retry.backoff.max.ms", 1_000),
            metadata_max_age_ms=_integer(options, "metadata.max.age.ms", 300_000),
            fetch_bytes=_integer(options, "max.partition.fetch.bytes", DEFAULT_FETCH_BYTES, at_least=1),
            fetch_min_bytes=_integer(options, "fetch.min.bytes", 1),
            fetch_max_wait_ms=_integer(options, "fetch.max.wait.ms", 500),
            receive_buffer_bytes=_integer(options, "receive.buffer.bytes", -1, at_least=-1),
            read_committed=_isolation(options.get("isolation.level", "read_uncommitted")),
            tls=ClientTls(client_settings(options)) if has_tls(security_protocol) else None,
            credentials=credentials_from(options),
        )


def parse_servers(text: str) -> tuple[Address, ...]:
    """`host:port` pairs from a comma-separated list; IPv6 addresses in brackets."""
    servers = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, port = item.rpartition(":")
        host = host.rpartition("://")[2].strip("[]")
        if not host or not is_number(port, 65535) or not int(port):
            raise ConfigError("bootstrap.servers", text, "host:port, separated by commas")
        servers.append((host, int(port)))
    if not servers:
        raise ConfigError("bootstrap.servers", text, "at least one host:port")
    return tuple(servers)


def _integer(options: Mapping[str, str], key: str, default: int, at_least: int = 0) -> int:
    value = options.get(key)
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ConfigError(key, value, "an integer") from None
    if not at_least <= number < 2**31:
        raise ConfigError(key, value, f"an integer of {at_least} or more, below 2147483648")
    return number


def _isolation(value: str) -> bool:
    if value not in {"read_committed", "read_uncommitted"}:
        raise ConfigError("isolation.level", value, "read_committed or read_uncommitted")
    return value == "read_committed"


def _security(value: str) -> str:
    if value.upper() not in PROTOCOLS:
        raise ConfigError("security.protocol", value, f"one of {', '.join(PROTOCOLS)}")
    return value.upper()


def credentials_from(options: Mapping[str, str]) -> Credentials | None:
    """The credentials of a client, in settings of Kafka's clients or of librdkafka; None if the protocol has no SASL.

    Raises:
        ConfigError: an unsupported mechanism, or missing credentials.
    """
    if not options.get("security.protocol", "").upper().startswith("SASL_"):
        return None
    mechanism = options.get("sasl.mechanism", options.get("sasl.mechanisms", ""))
    if mechanism not in MECHANISMS:
        raise ConfigError("sasl.mechanism", mechanism, f"one of {', '.join(MECHANISMS)}")
    text = options.get("sasl.jaas.config")
    try:
        said = {} if text is None else jaas.parse(text)[0].options
    except jaas.JaasError as error:
        raise ConfigError("sasl.jaas.config", "[hidden]", str(error)) from None
    username = options.get("sasl.username", said.get("username", ""))
    password = options.get("sasl.password", said.get("password", ""))
    if mechanism == GSSAPI:
        return Credentials(mechanism, tickets=tickets_from({**said, **options}))
    if mechanism == OAUTHBEARER:
        return Credentials(mechanism, tokens=source_from({**said, **options}))
    if not username or not password:
        raise ConfigError("sasl.username", username, "a user with sasl.password, or both in sasl.jaas.config")
    return Credentials(mechanism, username, password, by_token=said.get("tokenauth", "").lower() == "true")
