"""Converts values to the bytes of records and back, like Confluent's serialisers.

with RegistryClient("http://127.0.0.1:8081") as client:
    serializer = Serializer(client, topic="orders", schema=SCHEMA)
    producer.produce("orders", serializer.encode({"id": 7}), headers=serializer.headers)

Both classes are also callable with confluent-kafka's `SerializationContext`, so its producers and consumers can use them as
serialisers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from barnabas import limits
from barnabas.schemas.codecs import Codec, codec_of
from barnabas.schemas.errors import CannotEncode, SchemaDataError
from barnabas.schemas.framing import KEY_HEADER, VALUE_HEADER, Headers, guid_header, id_prefix, split
from barnabas.schemas.registered import RegisteredSchema, RegisteredSchemas
from barnabas.schemas.registry_client import RegistryClient
from barnabas.schemas.subject_names import STRATEGIES

T = TypeVar("T")
IDS = ("payload", "headers")
RETRY_S = 5.0  # after this time a missing schema is requested again, because a registry may get it late


class Context(Protocol):
    """The part of confluent-kafka's `SerializationContext` that this module uses."""

    headers: Any  # a list of pairs, a dict or None


class Serializer:
    """Encodes values of one schema. The constructor sends the only requests to the registry.

    Args:
        client: a client of the registry, or a `RegisteredSchemas` with a shared cache.
        topic: by default the subject is `TOPIC-value`, or `TOPIC-key` for keys; see `strategy`.
        subject: the subject, instead of that of the strategy.
        strategy: `topic`, `record` or `topic-record`.
        schema: the text of the schema, which is registered if it is not there yet; None: the latest version of the subject.
        schema_id: the id of a registered schema, instead of its text. Then the subject only gives the context.
        schema_type: the type of the text: `AVRO`, `JSON` or `PROTOBUF`.
        references: the references of the text, in the registry's form.
        record: the full name of the record, for the strategies that need it; required if no text contains it.
        message: the name of the Protobuf message; None: the first one.
        ids: the place of the schema's id: in the `payload`, or in `headers`.

    Raises:
        SchemaDataError: there is no such schema or message, or the arguments do not fit each other.
        RegistryError, RegistryUnreachable: the registry refused, or did not answer.
    """

    def __init__(
        self,
        client: RegistryClient | RegisteredSchemas,
        topic: str | None = None,
        *,
        schema: str | None = None,
        schema_id: int | None = None,
        schema_type: str = "AVRO",
        references: Sequence[dict[str, Any]] = (),
        subject: str | None = None,
        strategy: str = "topic",
        record: str | None = None,
        is_key: bool = False,
        message: str | None = None,
        ids: str = "payload",
        normalize: bool = False,
    ) -> None:
        if ids not in IDS or strategy not in STRATEGIES:
            raise SchemaDataError(f"ids are in {' or '.join(IDS)}; a strategy is {', '.join(STRATEGIES)}")
        schemas = client if isinstance(client, RegisteredSchemas) else RegisteredSchemas(client)
        named = record or (message if schema_type == "PROTOBUF" else None)
        if subject is None and strategy != "topic" and named is None and schema is not None:
            named = record_name_of(schema, schema_type)
        self.subject = subject or STRATEGIES[strategy](topic, is_key, named)
        if schema_id is not None:
            self.schema = schemas.get(schema_id, subject)
        elif schema is None:
            self.schema = schemas.latest(self.subject)
        else:
            self.schema = schemas.register(self.subject, schema, schema_type, references, normalize=normalize)
        self.codec: Codec = codec_of(self.schema, message=message)
        self.headers: list[tuple[str, bytes]] = []  # headers for each record
        self._header_name = KEY_HEADER if is_key else VALUE_HEADER
        self._prefix = b""
        if ids == "payload":
            assert self.schema.id is not None  # a look-up by subject always returns an id
            self._prefix = id_prefix(self.schema.id, self.codec.path)
        elif self.schema.guid is None:
            raise SchemaDataError("the registry gives schemas no guid, which ids in headers need")
        else:
            self.headers = [(self._header_name, guid_header(self.schema.guid, self.codec.path))]

    def headers_for(self, headers: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """The headers of a record, with the one that names its schema. A header for another schema is removed, because readers
        would use it."""
        return [each for each in headers if each[0] != self._header_name] + self.headers

    def encode(self, value: Any) -> bytes | None:
        """The bytes of a value; None stays None. Raises CannotEncode."""
        return None if value is None else self._prefix + self.codec.encode(value)

    def __call__(self, value: Any, ctx: Context | None = None) -> bytes | None:
        """The same for confluent-kafka; `ctx` has the headers of the record. Raises CannotEncode."""
        data = self.encode(value)
        if self.headers and data is not None:
            if ctx is None or ctx.headers is None:
                raise CannotEncode("ids in headers need a record with headers, if only an empty list")
            if isinstance(ctx.headers, dict):
                ctx.headers.update(self.headers)
            else:
                ctx.headers[:] = self.headers_for(ctx.headers)
        return data

    def encode_json(self, value: Any) -> bytes | None:
        """The bytes of a value from parsed JSON, with bytes in base64, and dates and times in ISO 8601. Raises CannotEncode."""
        return None if value is None else self._prefix + self.codec.encode(self.codec.from_json(value))


class Deserializer:
    """Decodes values with the schemas that records name. It requests each schema once from the registry, and a missing one
    every 5 s.

    Args:
        reader: the schema of the program, or its text for Avro. Avro data is resolved to it, Protobuf data is read with it.
            None: each value stays as it was written.
        subject: a subject in the context of the ids, if that is not the default one.
    """

    def __init__(
        self,
        client: RegistryClient | RegisteredSchemas,
        *,
        reader: RegisteredSchema | str | None = None,
        is_key: bool = False,
        subject: str | None = None,
    ) -> None:
        self.schemas = client if isinstance(client, RegisteredSchemas) else RegisteredSchemas(client)
        self._reader = RegisteredSchema(None, None, "AVRO", reader) if isinstance(reader, str) else reader
        self._is_key = is_key
        self._subject = subject
        self._codecs: dict[int | str, Codec] = {}
        self._failed: dict[int | str, tuple[SchemaDataError, float]] = {}  # id -> error, and the time until which it counts

    def decode(self, payload: bytes | None, headers: Headers = None) -> Any:
        """The value; None for a null payload.

        Raises:
            NotFramed: the record names no schema.
            SchemaDataError: its schema is not registered or is invalid, or the data does not fit it.
        """
        return None if payload is None else self._read(payload, headers)[1]

    def __call__(self, payload: bytes | None, ctx: Context | None = None) -> Any:
        """The same for confluent-kafka, which gives the headers of the record."""
        return self.decode(payload, None if ctx is None else ctx.headers)

    def decode_json(self, payload: bytes | None, headers: Headers = None) -> Any:
        """The value in a form for `json.dumps`."""
        if payload is None:
            return None
        codec, value = self._read(payload, headers)
        return codec.to_json(value)

    def _read(self, payload: bytes, headers: Headers) -> tuple[Codec, Any]:
        framed = split(payload, headers, is_key=self._is_key)
        codec = self._codec(framed.schema)
        if codec.path is None:
            return codec, codec.decode(framed.data())
        path, data = framed.message()
        return codec, codec.decode(data, path)

    def _codec(self, name: int | str) -> Codec:
        found = self._codecs.get(name)
        if found is not None:
            return found
        failed = self._failed.get(name)
        now_s = time.monotonic()
        if failed is not None and now_s < failed[1]:
            raise failed[0]
        try:
            made = codec_of(self.schemas.get(name, self._subject), self._reader)
        except SchemaDataError as error:
            _keep(self._failed, name, (error, now_s + RETRY_S))
            raise
        _keep(self._codecs, name, made)
        return made


def _keep(kept: dict[int | str, T], name: int | str, value: T) -> None:
    """Add to a cache of bounded size: a writer of a topic can name many schemas."""
    if len(kept) >= limits.MAX_CACHED_SCHEMAS:
        del kept[next(iter(kept))]
    kept[name] = value


def record_name_of(text: str, schema_type: str) -> str | None:
    """The full name of the record in a text; None for Protobuf, where `message` names the message."""
    import json

    from barnabas.schemas.avro_names import full_name

    try:
        parsed = json.loads(text) if schema_type != "PROTOBUF" else None
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    if schema_type == "JSON":
        return parsed.get("title")
    return full_name(parsed, "") if "name" in parsed else None
