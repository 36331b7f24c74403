"""The base class of all plug-ins, and the function that imports the class in a configuration key and creates its object.

Rules
  1. A value is `python:package.module:Class`. The module is imported when the broker starts, so it must be installed or on PYTHONPATH.
  2. Every error in creating the object is a ConfigError that names the key: the broker does not start without the plug-in.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from typing import TypeVar

from barnabas.config.guards import PREFIX
from barnabas.errors import ConfigError

logger = logging.getLogger(__name__)


class Plugin:
    """An object of the class that a configuration key names; the broker creates it."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Called once, before any other method.

        Args:
            configs: the broker's given configuration, with your own keys. It contains passwords.

        Raises:
            Exception: the broker does not start, and reports the error.
        """

    def close(self) -> None:
        """Called once, when the broker stops."""


P = TypeVar("P", bound=Plugin)


def load(key: str, text: str, base: type[P], configs: Mapping[str, str]) -> P:
    """The object of the class that `text` names; raises ConfigError.

    Args:
        key: the configuration key, for errors.
        base: the class that it must derive from.
        configs: argument of `configure`.
    """
    made_by = _find(key, text, base)
    try:
        made = made_by()
        made.configure(configs)
    except Exception as error:  # a plugin's code may raise anything
        raise ConfigError(key, text, f"a class that can be created and configured: {describe(error)}") from error
    return made


def _find(key: str, text: str, base: type[P]) -> type[P]:
    module_name, _, name = text.removeprefix(PREFIX).partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except Exception as error:  # the import of a plugin may raise anything too
        raise ConfigError(key, text, f"a class that can be imported: {describe(error)}") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ConfigError(key, text, f"a class that derives from barnabas.plugins.{base.__name__}")
    return found


def describe(error: Exception) -> str:
    """An exception of a plug-in as one line of text."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def close_all(plugins: Iterable[Plugin]) -> None:
    """Close all plug-ins; if one raises, log it and close the others."""
    for plugin in plugins:
        try:
            plugin.close()
        except Exception:
            logger.exception("event=plugin-not-closed class=%s", type(plugin).__name__)
