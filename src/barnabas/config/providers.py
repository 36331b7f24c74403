"""Placeholders in settings. At its start, a broker fills them from files and the environment (KIP-297, KIP-421).

    config.providers=file
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    listener.name.sasl_ssl.plain.sasl.jaas.config=... password="${file:/etc/barnabas/secrets.properties:password}";

Rules
  1. Names of providers, their classes and parameters are Kafka's. A placeholder of an unnamed provider stays unchanged.
  2. A placeholder that cannot be filled is a ConfigError. Kafka leaves it unchanged, so there the placeholder becomes the
     password.
  3. An error shows the placeholder, never the text around it or the value that was found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.config.properties import parse_properties_file, read_text
from barnabas.errors import ConfigError

PROVIDERS = "config.providers"
PLACEHOLDER = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")  # provider, path, key; the same pattern as in Kafka
PACKAGE = "org.apache.kafka.common.config.provider."

Parameters = Mapping[str, str]
Provider = Callable[[str, str, Parameters], str]  # may raise LookupError, OSError or ValueError


def fill_placeholders(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings with their placeholders filled, without the settings that describe the providers.

    Raises:
        ConfigError: a provider is not known, or a placeholder cannot be filled.
    """
    names = [name.strip() for name in properties.get(PROVIDERS, "").split(",") if name.strip()]
    providers = {name: _provider(name, properties) for name in names}
    parameters = {name: _parameters(name, properties) for name in names}

    def filled(key: str, text: str) -> str:
        def value_of(placeholder: re.Match[str]) -> str:
            name, path, wanted = placeholder[1], placeholder[2] or "", placeholder[3]
            if name not in providers:
                return placeholder[0]
            try:
                return providers[name](path, wanted, parameters[name])
            except (LookupError, OSError, ValueError, ConfigError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error.args[0] if error.args else error)
                raise ConfigError(key, placeholder[0], f"what the provider {name} can give: {reason}") from None

        return PLACEHOLDER.sub(value_of, text)

    return {key: filled(key, text) for key, text in properties.items() if not key.startswith(f"{PROVIDERS}.")}


def _from_file(path: str, key: str, parameters: Parameters) -> str:
    """The key of a properties file."""
    found = parse_properties_file(_read(path, parameters))
    if key not in found:
        raise LookupError(f"the file has no key {key}")
    return found[key]


def _from_directory(path: str, key: str, parameters: Parameters) -> str:
    """The content of a file in a directory, as Kubernetes mounts secrets, without the line end that `echo` adds."""
    if "/" in key or key in {"", ".", ".."}:
        raise LookupError("the name of a file in the directory")
    return _read(f"{path}/{key}", parameters).removesuffix("\n")


def _from_environment(path: str, key: str, parameters: Parameters) -> str:
    """A variable of the environment."""
    if path:
        raise LookupError("a variable has no path")
    allowed = parameters.get("allowlist.pattern")
    if allowed is not None and re.fullmatch(allowed, key) is None:
        raise LookupError("the variable is not among those of allowlist.pattern")
    if key not in os.environ:
        raise LookupError("the variable is not set")
    return os.environ[key]


CLASSES: dict[str, Provider] = {
    f"{PACKAGE}FileConfigProvider": _from_file,
    f"{PACKAGE}DirectoryConfigProvider": _from_directory,
    f"{PACKAGE}EnvVarConfigProvider": _from_environment,
}


def _read(path: str, parameters: Parameters) -> str:
    """The text of a file; it must be within `allowed.paths`, if that is set."""
    allowed = [Path(each.strip()).resolve() for each in parameters.get("allowed.paths", "").split(",") if each.strip()]
    resolved = Path(path).resolve()
    if allowed and not any(resolved.is_relative_to(each) for each in allowed):
        raise LookupError("the path is not within allowed.paths")
    return read_text(resolved)


def _provider(name: str, properties: Mapping[str, str]) -> Provider:
    key = f"{PROVIDERS}.{name}.class"
    wanted = properties.get(key, "").strip()
    if wanted not in CLASSES:
        raise ConfigError(key, wanted, f"one of {', '.join(sorted(CLASSES))}")
    return CLASSES[wanted]


def _parameters(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    prefix = f"{PROVIDERS}.{name}.param."
    return {key.removeprefix(prefix): text.strip() for key, text in properties.items() if key.startswith(prefix)}
