"""Whether the cluster has an engine that runs tasks: without one a status must say so, because nothing else does."""

from __future__ import annotations

import logging

from barnabas.client.blocking import BlockingClient
from barnabas.engine.membership import has_engines
from barnabas.errors import BarnabasError

logger = logging.getLogger(__name__)
LOOK_S = 2.0  # between two looks at the group of the engines
PATIENCE_S = 2.0  # an engine that starts beside this worker joins its group a moment later


class Engines:
    """Looks at the group of the engines."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client
        self._looked_s: float | None = None
        self._missing_since_s: float | None = None

    def hindrance(self, now_s: float) -> str | None:
        """Why no task runs; None if there are engines, or if the cluster does not say it."""
        if self._looked_s is None or now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self._look(now_s)
        if self._missing_since_s is None or now_s - self._missing_since_s < PATIENCE_S:
            return None
        servers = ",".join(f"{host}:{port}" for host, port in self._client.config.bootstrap_servers)
        return f"no engine runs in this cluster; this starts one: barnabas engine start --bootstrap-server {servers}"

    def _look(self, now_s: float) -> None:
        try:
            is_there = has_engines(self._client)
        except BarnabasError as error:  # a worker may lack the right to see the group
            logger.warning("event=engines-not-seen error=%r", str(error))
            is_there = True
        if is_there:
            self._missing_since_s = None
        elif self._missing_since_s is None:
            self._missing_since_s = now_s
