"""Converters by their class names, and the converters of a task."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from barnabas.connect.converters.interface import Converter
from barnabas.connect.errors import ConnectError

APACHE, CONFLUENT = "org.apache.kafka.connect.", "io.confluent.connect."
DEFAULT = f"{APACHE}json.JsonConverter"  # of Kafka's connect-distributed.properties
CONVERTERS: Mapping[str, tuple[str, str]] = {
    f"{APACHE}storage.StringConverter": ("plain", "StringConverter"),
    f"{APACHE}json.JsonConverter": ("json_converter", "JsonConverter"),
    f"{CONFLUENT}avro.AvroConverter": ("registered", "AvroConverter"),
    f"{CONFLUENT}json.JsonSchemaConverter": ("registered", "JsonSchemaConverter"),
    f"{CONFLUENT}protobuf.ProtobufConverter": ("registered", "ProtobufConverter"),
    **{
        f"{APACHE}converters.{name}": ("plain", name)
        for name in (
            "ByteArrayConverter", "ShortConverter", "IntegerConverter", "LongConverter", "FloatConverter", "DoubleConverter",
            "BooleanConverter",
        )
    },
}  # fmt: skip
SIMPLE = f"{APACHE}storage.SimpleHeaderConverter"
HEADER_CONVERTERS: Mapping[str, tuple[str, str]] = {
    SIMPLE: ("header_converters", "SimpleHeaderConverter"),
    **{name: where for name, where in CONVERTERS.items() if name.startswith(APACHE)},
    DEFAULT: ("header_converters", "JsonHeaderConverter"),
}


def converter(config: Mapping[str, str], worker: Mapping[str, str], *, is_key: bool) -> Converter:
    """The converter of the keys or values of a task: of the connector's config, or the worker's. Raises ConnectError."""
    return _made("key.converter" if is_key else "value.converter", CONVERTERS, DEFAULT, config, worker)


def header_converter(config: Mapping[str, str], worker: Mapping[str, str]) -> Converter:
    """The converter of the headers of a task. Raises ConnectError."""
    return _made("header.converter", HEADER_CONVERTERS, SIMPLE, config, worker)


def _made(
    name: str, known: Mapping[str, tuple[str, str]], default: str, config: Mapping[str, str], worker: Mapping[str, str]
) -> Converter:
    given = config if name in config else worker
    module, cls = _found(given.get(name, default), known)
    settings = {key.removeprefix(f"{name}."): value for key, value in given.items() if key.startswith(f"{name}.")}
    made: Converter = getattr(import_module(f"barnabas.connect.converters.{module}"), cls)(
        settings, is_key=name.startswith("key")
    )
    return made


def _found(wanted: str, known: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    for name, where in known.items():
        if wanted in (name, name.rpartition(".")[2], name.rpartition(".")[2].removesuffix("Converter")):
            return where
    raise ConnectError(f"Class {wanted} could not be found.")
