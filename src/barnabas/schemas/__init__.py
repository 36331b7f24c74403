"""For programs that use a schema registry, of barnabas or Confluent: its REST client, and the encoding and decoding of values
with its schemas."""

from __future__ import annotations

from barnabas.schemas.errors import CannotDecode, CannotEncode, NotFramed, SchemaDataError
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryClient, RegistryError, RegistryUnreachable
from barnabas.schemas.serializer import Deserializer, Serializer

__all__ = [
    "Serializer", "Deserializer", "RegistryClient", "RegisteredSchema", "RegisteredSchemas",
    "SchemaDataError", "CannotEncode", "CannotDecode", "NotFramed", "RegistryError", "RegistryUnreachable",
]  # fmt: skip
