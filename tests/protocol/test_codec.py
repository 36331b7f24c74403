"""Our codec against kio: the same bytes for every message in every version, both ways."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType
from tools.generate_messages import DATA_MESSAGES, NAMED_ONLY

from barnabas.errors import MalformedMessage
from barnabas.limits import MAX_STRING_BYTES
from barnabas.protocol.base_message import ZERO_UUID, Message, WrittenOnce
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages import APIS, FIRST_VERSIONS_OF_KAFKA_4, metadata
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

CASES = [
    (module, kind, version)
    for key, (module, _, first, last, _) in APIS.items()
    if module not in NAMED_ONLY
    for kind in (EntityType.request, EntityType.response)
    for version in range(FIRST_VERSIONS_OF_KAFKA_4.get(key, first), last + 1)
]


def our_class(module: str, kio_name: str, kind: EntityType) -> type[Message]:
    page = importlib.import_module(f"barnabas.protocol.messages.{module}")
    prefixed = ("Request" if kind is EntityType.request else "Response") + kio_name
    found: type[Message] = getattr(page, kio_name, None) or getattr(page, prefixed)
    return found


def comparable(value: Any) -> Any:
    """kio's values as ours hold them."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, tuple):
        return [comparable(v) for v in value]
    if dataclasses.is_dataclass(value):
        return {f.name: comparable(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return value


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            mine = next(getattr(ours, n) for n in (name, name + "_ms", name + "_") if hasattr(ours, n))
            assert_same(mine, value)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif theirs is None:
        assert ours is None or ours in (ZERO_UUID, -1)
    elif isinstance(ours, memoryview):
        assert bytes(ours) == theirs
    else:
        assert ours == theirs


def sample(annotation: Any, random: Random, depth: int = 0) -> Any:
    """Some value of a type that kio's messages use."""
    if isinstance(annotation, UnionType):
        inner = next(a for a in get_args(annotation) if a is not NoneType)
        return None if random.random() < 0.3 else sample(inner, random, depth)
    if get_origin(annotation) is tuple:
        return tuple(
            sample(get_args(annotation)[0], random, depth + 1) for _ in range(random.choice([0, 1, 2]) if depth < 4 else 0)
        )
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        hints = get_type_hints(annotation)
        return annotation(**{f.name: sample(hints[f.name], random, depth) for f in dataclasses.fields(annotation)})
    if annotation is ErrorCode:
        return random.choice(list(ErrorCode))
    if annotation is bool:
        return random.random() < 0.5
    if annotation is UUID:
        return UUID(int=random.getrandbits(128))
    if issubclass(annotation, timedelta):
        return annotation.parse(timedelta(milliseconds=random.randrange(-1, 2**31)))
    if issubclass(annotation, datetime):
        return annotation.parse(datetime.fromtimestamp(random.randrange(2**31), tz=UTC))
    if issubclass(annotation, int):
        low, high = getattr(annotation, "__low__", -(2**31)), getattr(annotation, "__high__", 2**31 - 1)
        return annotation(random.choice([low, high, 0, random.randrange(low, high)]))
    if issubclass(annotation, float):
        return annotation(random.random())
    if issubclass(annotation, bytes):
        return annotation(random.randbytes(random.choice([0, 3, 200])))
    assert issubclass(annotation, str), annotation
    return "".join(random.choice("aé字😀") for _ in range(random.choice([0, 1, 70])))


@pytest.mark.parametrize(("module", "kind", "version"), CASES, ids=lambda v: v.name if isinstance(v, EntityType) else str(v))
def test_every_message_reads_and_writes_as_kio_does(module: str, kind: EntityType, version: int) -> None:
    schema = load_entity_schema(module, version, kind)  # type: ignore[arg-type]  # requests and responses only
    cls = our_class(module, schema.__name__, kind)
    write = entity_writer(schema)
    for seed in range(5):
        message = sample(schema, Random(seed))
        out = io.BytesIO()
        write(out, message)
        ours = decode(cls, version, out.getvalue())
        assert_same(ours, comparable(message))
        assert bytes(encode(ours, version)) == out.getvalue()


@pytest.mark.parametrize(
    ("key", "version"), [(key, version) for key, first in FIRST_VERSIONS_OF_KAFKA_4.items() for version in range(first)]
)
def test_a_version_before_those_of_kio_is_read_as_it_was_written(key: int, version: int) -> None:
    module, prefix, *_ = APIS[key]
    page = importlib.import_module(f"barnabas.protocol.messages.{module}")
    for kind in ("Request", "Response"):
        message = filled(getattr(page, prefix + kind), version)
        data = bytes(encode(message, version))
        assert decode(type(message), version, data) == message
        with pytest.raises(MalformedMessage):
            decode(type(message), version, data[:-1])


def filled(cls: type[Message], version: int) -> Message:
    """Something in every field that the version has."""
    message = cls()
    for field in cls.FIELDS:
        if field.first_version <= version <= field.last_version:
            value = {"string": "text", "bytes": b"bytes", "records": b"records", "bool": True}.get(field.wire_type, 7)
            value = filled(field.item, version) if field.wire_type == "struct" else value
            setattr(message, field.name, [value, value] if field.is_array else value)
    return message


def test_the_index_names_every_api_of_kio_and_only_those_that_nobody_uses_have_no_classes() -> None:
    named = {module for module, *_ in APIS.values()}
    assert named <= set(schema_name_map)
    assert named >= NAMED_ONLY
    pages = Path(metadata.__file__).parent.glob("*.py")
    assert {page.stem for page in pages} - {"__init__", "api_keys", *DATA_MESSAGES} == named - NAMED_ONLY


@given(st.binary(max_size=200), st.integers(0, 13))
@settings(max_examples=300, deadline=None)
def test_any_bytes_decode_or_are_refused(data: bytes, version: int) -> None:
    with contextlib.suppress(MalformedMessage):  # no other error may occur
        message = decode(MetadataRequest, version, data)
        assert decode(MetadataRequest, version, encode(message, version)) == message


def test_an_array_longer_than_the_bytes_left_is_refused_before_it_is_made() -> None:
    with pytest.raises(MalformedMessage, match="array of 1000000000 elements"):
        decode(MetadataRequest, 0, (1_000_000_000).to_bytes(4, "big") + bytes(100))


def test_unknown_tagged_fields_are_skipped() -> None:
    plain = bytes(encode(MetadataRequest(topics=None), 12))
    assert decode(MetadataRequest, 12, plain[:-1] + b"\x01\x63\x03abc") == MetadataRequest(topics=None)


@pytest.mark.parametrize("size", [MAX_STRING_BYTES, MAX_STRING_BYTES + 1])
def test_a_string_is_no_longer_where_its_length_is_a_varint(size: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * size)])
    data = bytes(encode(request, 9))
    if size <= MAX_STRING_BYTES:
        assert decode(MetadataRequest, 9, data) == request
        return
    with pytest.raises(MalformedMessage, match=f"name has {size} bytes, and a string has {MAX_STRING_BYTES} at most"):
        decode(MetadataRequest, 9, data)


@pytest.mark.parametrize("version", range(MetadataResponse.FIRST_VERSION, MetadataResponse.LAST_VERSION + 1))
def test_what_is_written_once_has_the_same_bytes_each_time(version: int) -> None:
    topics = [
        MetadataResponseTopic(name=f"t{number}", partitions=[MetadataResponsePartition(partition_index=i) for i in range(number)])
        for number in range(3)
    ]
    kept = WrittenOnce(topics)
    wanted = encode(MetadataResponse(topics=topics), version)
    for _ in range(2):
        assert encode(MetadataResponse(topics=kept), version) == wanted
    assert list(kept.written) == [version]
    assert MetadataResponse(topics=kept) == MetadataResponse(topics=topics)
