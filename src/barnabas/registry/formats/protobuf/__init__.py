"""The Protobuf format: text to syntax tree, canonical text, google.protobuf's check, and Confluent's rules of compatibility."""

from __future__ import annotations

from barnabas.registry.formats.protobuf.parsed_schema import ProtobufFormat, ProtobufSchema

FORMAT = ProtobufFormat()

__all__ = ["FORMAT", "ProtobufFormat", "ProtobufSchema"]
