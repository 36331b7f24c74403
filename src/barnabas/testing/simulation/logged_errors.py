"""The errors in a broker's log: each is a fault of the broker, unless an injected fault explains it.

Owns the list of errors that each injected fault excuses.
"""

from __future__ import annotations

import logging

from barnabas.testing.simulation.files import ProcessKilled

EXCUSES = {
    "disk": (
        "event=log-directory-failed",
        "event=log-directory-refuses-writes",
        "event=storage-failed",
        "event=broker-stops",
        "event=read-failed",
        "event=log-move-failed",
        "event=moved-log-old-folder-stays",
        "event=cleaning-failed",
        "event=log-not-compacted-any-more",
        "event=log-not-closed",
        "event=log-directory-not-marked-clean",
        "event=log-unreadable",
        "event=corrupt-data",
    ),
    "mirror": ("event=mirror-stopped",),
    "cleaner-dies": ("event=cleaning-failed", "event=log-not-compacted-any-more"),
    "rot": (
        "event=corrupt-data",
        "event=log-unreadable",
        "event=read-failed",
        "event=log-not-compacted-any-more",
        "event=cleaning-failed",
    ),
}


FOREIGN_CONTEXT = "was created in a different Context"


class LoggedErrors(logging.Handler):
    """Collects the errors without an excuse."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.unexcused: list[str] = []
        self._excused: set[str] = set()

    def excuse(self, reason: str) -> None:
        """From now on the broker may log the errors of `reason`, one of EXCUSES."""
        self._excused.update(EXCUSES[reason])

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ProcessKilled):
            return  # the process is dead and would log nothing
        if isinstance(error, ValueError) and FOREIGN_CONTEXT in str(error):
            return  # the simulation closes the coroutines of a dead process from outside; a real death does not
        text = record.getMessage()
        # A traceback in the log is always a mistake: an expected error is a line without one.
        if record.exc_info or not any(text.startswith(known) for known in self._excused):
            self.unexcused.append(text + (f" ({record.exc_info[1]!r})" if record.exc_info else ""))
