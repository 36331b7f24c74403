"""`key=value` from the command line and `.properties` files, for the broker and for clients."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cli.errors import BadInput
from barnabas.errors import ConfigError


def read_properties_file(path: str) -> dict[str, str]:
    """The settings of a Java `.properties` file.

    Raises:
        BadInput: the file cannot be read.
    """
    from barnabas.config.properties import read_properties_file as read

    try:
        return read(path)
    except (OSError, ConfigError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def read_text(path: str) -> str:
    """The text of a file that an option names; raises BadInput."""
    from barnabas.config.properties import read_text as read

    try:
        return read(path)
    except (OSError, ConfigError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, str]:
    """`key=value` texts as a dict; the value may contain equal signs and may be empty.

    Raises:
        BadInput: a text without an equal sign or without a key.
    """
    return {key: value.strip() for key, value in (parse_pair(pair, option) for pair in pairs)}


def parse_pair(pair: str, option: str) -> tuple[str, str]:
    """A `key=value` text as key and value, the value unchanged; raises BadInput like `parse_pairs`."""
    key, equals, value = pair.partition("=")
    if not equals or not key.strip():
        raise BadInput(f"{option} {pair!r} is not key=value")
    return key.strip(), value
