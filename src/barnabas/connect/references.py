"""References to secrets in configs, such as `${file:/etc/secrets.properties:password}`, and the config providers that resolve them.

The providers are those of Kafka, by its settings: `config.providers=file,env`, `config.providers.file.class=FileConfigProvider` and
`config.providers.file.param.allowed.paths=/etc/connect`. A reference to a provider that is not configured stays as it is. What a reference
stands for is never written to a topic, an answer or a log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.config.properties import read_properties_file
from barnabas.errors import BarnabasError, ConfigError

PROVIDERS = "config.providers"
_REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
MOST_BYTES = 1 << 20  # of a file with secrets


class Unresolved(BarnabasError):
    """A reference that cannot be resolved. The text names the place, never its content."""


Provider = Callable[[str, str], str | None]  # takes path and key; None: there is no such key, and the reference stays


class Resolver:
    """Resolves references.

    Args:
        settings: of the workers.

    Raises:
        ConfigError: of `barnabas.errors`, for a provider that there is not.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._providers: dict[str, Provider] = {}
        for name in filter(None, (each.strip() for each in settings.get(PROVIDERS, "").split(","))):
            key = f"{PROVIDERS}.{name}.class"
            cls = settings.get(key, "").strip()
            make = _MAKERS.get(cls.rpartition(".")[2])
            if make is None:
                raise ConfigError(key, cls, f"one of {', '.join(_MAKERS)}")
            self._providers[name] = make(_parameters(settings, name))

    def resolved(self, config: Mapping[str, str]) -> dict[str, str]:
        """The config with the values behind its references. Raises Unresolved."""
        return {key: _REFERENCE.sub(self._value, text) for key, text in config.items()}

    def _value(self, found: re.Match[str]) -> str:
        provider = self._providers.get(found[1])
        value = None if provider is None else provider(found[2] or "", found[3])
        return found[0] if value is None else value


def is_reference(text: str) -> bool:
    """Whether a value has a reference in it."""
    return _REFERENCE.search(text) is not None


def _parameters(settings: Mapping[str, str], name: str) -> dict[str, str]:
    prefix = f"{PROVIDERS}.{name}.param."
    return {key.removeprefix(prefix): value for key, value in settings.items() if key.startswith(prefix)}


def _allowed(parameters: Mapping[str, str]) -> Callable[[str], Path]:
    """A function that gives the path of a reference, if it is an allowed one."""
    roots = [Path(each.strip()).resolve() for each in parameters.get("allowed.paths", "").split(",") if each.strip()]

    def checked(text: str) -> Path:
        path = Path(text).resolve()
        if roots and not any(path.is_relative_to(root) for root in roots):
            raise Unresolved(f"The path {text} is not within the allowed.paths of the config provider")
        return path

    return checked


def _text(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES).decode()
    except (OSError, ValueError):
        raise Unresolved(what) from None


def _of_files(parameters: Mapping[str, str]) -> Provider:
    allowed = _allowed(parameters)

    def value(path: str, key: str) -> str | None:
        if not path:
            return None
        try:
            return read_properties_file(allowed(path)).get(key)
        except (OSError, ConfigError):
            raise Unresolved(f"Could not read properties from file {path}") from None

    return value


def _of_directories(parameters: Mapping[str, str]) -> Provider:
    allowed = _allowed(parameters)

    def value(path: str, key: str) -> str | None:
        if not path or "/" in key or key in {"", ".", ".."}:
            return None
        file = allowed(path) / key
        return _text(file, f"Could not read file {key} of directory {path}") if file.is_file() else None

    return value


def _of_environment(parameters: Mapping[str, str]) -> Provider:
    pattern = re.compile(parameters.get("allowlist.pattern", ".*"))

    def value(path: str, key: str) -> str | None:
        if path:
            raise Unresolved("Path is not supported for EnvVarConfigProvider")
        return os.environ.get(key) if pattern.fullmatch(key) else None

    return value


_MAKERS: Mapping[str, Callable[[Mapping[str, str]], Provider]] = {
    "FileConfigProvider": _of_files,
    "DirectoryConfigProvider": _of_directories,
    "EnvVarConfigProvider": _of_environment,
}
