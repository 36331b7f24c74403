"""The formats of schemas: Avro, JSON Schema, Protobuf. Nothing here does input or output."""
