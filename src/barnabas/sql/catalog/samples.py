"""The contents of undeclared topics, as an engine remembers them."""

from __future__ import annotations

import logging
import threading
import time

from barnabas.errors import BarnabasError
from barnabas.schemas.arrow.columns import RegistryAddress
from barnabas.sql.catalog.topics import TopicRelation, registered

logger = logging.getLogger(__name__)
VALUE = "-value"  # the end of the subject of a topic's values
SCHEMA_VALID_S = 5.0  # so long the newest schema of a topic is not asked for again
MOST_SAMPLES = 10_000  # topics that are remembered
SAMPLE_VALID_S = 30.0  # so long a topic that held text is not looked at again


class Samples:
    """The contents of undeclared topics, for all sessions of an engine: by the schema registry, or by a look at their last records.

    Args:
        registry: None without one.
    """

    def __init__(self, registry: RegistryAddress | None = None) -> None:
        self._registry = self.registry = registry
        self._registered: dict[str, tuple[float, TopicRelation | None]] = {}
        self._subjects: tuple[float, set[str]] | None = None
        self._known: dict[str, tuple[float, tuple[bool, bool]]] = {}
        self._lock = threading.Lock()

    def registered(self, topic: str) -> TopicRelation | None:
        """A topic with the columns of its schema; None without one. Raises TableError, RegistryError, RegistryUnreachable."""
        if self._registry is None:
            return None
        known = self._registered.get(topic)
        if known is not None and time.monotonic() - known[0] < SCHEMA_VALID_S:
            return known[1]
        found = registered(topic, self._registry)
        with self._lock:
            if len(self._registered) >= MOST_SAMPLES:
                self._registered.clear()
            self._registered[topic] = time.monotonic(), found
        return found

    def with_schemas(self) -> set[str]:
        """The topics whose values have a schema. A registry without an answer is logged, and has none."""
        if self._registry is None:
            return set()
        known = self._subjects
        if known is None or time.monotonic() - known[0] >= SCHEMA_VALID_S:
            try:
                with self._registry.client() as client:
                    subjects = client.get("subjects")
            except BarnabasError as error:
                logger.warning("event=subjects-not-listed error=%r", str(error))
                subjects = []
            known = self._subjects = time.monotonic(), {each.removesuffix(VALUE) for each in subjects if each.endswith(VALUE)}
        return known[1]

    def get(self, topic: str) -> tuple[bool, bool] | None:
        """The answer that is known and still valid. Bytes stay bytes."""
        found = self._known.get(topic)
        if found is None or (any(found[1]) and time.monotonic() - found[0] > SAMPLE_VALID_S):
            return None
        return found[1]

    def put(self, topic: str, held: tuple[bool, bool]) -> None:
        with self._lock:
            if len(self._known) >= MOST_SAMPLES:
                self._known.clear()
            self._known[topic] = time.monotonic(), held
