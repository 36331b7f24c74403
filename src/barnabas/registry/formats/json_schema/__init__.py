"""JSON Schema, drafts 4 to 2020-12, as a format of the registry."""

from barnabas.registry.formats.json_schema.parsed_schema import FORMAT, JsonSchema

__all__ = ["FORMAT", "JsonSchema"]
