"""The TLS context of a client; like that of a listener, it follows changes of its files."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from barnabas.tls.contexts import client_context
from barnabas.tls.settings import TlsSettings
from barnabas.tls.source import ContextSource

MakeContext = Callable[[], ssl.SSLContext]  # the client calls it for each connection


class ClientTls:
    """Returns the context for the next connection.

    Two objects with the same settings are equal; a pickled one reads its files in the other process.

    Raises:
        ConfigError: the settings or their files are invalid.
    """

    def __init__(self, settings: TlsSettings) -> None:
        self.settings = settings
        self._source = ContextSource(settings, client_context)

    def __call__(self) -> ssl.SSLContext:
        self._source.refresh()
        return self._source.context

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientTls) and other.settings == self.settings

    def __hash__(self) -> int:
        return hash(self.settings)

    def __repr__(self) -> str:
        return f"ClientTls({self.settings!r})"

    def __reduce__(self) -> tuple[type[ClientTls], tuple[TlsSettings]]:
        return ClientTls, (self.settings,)
