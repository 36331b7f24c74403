"""The Avro format: parsing, canonical and normalised text, compatibility and tags."""

from barnabas.registry.formats.avro.avro_format import FORMAT, AvroFormat, AvroSchema

__all__ = ["FORMAT", "AvroFormat", "AvroSchema"]
