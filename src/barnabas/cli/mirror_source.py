"""The file of client settings for the source of a mirror link: settings of Kafka's tools or of librdkafka become settings of the link.

Rules
  1. Stores and certificates in files become PEM text in the link, because the brokers of the target have no such files.
  2. A key about TLS or log-ins that a link does not have is refused. Otherwise the link could be less secure than the file says.
  3. Other keys, such as those of consumers, are left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from barnabas.cli.errors import BadInput
from barnabas.cli.properties import read_properties_file
from barnabas.config import definitions, jaas
from barnabas.config.jaas import JaasError
from barnabas.errors import ConfigError
from barnabas.tls.settings import OF_LIBRDKAFKA, client_settings
from barnabas.tls.stores import read_keys, read_trusted

ABOUT_SECURITY = re.compile(r"(security|sasl|ssl|enable\.ssl)\..*")
STORES = re.compile(
    r"ssl\.((truststore|keystore)\.(type|location|password|certificates|key|certificate\.chain)"
    r"|key\.password|key\.location|certificate\.location)"
)
LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")
SAME_AS_IN_LINKS = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "ssl.endpoint.identification.algorithm",
)
OTHER_NAMES = {"sasl.mechanisms": "sasl.mechanism"}  # of librdkafka


class SourceSettings(Struct, frozen=True):
    """The settings of a link, and the keys of the file that it does without."""

    settings: dict[str, str]
    left_out: tuple[str, ...]


def read_source_settings(path: str) -> SourceSettings:
    """The settings of a link from a file of client settings.

    Raises:
        BadInput: the file or a store cannot be read, or has a key about security that a link does not have.
    """
    properties = read_properties_file(path)
    try:
        return source_settings(properties)
    except (BadInput, ConfigError) as error:
        raise BadInput(f"{path}: {error}") from error


def source_settings(properties: Mapping[str, str]) -> SourceSettings:
    """As `read_source_settings`; raises ConfigError too."""
    named = {OTHER_NAMES.get(key, OF_LIBRDKAFKA.get(key, key)): value for key, value in properties.items()}
    settings = {key: named[key] for key in SAME_AS_IN_LINKS if key in named}
    if settings.get("ssl.endpoint.identification.algorithm") == "none":  # librdkafka's word for no check
        settings["ssl.endpoint.identification.algorithm"] = ""
    if "sasl.jaas.config" in named:
        settings = {**_login(named["sasl.jaas.config"]), **settings}
    settings |= _stores(named)
    _check_mechanism(settings)
    rest = [key for key in named if key not in SAME_AS_IN_LINKS and not STORES.fullmatch(key) and key != "sasl.jaas.config"]
    refused = [key for key in rest if ABOUT_SECURITY.fullmatch(key)]
    if refused:  # their values may be secrets
        raise BadInput(f"a mirror link has no setting {', '.join(sorted(refused))}; take it out of the file")
    return SourceSettings(settings, tuple(sorted(set(rest) - {"bootstrap.servers"})))


def _check_mechanism(settings: Mapping[str, str]) -> None:
    mechanism = settings.get("sasl.mechanism")
    if mechanism is not None:
        definitions.LINK["sasl.mechanism"].read(mechanism)


def _login(text: str) -> dict[str, str]:
    try:
        entry = jaas.parse(text)[0]
    except JaasError as error:
        raise ConfigError("sasl.jaas.config", "[hidden]", str(error)) from None
    if entry.name not in LOGIN_MODULES:
        raise ConfigError("sasl.jaas.config", entry.name, f"one of {', '.join(LOGIN_MODULES)}")
    if entry.options.get("tokenauth", "false").lower() == "true":
        raise ConfigError("sasl.jaas.config", "tokenauth", "a user: a delegation token expires, and the link would end")
    names = {"username": "sasl.username", "password": "sasl.password"}
    return {names[key]: value for key, value in entry.options.items() if key in names}


def _stores(properties: Mapping[str, str]) -> dict[str, str]:
    """Key store and trust store as the PEM texts of a link."""
    found = client_settings({key: value for key, value in properties.items() if STORES.fullmatch(key)})
    keys, trusted = read_keys(found), read_trusted(found)
    settings = {} if trusted is None else {"ssl.truststore.certificates": trusted}
    if keys is not None:
        settings |= {"ssl.keystore.certificate.chain": keys.chain, "ssl.keystore.key": keys.key}
        settings |= {} if keys.key_password is None else {"ssl.key.password": keys.key_password}
    return settings
