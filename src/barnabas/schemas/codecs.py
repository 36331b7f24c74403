"""The interface between registered schemas and the formats of data. The library of a format is loaded at the first use of one
of its schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from barnabas.errors import BarnabasError
from barnabas.schemas.errors import CannotDecode
from barnabas.schemas.registered import RegisteredSchema

MODULES = {
    "AVRO": "barnabas.schemas.avro_codec",
    "JSON": "barnabas.schemas.json_codec",
    "PROTOBUF": "barnabas.schemas.protobuf_codec",
}
EXTRA = "barnabas[registry]"


class LibraryMissing(BarnabasError):
    """The library of a format is not installed."""

    def __init__(self, schema_type: str, library: str) -> None:
        super().__init__(schema_type, library)
        self.schema_type = schema_type
        self.library = library

    def __str__(self) -> str:
        return f"{self.schema_type.capitalize()} schemas need {self.library}: pip install '{EXTRA}'"


class Codec(Protocol):
    """Encodes and decodes the data of one schema, without the bytes that name the schema."""

    record_name: str | None
    path: Sequence[int] | None  # path of the Protobuf message to write; None for other formats

    def encode(self, value: Any) -> bytes:
        """Raises CannotEncode if the value does not fit."""

    def decode(self, data: bytes, path: Sequence[int] | None = None) -> Any:
        """The value. `path` is the path of the Protobuf message. Raises CannotDecode."""

    def from_json(self, value: Any) -> Any:
        """A value for `encode` from parsed JSON. Raises CannotEncode."""

    def to_json(self, value: Any) -> Any:
        """A value of `decode` in a form for `json.dumps`."""


@runtime_checkable
class TakesRows(Protocol):
    """A codec that encodes rows whose values have the types of the columns of its schema."""

    @property
    def takes_rows(self) -> bool:
        """Whether it does so with its schema."""

    def of_row(self, row: Mapping[str, Any]) -> Any:
        """A value for `encode`. Raises ValueError, TypeError."""


def codec_of(schema: RegisteredSchema, reader: RegisteredSchema | None = None, *, message: str | None = None) -> Codec:
    """The codec of a schema.

    Args:
        reader: the schema of the program; values are converted to it. None: values are as they were written.
        message: the full name of the Protobuf message to write; None: the first one.

    Raises:
        LibraryMissing: the extra is not installed.
        CannotDecode: the text from the registry is invalid, or the format is unknown.
    """
    if schema.schema_type not in MODULES:
        raise CannotDecode(f"nothing here reads schemas of type {schema.schema_type}")
    if reader is not None and reader.schema_type != schema.schema_type:
        raise CannotDecode(f"the schema is {schema.schema_type}, and the reader's is {reader.schema_type}")
    try:
        module = import_module(MODULES[schema.schema_type])
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("barnabas"):
            raise
        raise LibraryMissing(schema.schema_type, error.name or "") from error
    made: Codec = module.make(schema, reader, message)
    return made
