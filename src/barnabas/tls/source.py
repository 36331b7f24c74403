"""A TLS context that follows changes of its settings and their files.

Owns the replacement of a context: later connections use the replacement, open connections keep theirs. If a file cannot be read
while the broker runs, the old context stays, because the replacement of a certificate must not stop the listener.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable

from barnabas.errors import ConfigError
from barnabas.tls.settings import TlsSettings

logger = logging.getLogger(__name__)
Stamp = tuple[tuple[int, int, int] | None, ...]  # time, size and inode of each file; None for a missing file


class ContextSource:
    """The context of one listener or client.

    Args:
        make: `server_context` or `client_context`.

    Raises:
        ConfigError: the first context cannot be made.
    """

    def __init__(self, settings: TlsSettings, make: Callable[[TlsSettings], ssl.SSLContext]) -> None:
        self.settings = settings
        self._make = make
        self._stamp = stamp_of(settings)
        self.context = make(settings)
        self.generation = 1  # the number of contexts made so far

    def change(self, settings: TlsSettings) -> bool:
        """Apply other settings; returns whether the context changed. Raises ConfigError, and then nothing has changed."""
        stamp = stamp_of(settings)
        if settings == self.settings and stamp == self._stamp:
            return False
        self.context = self._make(settings)
        self.settings, self._stamp = settings, stamp
        self.generation += 1
        return True

    def refresh(self) -> bool:
        """Check the files for changes; returns whether the context changed. An error is logged once, and the old context
        stays."""
        stamp = stamp_of(self.settings)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.context = self._make(self.settings)
        except ConfigError as error:
            logger.error("event=certificates-not-taken note='the old ones stay' reason=%r", str(error))
            return False
        self.generation += 1
        return True


def stamp_of(settings: TlsSettings) -> Stamp:
    return tuple(_stamp(name) for name in settings.files)


def _stamp(name: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(name)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
