"""The formats of schemas: Avro, JSON Schema, Protobuf. No I/O."""
