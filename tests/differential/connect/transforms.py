"""Cases of Kafka Connect's transforms: records as JSON, with schemas and without, and the configs of the pages of its documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Case = dict[str, Any]
TIME = 1_577_873_472_123  # 2020-01-01T10:11:12.123Z
LOGICAL = "org.apache.kafka.connect.data."


def field(name: str, kind: str, /, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    """A field of a schema."""
    return {"field": name, "type": kind, "optional": optional, **more}


def struct(*fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a struct."""
    return {"type": "struct", "fields": list(fields), "optional": False, **more}


TIMES = {
    "stamp": field("stamp", "int64", name=f"{LOGICAL}Timestamp", version=1),
    "day": field("day", "int32", name=f"{LOGICAL}Date", version=1),
    "hour": field("hour", "int32", name=f"{LOGICAL}Time", version=1),
}
INNER = struct(field("street", "string"), field("zip", "int32", optional=True))
WHOLE = struct(
    field("id", "int32"), field("name", "string", optional=True), field("price", "double"), field("is_paid", "boolean"),
    field("small", "int8"), field("short", "int16"), field("big", "int64"), field("ratio", "float"), field("data", "bytes", optional=True),
    {**INNER, "field": "address"},
    {"field": "tags", "type": "array", "items": {"type": "string", "optional": False}, "optional": True},
    {"field": "counts", "type": "map", "keys": {"type": "string", "optional": False},
     "values": {"type": "int32", "optional": False}, "optional": True},
    field("cost", "bytes", name=f"{LOGICAL}Decimal", version=1, parameters={"scale": "2"}),
    *TIMES.values(), field("unix", "int64"), field("text_time", "string"),
    field("level", "string", optional=True, default="none"),
    name="com.example.Order", version=3,
)  # fmt: skip
VALUE = {
    "id": 7, "name": "Ada", "price": 12.5, "is_paid": True, "small": 1, "short": 300, "big": 5_000_000_000, "ratio": 0.5, "data": "YWI=",
    "address": {"street": "High St", "zip": 123}, "tags": ["a", "b"], "counts": {"x": 1}, "cost": "AfQ=", "stamp": TIME, "day": 18262,
    "hour": 36_672_123, "unix": TIME, "text_time": "2020-01-01 10:11:12", "level": None,
}  # fmt: skip
PLAIN = {
    "id": 7, "name": "Ada", "price": 12.5, "is_paid": True, "address": {"street": "High St", "zip": 123, "geo": {"lat": 1.5}},
    "tags": ["a", "b"], "unix": TIME, "text_time": "2020-01-01 10:11:12", "nothing": None,
}  # fmt: skip
KEY = struct(field("id", "int32"), field("part", "string", optional=True))
PATTERN = "yyyy-MM-dd HH:mm:ss"
# type, config: for the value of a struct with a schema, and of a map without one
OF_FIELDS: tuple[tuple[str, dict[str, str]], ...] = (
    ("Cast$Value", {"spec": "id:string,price:int32"}),
    ("Cast$Value", {"spec": "id:int8,price:float32,is_paid:int32,big:int32"}),
    ("Cast$Value", {"spec": "id:float64,price:string,is_paid:string"}),
    ("Cast$Value", {"spec": "id:boolean,name:boolean,price:boolean"}),
    ("Cast$Value", {"spec": "name:int32"}),
    ("Cast$Value", {"spec": "stamp:int64,day:string,hour:int32"}),
    ("Cast$Value", {"spec": "stamp:string,cost:float64"}),
    ("Cast$Value", {"spec": "level:string", "replace.null.with.default": "false"}),
    ("Cast$Value", {"spec": "level:string"}),
    ("Cast$Value", {"spec": "tags:string"}),
    ("Cast$Value", {"spec": "gone:string"}),
    ("Cast$Value", {"spec": "big:float32,short:int8,ratio:float64"}),
    ("Cast$Value", {"spec": "ratio:string,big:string,small:boolean"}),
    ("Cast$Value", {"spec": "data:string"}),
    ("Cast$Value", {"spec": "string"}),
    ("Cast$Key", {"spec": "id:string"}),
    ("ExtractField$Value", {"field": "id"}),
    ("ExtractField$Value", {"field": "address"}),
    ("ExtractField$Value", {"field": "address.street"}),
    ("ExtractField$Value", {"field": "address.street", "field.syntax.version": "V2"}),
    ("ExtractField$Value", {"field": "address.gone", "field.syntax.version": "V2"}),
    ("ExtractField$Value", {"field": "stamp"}),
    ("ExtractField$Value", {"field": "cost"}),
    ("ExtractField$Value", {"field": "level"}),
    ("ExtractField$Value", {"field": "level", "replace.null.with.default": "false"}),
    ("ExtractField$Value", {"field": "gone"}),
    ("ExtractField$Key", {"field": "id"}),
    ("Flatten$Value", {}),
    ("Flatten$Value", {"delimiter": "_"}),
    ("Flatten$Key", {}),
    ("HeaderFrom$Value", {"fields": "id,name", "headers": "h1,h2", "operation": "copy"}),
    ("HeaderFrom$Value", {"fields": "id,stamp", "headers": "h1,h2", "operation": "move"}),
    ("HeaderFrom$Value", {"fields": "id,unix", "headers": "h1,h2", "operation": "move"}),
    ("HeaderFrom$Value", {"fields": "level", "headers": "h1", "operation": "copy"}),
    ("HeaderFrom$Value", {"fields": "level", "headers": "h1", "operation": "copy", "replace.null.with.default": "false"}),
    ("HeaderFrom$Value", {"fields": "gone", "headers": "h1", "operation": "copy"}),
    ("HeaderFrom$Key", {"fields": "id", "headers": "h1", "operation": "move"}),
    ("HoistField$Value", {"field": "all"}),
    ("HoistField$Key", {"field": "all"}),
    ("InsertField$Value", {"static.field": "source", "static.value": "shop"}),
    ("InsertField$Value", {"static.field": "source!", "static.value": "shop"}),
    ("InsertField$Value", {"topic.field": "t", "partition.field": "p", "offset.field": "o", "timestamp.field": "time"}),
    ("InsertField$Value", {"topic.field": "t!", "partition.field": "p?", "offset.field": "o!", "timestamp.field": "time!"}),
    ("InsertField$Value", {"topic.field": "name"}),
    ("InsertField$Value", {"static.field": "s", "static.value": "x", "replace.null.with.default": "false"}),
    ("InsertField$Key", {"static.field": "s", "static.value": "x"}),
    ("InsertField$Value", {}),
    ("InsertField$Value", {"static.field": "s"}),
    ("MaskField$Value", {"fields": "id,name,price,is_paid"}),
    ("MaskField$Value", {"fields": "id,name", "replacement": "12"}),
    ("MaskField$Value", {"fields": "name", "replacement": "<masked>"}),
    ("MaskField$Value", {"fields": "id", "replacement": "x"}),
    ("MaskField$Value", {"fields": "is_paid", "replacement": "x"}),
    ("MaskField$Value", {"fields": "small,short,big,ratio,cost,tags,counts"}),
    ("MaskField$Value", {"fields": "stamp,day,hour"}),
    ("MaskField$Value", {"fields": "big,ratio,cost", "replacement": "3"}),
    ("MaskField$Value", {"fields": "data"}),
    ("MaskField$Value", {"fields": "tags"}),
    ("MaskField$Value", {"fields": "address"}),
    ("MaskField$Value", {"fields": "gone"}),
    ("MaskField$Value", {"fields": "level", "replace.null.with.default": "false"}),
    ("MaskField$Value", {"fields": "nothing"}),
    ("MaskField$Key", {"fields": "id"}),
    ("ReplaceField$Value", {"exclude": "address,tags"}),
    ("ReplaceField$Value", {"include": "id,name"}),
    ("ReplaceField$Value", {"include": "name,id", "renames": "name:full_name"}),
    ("ReplaceField$Value", {"renames": "id:order_id,gone:x"}),
    ("ReplaceField$Value", {"include": "id,level", "replace.null.with.default": "false"}),
    ("ReplaceField$Value", {"include": "id,level"}),
    ("ReplaceField$Value", {"exclude": "id", "include": "id,name"}),
    ("ReplaceField$Value", {"include": "gone"}),
    ("ReplaceField$Key", {"renames": "id:key"}),
    ("SetSchemaMetadata$Value", {"schema.name": "order", "schema.version": "2"}),
    ("SetSchemaMetadata$Value", {"schema.name": "order"}),
    ("SetSchemaMetadata$Value", {"schema.version": "9"}),
    ("SetSchemaMetadata$Key", {"schema.name": "key"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "Timestamp"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "Date"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "Time"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "EEE, d MMM yyyy HH:mm:ss Z"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "dd/MM/yy hh:mm a z"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "yyyy-DDD w u k K"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "unix", "unix.precision": "seconds"}),
    ("TimestampConverter$Value", {"field": "id", "target.type": "Timestamp", "unix.precision": "seconds"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "Timestamp", "unix.precision": "microseconds"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "Timestamp", "unix.precision": "nanoseconds"}),
    ("TimestampConverter$Value", {"field": "stamp", "target.type": "unix"}),
    ("TimestampConverter$Value", {"field": "stamp", "target.type": "unix", "unix.precision": "nanoseconds"}),
    ("TimestampConverter$Value", {"field": "stamp", "target.type": "string", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "day", "target.type": "string", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "hour", "target.type": "Timestamp"}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "Timestamp", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "unix", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "Date", "format": PATTERN}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "unix", "format": "yyyy-MM-dd"}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "unix", "format": "HH:mm"}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "unix"}),
    ("TimestampConverter$Value", {"field": "text_time", "target.type": "string"}),
    ("TimestampConverter$Value", {"field": "gone", "target.type": "unix"}),
    ("TimestampConverter$Value", {"field": "is_paid", "target.type": "unix"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "day"}),
    ("TimestampConverter$Value", {"field": "unix", "target.type": "string", "format": "bad"}),
    ("TimestampConverter$Value", {"target.type": "unix"}),
    ("ValueToKey", {"fields": "id"}),
    ("ValueToKey", {"fields": "name,id"}),
    ("ValueToKey", {"fields": "gone"}),
    ("ValueToKey", {"fields": "id,level", "replace.null.with.default": "false"}),
    ("DropHeaders", {"headers": "a"}),
    ("DropHeaders", {"headers": "a,b,c"}),
    ("InsertHeader", {"header": "n", "value.literal": "5"}),
    ("InsertHeader", {"header": "a", "value.literal": "text"}),
    ("Filter", {}),
    ("RegexRouter", {"regex": "(.*)-(.*)", "replacement": "$2_$1"}),
    ("RegexRouter", {"regex": "shop", "replacement": "x"}),
    ("RegexRouter", {"regex": "(?<a>shop).*", "replacement": "${a}-all"}),
    ("RegexRouter", {"regex": ".*", "replacement": "foo-$0-bar"}),
    ("RegexRouter", {"regex": "shop-orders", "replacement": r"\$1"}),
    ("RegexRouter", {"regex": "(shop)-.*", "replacement": "$10"}),
    ("RegexRouter", {"regex": r"\p{Lower}+-orders", "replacement": "lower"}),
    ("RegexRouter", {"regex": "(sh)op-.*", "replacement": "$2"}),
    ("TimestampRouter", {}),
    ("TimestampRouter", {"topic.format": "foo-${topic}-${timestamp}", "timestamp.format": "yyyy-MM"}),
    ("TimestampRouter", {"timestamp.format": "YYYY.ww"}),
    ("TimestampRouter", {"timestamp.format": "nope"}),
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Every case."""
    for kind, config in OF_FIELDS:
        yield case(kind, config, WHOLE, VALUE, (KEY, {"id": 7, "part": None}))
        yield case(kind, config, None, PLAIN, (None, {"id": 7, "part": None}))
        if kind.endswith(("$Value", "Key", "Router")):
            yield case(kind, config, None, None, (None, None))
    yield from whole_values()


def whole_values() -> Iterator[Case]:
    """Values that are no structs."""
    for kind, value, spec in (
        ("int32", 300, "int8"), ("int32", 7, "string"), ("double", 1e10, "string"), ("double", 1e-5, "string"), ("double", 1.0, "int64"),
        ("double", -1.9, "int32"), ("double", 1e300, "int32"), ("float", 0.1, "float64"), ("string", "17", "int64"),
        ("string", "1.5", "int32"), ("string", " 5", "int32"), ("string", "1e3", "float64"), ("string", "TRUE", "boolean"),
        ("string", "yes", "boolean"), ("boolean", True, "string"), ("boolean", True, "int8"), ("int64", 1 << 40, "int32"),
        ("string", "300", "int8"), ("double", float(1 << 53), "string"), ("float", 1.1, "string"), ("int64", 123456789012, "float32"),
    ):  # fmt: skip
        yield case("Cast$Value", {"spec": spec}, {"type": kind, "optional": False}, value)
        yield case("Cast$Value", {"spec": spec}, None, value)
    for kind, value in (("int32", 5), ("string", "x"), ("boolean", False), ("double", 2.5)):
        schema = {"type": kind, "optional": True}
        yield case("HoistField$Value", {"field": "v"}, schema, value)
        yield case("HoistField$Value", {"field": "v"}, None, value)
        yield case("HoistField$Value", {"field": "v"}, schema, None)
        for name, config in (
            ("ExtractField$Value", {"field": "a"}), ("InsertField$Value", {"topic.field": "a"}), ("Flatten$Value", {}),
            ("MaskField$Value", {"fields": "a"}), ("ReplaceField$Value", {"exclude": "a"}), ("ValueToKey", {"fields": "a"}),
            ("SetSchemaMetadata$Value", {"schema.name": "n"}), ("HeaderFrom$Value", {"fields": "a", "headers": "b", "operation": "copy"}),
        ):  # fmt: skip
            yield case(name, config, schema, value)
            yield case(name, config, None, value)
    stamp = {**TIMES["stamp"]}
    del stamp["field"]
    for config in (
        {"target.type": "string", "format": PATTERN},
        {"target.type": "unix"},
        {"target.type": "Date"},
        {"target.type": "Time"},
    ):
        yield case("TimestampConverter$Value", config, stamp, TIME)
        yield case("TimestampConverter$Value", config, None, TIME)
        yield case("TimestampConverter$Value", config, {**stamp, "optional": True}, None)


def case(kind: str, config: dict[str, str], schema: Any, value: Any, key: tuple[Any, Any] = (None, None)) -> Case:
    """A record, and the transform that it goes through."""
    has_schemas = schema is not None
    return {
        "type": kind, "config": config, "schemas": has_schemas, "topic": "shop-orders", "timestamp": TIME,
        "key": _text(*key, has_schemas=has_schemas), "value": _text(schema, value, has_schemas=has_schemas),
        "headers": [["a", "1"], ["b", "two"], ["a", "3"]],
    }  # fmt: skip


def _text(schema: Any, value: Any, *, has_schemas: bool) -> str | None:
    if value is None and schema is None:
        return None
    return json.dumps({"schema": schema, "payload": value} if has_schemas else value)
