"""The connection of a command to a cluster: the options that all commands share, and the clients that they configure.

Settings are librdkafka's. A file for Kafka's own tools works too: this module translates the keys that differ (JAAS text, PEM
stores). It ignores keys that only the Java client has, if they cannot change the effect of a command.

A later source wins: defaults of the command, the environment, the file, -X, --bootstrap-server.
"""

from __future__ import annotations

import functools
import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct, field

from barnabas.addresses import host_and_port
from barnabas.cli.errors import BadInput, Failure
from barnabas.cli.properties import parse_pairs, read_properties_file
from barnabas.cli.types import READABLE, TIMEOUT, Text, checked
from barnabas.error_codes import ErrorCode, code_name
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

    from barnabas.cli.wire import Wire

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_PORT = 9092
DEFAULT_TIMEOUT_S = 10.0
LAST_LOCAL_ERROR = -100  # codes up to this are librdkafka's own errors; larger codes are errors of the protocol
UNKNOWN_TO_LIBRDKAFKA = re.compile(r"Err-\d+\?")  # librdkafka's text for a code that its release does not know
JAAS_NAMES = {
    "username": "sasl.username",
    "password": "sasl.password",
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
    "serviceName": "sasl.kerberos.service.name",
    "keyTab": "sasl.kerberos.keytab",
    "principal": "sasl.kerberos.principal",
}
OAUTH = re.compile(r"sasl\.oauthbearer\..*|sasl\.login\..*")
TOKEN_SHOWN_S = 300.0  # until librdkafka requests the next token; the session's lifetime is set by the broker
IDENTIFICATION = "ssl.endpoint.identification.algorithm"  # Kafka's "" (no check) is "none" in librdkafka
JAVA_STORE = re.compile(r"ssl\.(truststore|keystore)\..*")
JAVA_ONLY = re.compile(
    r"((key|value)\.(de)?serializer|interceptor\.classes|metric.*|client\.dns\.lookup"
    r"|buffer\.memory|max\.block\.ms|default\.api\.timeout\.ms|max\.poll\.records|sasl\.jaas\.config)"
)


class Connection(Struct):
    """The address of the cluster and the client settings for it."""

    bootstrap: str
    properties: dict[str, str] = field(default_factory=dict)
    timeout_s: float = DEFAULT_TIMEOUT_S

    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of every bootstrap server.

        Raises:
            BadInput: the text is not like host:port,host:port.
        """
        return parse_addresses(self.bootstrap)

    def require_broker(self) -> None:
        """Fail at once, with the reason, if no bootstrap server accepts connections; librdkafka would retry without an end.

        Raises:
            Failure: no bootstrap server could be reached.
        """
        reasons = []
        for host, port in self.addresses():
            try:
                socket.create_connection((host, port), timeout=self.timeout_s).close()
            except OSError as error:
                reasons.append(f"{host}:{port} ({error.strerror or error})")
            else:
                return
        raise Failure(f"cannot reach {', '.join(reasons)}; is a broker running there? (`barnabas start` runs one)")

    def settings(self, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Settings for a librdkafka client; the user's settings override `extra`.

        In the dict they also come after `extra`: some settings have two names, and librdkafka uses the last one.
        """
        quiet = {} if "debug" in self.properties else {"log_level": 0}
        mine = with_tokens(self.properties)
        return {"client.id": "barnabas-cli", **quiet, **(extra or {}), **mine, "bootstrap.servers": self.bootstrap}

    def admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        self.require_broker()
        return _make(AdminClient, self.settings())

    def producer(self, extra: Mapping[str, Any]) -> Producer:
        from confluent_kafka import Producer

        self.require_broker()
        return _make(Producer, self.settings(extra))

    def consumer(self, extra: Mapping[str, Any], asked: Mapping[str, Any] | None = None) -> Consumer:
        """A copy in which the values of `asked`, which come from options of the command, override the settings."""
        from confluent_kafka import Consumer

        settings = {**self.settings(extra), **(asked or {})}
        if not settings["group.id"].strip():
            raise BadInput("the setting group.id is empty")  # librdkafka would end the process
        self.require_broker()
        return _make(Consumer, settings)

    def wire(self) -> Wire:
        """A connection for requests that librdkafka does not offer."""
        from barnabas.cli.wire import Wire

        return Wire.open_first(self)


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """Host and port of each address in host:port,host:port; raises BadInput."""
    found = [parse_address(part) for part in text.split(",") if part.strip()]
    if not found:
        raise BadInput(f"{text!r} is not host:port,host:port")
    return found


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, `[v6]:port`, `host` and `NAME://host:port` as host and port; raises BadInput."""
    address = text.strip().rpartition("://")[2]
    if ":" not in address or address.endswith("]"):
        address = f"{address}:{DEFAULT_PORT}"
    try:
        return host_and_port(address)
    except ValueError:
        raise BadInput(f"{text.strip()!r} is not host:port") from None


def _make(kind: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    from confluent_kafka import KafkaException

    try:
        return kind(settings)
    except (KafkaException, ValueError, TypeError) as error:
        raise BadInput(f"a client setting is refused: {reason_of(error)}") from error


def reason_of(error: Any) -> str:
    """The text of an error: for confluent-kafka its message with Kafka's name of the code, for any other error `str`.

    An error of librdkafka itself shows librdkafka's name, which begins with an underscore, and the text marks it as an error of
    the client.
    """
    kafka_error = error if hasattr(error, "name") else next(iter(getattr(error, "args", ())), None)
    name = getattr(kafka_error, "name", None)
    if kafka_error is None or not callable(name):
        return str(error)
    sentence = kafka_error.str().removeprefix("Broker: ").removeprefix("Local: ").rstrip(". ")
    if kafka_error.code() <= LAST_LOCAL_ERROR:
        return f"{sentence} (the client's {name()})"
    code = code_name(kafka_error.code())
    return code if UNKNOWN_TO_LIBRDKAFKA.fullmatch(sentence) else f"{sentence} ({code})"


def is_error(error: KafkaException, code: ErrorCode) -> bool:
    """Whether the cluster answered with this error code; librdkafka has names of its own for some codes."""
    return bool(error.args[0].code() == code)


def fail(what: str, error: KafkaException) -> NoReturn:
    """Raise Failure: the cluster refused the operation."""
    raise Failure(f"{what}: {reason_of(error)}") from error


def translate_client_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Translates client settings of Kafka's Java tools into librdkafka's; settings that both have stay unchanged."""
    result = {key: value for key, value in properties.items() if not JAVA_ONLY.fullmatch(key) and not JAVA_STORE.fullmatch(key)}
    if result.get(IDENTIFICATION) == "":
        result[IDENTIFICATION] = "none"
    result |= _stores(properties)
    if text := properties.get("sasl.jaas.config", "").strip():
        options = _login_options(text)
        for name, key in JAAS_NAMES.items():
            if name in options:
                result.setdefault(key, options[name])
    return result


def _login_options(text: str) -> Mapping[str, str]:
    """Raises BadInput."""
    from barnabas.config.jaas import JaasError, parse

    try:
        options = parse(text)[0].options
    except JaasError as error:
        raise BadInput(f"sasl.jaas.config: {error}") from None
    if options.get("tokenauth", "false").lower() == "true":
        raise BadInput("sasl.jaas.config: the command line cannot log in with a delegation token (tokenauth)")
    return options


def with_tokens(properties: Mapping[str, str]) -> dict[str, Any]:
    """The settings with which librdkafka gets bearer tokens: it cannot read token files, and has other names for providers.

    Raises:
        BadInput: no source of tokens is configured.
    """
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))
    if mechanism != "OAUTHBEARER" or properties.get("sasl.oauthbearer.method") == "oidc":
        return dict(properties)
    from barnabas.client.bearer import source_from

    try:
        source = source_from(properties)
    except ConfigError as error:
        raise BadInput(str(error)) from error

    def hand_over(_: str) -> tuple[str, float]:
        return source.token(), time.time() + TOKEN_SHOWN_S

    return {**{key: value for key, value in properties.items() if not OAUTH.fullmatch(key)}, "oauth_cb": hand_over}


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Java's key store and trust store converted to PEM text for librdkafka, from any store type.

    Raises:
        BadInput: a file cannot be read, or is not a store.
    """
    if not any(JAVA_STORE.fullmatch(key) for key in properties):
        return {}
    from barnabas.tls.settings import client_settings
    from barnabas.tls.stores import read_keys, read_trusted

    try:
        settings = client_settings(properties)
        keys, trusted = read_keys(settings), read_trusted(settings)
    except ConfigError as error:
        raise BadInput(str(error)) from error
    result = {} if trusted is None else {"ssl.ca.pem": trusted}
    if keys is not None:
        result |= {"ssl.certificate.pem": keys.chain, "ssl.key.pem": keys.key}
        result |= {"ssl.key.password": keys.key_password} if keys.key_password is not None else {}
    return result


def connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --bootstrap-server, --command-config, -X and --timeout, and call it with a `connection`."""

    @functools.wraps(function)
    def command(
        *, bootstrap_server: str | None, command_config: str | None, settings: tuple[str, ...], timeout: float, **options: Any
    ) -> Any:
        properties = translate_client_properties(read_properties_file(command_config)) if command_config else {}
        properties.update(parse_pairs(settings, "-X"))
        in_properties = properties.pop("bootstrap.servers", None)
        asked = click.get_current_context().get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE
        found = (bootstrap_server, in_properties) if asked else (in_properties, bootstrap_server)
        bootstrap = next(filter(None, found), DEFAULT_BOOTSTRAP)
        connection = Connection(bootstrap, properties, timeout)
        connection.addresses()
        return function(connection=connection, **options)

    for option in (
        click.option("--timeout", type=TIMEOUT, default=DEFAULT_TIMEOUT_S, show_default=True, metavar="SECONDS",
                     help="Seconds to wait for an answer."),
        click.option("-X", "settings", metavar="KEY=VALUE", multiple=True, help="A client setting of librdkafka; repeatable."),
        click.option("--command-config", type=READABLE, help="A file of client settings (key=value lines)."),
        click.option("-b", "--bootstrap-server", type=Text(checked(parse_addresses)),
                     envvar="BARNABAS_BOOTSTRAP_SERVERS", show_envvar=True, metavar="HOST:PORT,...",
                     help=f"Brokers to ask first.  [default: {DEFAULT_BOOTSTRAP}]"),
    ):  # fmt: skip
        command = option(command)
    return command
