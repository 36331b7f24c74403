"""Records with keys and values that have schemas in a registry: JSON for the user; Avro, JSON Schema or Protobuf in the topic."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from barnabas.cli.errors import BadInput
from barnabas.cli.records import BadRecord, Printer, Record, print_json_of
from barnabas.cli.registry_connection import RegistryOptions
from barnabas.cli.schema import TYPES, body_of
from barnabas.cli.types import Text
from barnabas.digits import INT32, is_number

if TYPE_CHECKING:
    from barnabas.schemas.registry_client import RegistryClient
    from barnabas.schemas.serializer import Deserializer, Serializer

LATEST = "latest"
PLACES = ("payload", "headers")


def encoding_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `produce` for the encoding of keys and values; the command gets them as `encoding`."""

    @functools.wraps(function)
    def command(
        *, value_schema: str | None, key_schema: str | None, schema_type: str | None, schema_message: str | None,
        schema_subject: str | None, schema_ids: str, **options: Any,
    ) -> Any:  # fmt: skip
        encoding = Encoding(value_schema, key_schema, schema_type, schema_message, schema_subject, schema_ids)
        return function(encoding=encoding, **options)

    for option in (
        click.option("--schema-ids", type=click.Choice(PLACES), default="payload", show_default=True,
                     help="Where a record carries the id of its schema."),
        click.option("--schema-subject", type=Text(), metavar="NAME",
                     help="The subject of the schema of the values.  [default: TOPIC-value]"),
        click.option("--schema-message", type=Text(), metavar="NAME",
                     help="The Protobuf message of the values.  [default: the schema's first]"),
        click.option("--schema-type", type=click.Choice(TYPES), help="The format of FILE; otherwise its ending says it, or avro."),
        click.option("--key-schema", type=Text(), metavar="FILE|ID|latest", help="The same for keys, under the subject TOPIC-key."),
        click.option("--schema", "value_schema", type=Text(), metavar="FILE|ID|latest",
                     help="Values are JSON, and are written by this schema: the one in FILE, which is registered under the subject "
                     "TOPIC-value if it is not yet, the one with an id, or the subject's latest."),
    ):  # fmt: skip
        command = option(command)
    return command


class Encoding(Struct, frozen=True):
    """The encoding of keys and values.

    Args:
        value, key: a file, the id of a schema or `LATEST`; None sends the bytes unchanged.
        message, subject: the message name and the subject of the values.
    """

    value: str | None = None
    key: str | None = None
    schema_type: str | None = None
    message: str | None = None
    subject: str | None = None
    ids: str = "payload"

    def __post_init__(self) -> None:
        if self.value is None:
            for name, given in (("message", self.message), ("subject", self.subject)):
                if given is not None:
                    raise BadInput(f"--schema-{name} goes with --schema")
            if self.key is None and (self.schema_type is not None or self.ids != "payload"):
                raise BadInput("--schema-type and --schema-ids go with --schema or --key-schema")

    @property
    def parts(self) -> set[str]:
        """The parts (`key`, `value`) that are JSON in the input."""
        return {name for name, given in (("key", self.key), ("value", self.value)) if given is not None}

    def encoder(self, registry: RegistryOptions, topic: str) -> Callable[[Record], Record]:
        """A function that encodes the JSON keys and values of records. Raises BadInput if a schema is not available."""
        from barnabas.schemas.errors import SchemaDataError

        with registry.client() as client:
            try:
                for_key = self._serializer(client, topic, self.key, is_key=True)
                for_value = self._serializer(client, topic, self.value, is_key=False)
            except SchemaDataError as error:
                raise BadInput(str(error)) from error

        def encode(record: Record) -> Record:
            for name, serializer in (("key", for_key), ("value", for_value)):
                text = getattr(record, name)
                if serializer is not None and text is not None:
                    made: dict[str, Any] = {name: _encoded(serializer, text, name)}
                    record = record._replace(**made, headers=serializer.headers_for(record.headers))
            return record

        return encode

    def _serializer(self, client: RegistryClient, topic: str, source: str | None, *, is_key: bool) -> Serializer | None:
        from barnabas.schemas.serializer import Serializer

        if source is None:
            return None
        given: dict[str, Any] = {"is_key": is_key, "ids": self.ids}
        if not is_key:
            given |= {"message": self.message, "subject": self.subject}
        if is_number(source, INT32):
            given["schema_id"] = int(source)
        elif source != LATEST:
            body = body_of(source, self.schema_type, ())
            given |= {"schema": body["schema"], "schema_type": body["schemaType"]}
        return Serializer(client, topic, **given)


def _encoded(serializer: Serializer, text: bytes, name: str) -> bytes | None:
    from barnabas.schemas.errors import CannotEncode

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"the {name} is not JSON ({error})") from error
    try:
        return serializer.encode_json(value)
    except CannotEncode as error:
        raise BadRecord(f"the {name}{str(error).removeprefix('the value')}") from error


def decoding_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `consume` that say which parts are decoded; the command gets them as `decoded_parts`."""

    @functools.wraps(function)
    def command(*, with_schema: bool, with_key_schema: bool, **options: Any) -> Any:
        parts = {name for name, given in (("key", with_key_schema), ("value", with_schema)) if given}
        return function(decoded_parts=parts, **options)

    for option in (
        click.option("--key-schema", "with_key_schema", is_flag=True, help="The same for keys."),
        click.option("--schema", "with_schema", is_flag=True,
                     help="Print values as JSON, decoded by the registered schemas that they name. Standard error names a record "
                     "that cannot be decoded."),
    ):  # fmt: skip
        command = option(command)
    return command


class Decoded:
    """A message with its key and value as JSON, if they have a schema."""

    def __init__(self, message: Any, decoded: dict[str, Any]) -> None:
        self._message = message
        self.decoded = decoded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._message, name)

    def key(self) -> bytes | None:
        return self._bytes("key")

    def value(self) -> bytes | None:
        return self._bytes("value")

    def _bytes(self, name: str) -> bytes | None:
        if name not in self.decoded:
            found: bytes | None = getattr(self._message, name)()
            return found
        return json.dumps(self.decoded[name], ensure_ascii=False).encode()


class Decoding:
    """Decodes messages by the schemas that they name, and counts those that cannot be decoded.

    Args:
        parts: the parts (`key`, `value`) to decode.
    """

    def __init__(self, registry: RegistryOptions, parts: Collection[str]) -> None:
        from barnabas.schemas.registered import RegisteredSchemas
        from barnabas.schemas.serializer import Deserializer

        self.client = registry.client()
        schemas = RegisteredSchemas(self.client)
        self._parts: dict[str, Deserializer] = {name: Deserializer(schemas, is_key=name == "key") for name in sorted(parts)}
        self.failed = 0

    def printer(self, inner: Printer, *, as_json: bool) -> Printer:
        """A printer that passes decoded messages to `inner`. For a message that cannot be decoded it prints nothing, and
        standard error names the message."""

        def show(message: Any) -> bytes:
            decoded = self._decode(message)
            if decoded is None:
                return b""
            return print_json_of(decoded, decoded.decoded) if as_json else inner(decoded)

        return show

    def _decode(self, message: Any) -> Decoded | None:
        from barnabas.schemas.errors import SchemaDataError

        headers, decoded = message.headers(), dict[str, Any]()
        for name, part in self._parts.items():
            data = getattr(message, name)()
            if data is None:
                continue
            try:
                decoded[name] = part.decode_json(data, headers)
            except SchemaDataError as error:
                self.failed += 1
                place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
                click.echo(f"{place}: cannot decode the {name}: {error}", err=True)
                return None
        return Decoded(message, decoded)
