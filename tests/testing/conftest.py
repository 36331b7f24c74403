"""The fixtures of the plugin, also where barnabas runs from its source tree and no entry point loads them."""

from __future__ import annotations

from barnabas.testing.plugin import kafka, kafka_session

__all__ = ["kafka", "kafka_session"]
