"""Connectors: sources that bring records into topics, and sinks that bring them out, behind Kafka Connect's own interface.

The names below are what the author of a connector needs.
"""

from barnabas.connect.api import Batch, Identity, Sink, Source
from barnabas.connect.config_def import ConfigDef
from barnabas.connect.config_types import Importance, Type
from barnabas.connect.errors import BadRecords, ConnectError, RetriableError
from barnabas.connect.functions import sink, source

__all__ = [
    "BadRecords", "Batch", "ConfigDef", "ConnectError", "Identity", "Importance", "RetriableError", "Sink", "Source", "Type", "sink",
    "source",
]  # fmt: skip
