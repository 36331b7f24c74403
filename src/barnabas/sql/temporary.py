"""The end of a session's temporary tables and sequences."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.errors import BarnabasError
from barnabas.sql.running import Running
from barnabas.sql.shared import Shared
from barnabas.sql.statements.alter import drop_table
from barnabas.sql.statements.sequences import drop_sequences

logger = logging.getLogger(__name__)
CLOSE_S = 5.0


def drop_temporary(shared: Shared, config: ClientConfig, names: Collection[str]) -> None:
    """Drop tables and their sequences, within CLOSE_S. If the cluster refuses or is silent, they stay, and the log says so.

    A client of its own asks, since another thread may use the session's, and a statement of its own, since the session's may have been
    cancelled.

    Args:
        config: of the session's clients.
    """
    running = Running(shared.deadlines)
    running.start(CLOSE_S)
    with BlockingClient(replace(config, interruption=running.interruption)) as client:
        for name in names:
            try:
                drop_table(shared.definitions, shared.sequences, client, running, name)
            except BarnabasError as error:
                logger.warning("event=temporary-table-left table=%s error=%r", name, str(error))
        try:
            drop_sequences(shared.sequences, client, running, set(names))
        except BarnabasError as error:
            logger.warning("event=temporary-sequences-left error=%r", str(error))
    running.stop()
