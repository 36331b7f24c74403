"""Readers and writers of messages, compiled from the field tables of the generated classes.

`reader_of(cls, version)` and `writer_of(cls, version)` create one Python function for a class and version at its first use and
cache it. Neighbouring fields of fixed size share one `struct` call, so that a message costs a few calls and not one for each
field.

Rules
  1. Reading allocates no more than the remaining bytes justify: a reader checks an array's length against the remaining bytes
     (every element takes at least one) and `limits.MAX_ARRAY_LENGTH`, a string's length against the remaining bytes, and the
     number of tagged fields against `limits.MAX_TAGGED_FIELDS`. For a peer's request, `decode_request` also checks the
     elements of all arrays together against `limits.MAX_REQUEST_ELEMENTS`. It counts them only if the request has more bytes
     than that.
  2. A reader skips unknown tagged fields (KIP-482).
  3. A tagged nullable struct has a marker byte, 0 or 1, and is written even if it is null, as in Kafka.
  4. Any error in the bytes is a `MalformedMessage`; a reader raises no other exception.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn, TypeVar
from uuid import UUID

from barnabas import limits
from barnabas.errors import MalformedMessage
from barnabas.limits import MAX_STRING_BYTES
from barnabas.protocol.base_message import ZERO_UUID, Buffer, FieldSpec, Message, WrittenOnce

M = TypeVar("M", bound=Message)
Reader = Callable[[memoryview, int], tuple[M, int]]
Writer = Callable[[M, bytearray], None]
CheckArray = Callable[[memoryview, int, int], None]  # checks an array length at a position; raises ValueError

FIXED = {"bool": ("?", 1), "int8": ("b", 1), "int16": ("h", 2), "int32": ("i", 4), "int64": ("q", 8), "uint16": ("H", 2),
         "float64": ("d", 8)}  # fmt: skip
_readers: dict[tuple[type[Message], int], Reader[Any]] = {}
_counting_readers: dict[tuple[type[Message], int], tuple[Reader[Any], _Elements]] = {}
_writers: dict[tuple[type[Message], int], Writer[Any]] = {}
NULLABLE_STRUCT, NULLABLE_TAGGED_STRUCT = 0xFF, 0  # the byte for an absent struct


class _Elements:
    """Counts the elements of the arrays of one request."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = 0

    def check(self, view: memoryview, position: int, length: int) -> None:
        _check_array(view, position, length)
        self.left -= length
        if self.left < 0:
            raise ValueError(f"more than {limits.MAX_REQUEST_ELEMENTS} elements in all")


def decode(cls: type[M], version: int, data: Buffer, position: int = 0) -> M:
    """The message in `data` from `position` on.

    Raises:
        MalformedMessage: the bytes are not such a message, or bytes are left over.
    """
    view = data if isinstance(data, memoryview) else memoryview(data)
    message, end = reader_of(cls, version)(view, position)
    if end != len(view):
        raise MalformedMessage(cls.__name__, version, f"{len(view) - end} bytes left over")
    return message


def decode_request(cls: type[M], version: int, frame: memoryview, position: int) -> M:
    """A request of a peer. Bytes after it are ignored, as in Kafka: librdkafka (2.16) sends three more bytes after the
    flexible Metadata request.

    Raises:
        MalformedMessage: the bytes are not such a message, or it has too many elements.
    """
    if len(frame) <= limits.MAX_REQUEST_ELEMENTS:
        return reader_of(cls, version)(frame, position)[0]
    found = _counting_readers.get((cls, version))
    if found is None:
        elements = _Elements()
        found = _counting_readers[cls, version] = _guarded_reader(cls, version, elements.check), elements
    read, elements = found
    elements.left = limits.MAX_REQUEST_ELEMENTS
    message: M = read(frame, position)[0]  # the annotation is needed because the table holds readers of all classes
    return message


def encode(message: Message, version: int) -> bytearray:
    """The bytes of `message` in `version`; raises ValueError if a field is null that must not be null in that version."""
    out = bytearray()
    writer_of(type(message), version)(message, out)
    return out


def reader_of(cls: type[M], version: int) -> Reader[M]:
    """A function `(data, position) -> (message, end)`."""
    found = _readers.get((cls, version))
    if found is None:
        found = _readers[cls, version] = _guarded_reader(cls, version, _check_array)
    return found


def _guarded_reader(cls: type[M], version: int, check: CheckArray) -> Reader[M]:
    body: Reader[M] = _compile(_ReaderSource(cls, version, check))

    def read(view: memoryview, position: int) -> tuple[M, int]:
        try:
            return body(view, position)
        except MalformedMessage:
            raise
        except (struct.error, IndexError, UnicodeDecodeError, ValueError, RecursionError) as error:
            raise MalformedMessage(cls.__name__, version, str(error)) from error

    return read


def _item_reader(cls: type[Message], version: int, check: CheckArray) -> Reader[Any]:
    read: Reader[Any] = _compile(_ReaderSource(cls, version, check))
    return read


def writer_of(cls: type[M], version: int) -> Writer[M]:
    """A function `(message, out) -> None` that appends to `out`."""
    found = _writers.get((cls, version))
    if found is None:
        found = _writers[cls, version] = _compile(_WriterSource(cls, version))
    return found


def _compile(source: _ReaderSource | _WriterSource) -> Any:
    exec(source.text(), source.names)  # the source text comes only from the message tables of this package
    return source.names["run"]


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits, and the position after it."""
    result = shift = 0
    while True:
        byte = view[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
        if shift > 28:
            raise ValueError("varint longer than 5 bytes")


def write_varint(value: int, out: bytearray) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_compact_length(view: memoryview, position: int) -> tuple[int, int]:
    """A length that is stored as length + 1 (-1 for null), and the position after it."""
    value, position = read_varint(view, position)
    return value - 1, position


def _slice(view: memoryview, position: int, length: int) -> memoryview:
    end = position + length
    if end > len(view):
        _beyond(view, position, length)
    return view[position:end]


def _beyond(view: memoryview, position: int, length: int) -> NoReturn:
    raise ValueError(f"a length of {length} bytes where {len(view) - position} are left")


def _check_array(view: memoryview, position: int, length: int) -> None:
    if length > limits.MAX_ARRAY_LENGTH or length > len(view) - position:
        raise ValueError(f"an array of {length} elements where {len(view) - position} bytes are left")


@lru_cache(maxsize=4_096)
def uuid_of(data: bytes) -> UUID:
    """The UUID of 16 bytes. The result is cached: the same topics repeat, and creating a UUID takes longer than all other
    fields around it."""
    return UUID(bytes=data)


def skip_tagged_fields(view: memoryview, position: int, known: dict[int, Any], message: Any) -> int:
    count, position = read_varint(view, position)
    if count > limits.MAX_TAGGED_FIELDS:
        raise ValueError(f"{count} tagged fields")
    previous = -1
    for _ in range(count):
        tag, position = read_varint(view, position)
        if tag <= previous:
            raise ValueError(f"tag {tag} after tag {previous}")
        previous = tag
        size, position = read_varint(view, position)
        value = _slice(view, position, size)
        position += size
        if tag in known:
            end = known[tag](value, 0, message)
            if end != size:
                raise ValueError(f"tag {tag} has {size - end} bytes left over")
    return position


def _write_tagged_fields(out: bytearray, values: list[tuple[int, bytearray]]) -> None:
    write_varint(len(values), out)
    for tag, value in values:
        write_varint(tag, out)
        write_varint(len(value), out)
        out += value


def _null(name: str) -> Any:
    raise ValueError(f"{name} must not be null")


def _too_long(name: str, size: int) -> Any:
    raise ValueError(f"{name} has {size} bytes, and a string has {MAX_STRING_BYTES} at most")


def _pack_array(code: str, items: Any) -> bytes:
    return struct.pack(f">{len(items)}{code}", *items)


def _write_once(items: WrittenOnce, version: int, write: Writer[Any], out: bytearray) -> None:
    data = items.written.get(version)
    if data is not None:
        out += data
        return
    start = len(out)
    for item in items:
        write(item, out)
    items.written[version] = bytes(out[start:])


def _fields_in(cls: type[Message], version: int) -> tuple[list[FieldSpec], list[FieldSpec]]:
    fields = [f for f in cls.FIELDS if f.first_version <= version <= f.last_version]
    return [f for f in fields if f.tag is None], [f for f in fields if f.tag is not None]


def _absent(field: FieldSpec) -> int:
    return NULLABLE_STRUCT if field.tag is None else NULLABLE_TAGGED_STRUCT


class _Source:
    """The text of one function `run` and the names it uses."""

    def __init__(self, cls: type[Message], version: int) -> None:
        self.cls = cls
        self.version = version
        self.flexible = version >= cls.FIRST_FLEXIBLE_VERSION
        self.plain, self.tagged = _fields_in(cls, version)
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []

    def bind(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def add(self, *lines: str) -> None:
        self.lines += ["    " + line for line in lines]

    def nullable(self, field: FieldSpec) -> bool:
        return field.first_nullable_version <= self.version <= field.last_nullable_version or field.wire_type == "records"

    def runs(self) -> list[list[FieldSpec]]:
        """The untagged fields in groups: neighbours of fixed size together, each other field alone."""
        groups: list[list[FieldSpec]] = []
        for field in self.plain:
            fixed = field.wire_type in FIXED and not field.is_array
            if fixed and groups and groups[-1][0].wire_type in FIXED and not groups[-1][0].is_array:
                groups[-1].append(field)
            else:
                groups.append([field])
        return groups


class _ReaderSource(_Source):
    def __init__(self, cls: type[Message], version: int, check: CheckArray) -> None:
        super().__init__(cls, version)
        self.check = check

    def text(self) -> str:
        self.read_plain()
        if self.flexible:
            known = self.bind("known", {f.tag: self.tag_reader(f) for f in self.tagged})
            self.add("if v[p]:", f"    p = tags(v, p, {known}, m)", "else:", "    p += 1")
        return "\n".join(["def run(v, p):", "    m = cls()", *self.lines, "    return m, p"])

    def read_plain(self) -> None:
        """Add the code that reads the untagged fields."""
        self.names.update(
            cls=self.cls, compact=_read_compact_length, beyond=_beyond, check=self.check, tags=skip_tagged_fields, null=_null,
            too_long=_too_long,
            uuid=uuid_of, short=struct.Struct(">h").unpack_from, long=struct.Struct(">i").unpack_from, unpack=struct.unpack_from,
        )  # fmt: skip
        for run in self.runs():
            if run[0].wire_type in FIXED and not run[0].is_array:
                self.read_fixed(run)
            else:
                self.read_field(run[0], "m." + run[0].name)

    def read_fixed(self, run: list[FieldSpec]) -> None:
        layout = struct.Struct(">" + "".join(FIXED[f.wire_type][0] for f in run))
        targets = "".join(f"m.{f.name}, " for f in run)
        self.add(f"{targets}= {self.bind('fixed', layout.unpack_from)}(v, p)", f"p += {layout.size}")

    def read_field(self, field: FieldSpec, target: str) -> None:
        name, wire_type, is_array = field.name, field.wire_type, field.is_array
        if wire_type == "uuid" and not is_array:
            self.add(f"{target} = uuid(bytes(v[p : p + 16]))", "p += 16")
            return
        if wire_type == "struct" and not is_array:
            self.read_struct(field, target)
            return
        self.read_length(wide=is_array or wire_type in {"bytes", "records"})
        self.add("if n < 0:", f"    {target} = None" if self.nullable(field) else f"    null({name!r})", "else:")
        if is_array:
            self.read_items(field, target)
        else:
            if wire_type == "string" and self.flexible:
                self.add(f"    if n > {MAX_STRING_BYTES}: too_long({name!r}, n)")
            self.read_piece(target, wire_type, "n", "    ")

    def read_length(self, *, wide: bool) -> None:
        if self.flexible:
            self.read_compact_length("n", "")
        else:
            self.add("n, = long(v, p)" if wide else "n, = short(v, p)", "p += 4" if wide else "p += 2")

    def read_compact_length(self, name: str, indent: str) -> None:
        """Add the code that reads a compact length; nearly all lengths have one byte, which is read without a call."""
        self.add(f"{indent}{name} = v[p]")
        self.add(f"{indent}if {name} < 128:", f"{indent}    {name} -= 1", f"{indent}    p += 1")
        self.add(f"{indent}else:", f"{indent}    {name}, p = compact(v, p)")

    def read_piece(self, target: str, wire_type: str, length: str, indent: str) -> None:
        take = {"string": "str(v[p:e], 'utf-8')", "bytes": "bytes(v[p:e])", "records": "v[p:e]"}[wire_type]
        self.add(f"{indent}e = p + {length}", f"{indent}if e > len(v): beyond(v, p, {length})")
        self.add(f"{indent}{target} = {take}", f"{indent}p = e")

    def read_struct(self, field: FieldSpec, target: str) -> None:
        reader = self.bind("item", _item_reader(field.item, self.version, self.check))
        if self.nullable(field):
            self.add("marker = v[p]", "p += 1", f"if marker == {_absent(field)}:", f"    {target} = None", "else:")
            self.add(f"    {target}, p = {reader}(v, p)")
        else:
            self.add(f"{target}, p = {reader}(v, p)")

    def read_items(self, field: FieldSpec, target: str) -> None:
        wire_type = field.wire_type
        self.add("    check(v, p, n)")
        if wire_type in FIXED:
            code, size = FIXED[wire_type]
            self.add(f"    {target} = list(unpack(f'>{{n}}{code}', v, p))", f"    p += n * {size}")
            return
        self.add(f"    items = {target} = []", "    for _ in range(n):")
        if wire_type == "struct":
            self.add(f"        item, p = {self.bind('item', _item_reader(field.item, self.version, self.check))}(v, p)")
        elif wire_type == "uuid":
            self.add("        item = uuid(bytes(v[p : p + 16]))", "        p += 16")
        else:
            if self.flexible:
                self.read_compact_length("k", "        ")
            else:
                self.add("        k, = short(v, p)", "        p += 2")
            self.add(f"        if k < 0: null({field.name!r})")
            self.add(f"        if k > {MAX_STRING_BYTES}: too_long({field.name!r}, k)" if self.flexible else "")
            self.read_piece("item", "string", "k", "        ")
        self.add("        items.append(item)")

    def tag_reader(self, field: FieldSpec) -> Callable[[memoryview, int, Message], int]:
        source = _ReaderSource(self.cls, self.version, self.check)
        source.plain, source.flexible = [field], True
        source.read_plain()
        text = "\n".join(["def run(v, p, m):", *source.lines, "    return p"])
        exec(text, source.names)
        run: Callable[[memoryview, int, Message], int] = source.names["run"]
        return run


class _WriterSource(_Source):
    def text(self) -> str:
        self.names.update(
            varint=write_varint, tags=_write_tagged_fields, null=_null, short=struct.Struct(">h").pack,
            long=struct.Struct(">i").pack, pack_array=_pack_array, zero=ZERO_UUID,
            once=WrittenOnce, write_once=_write_once,
        )  # fmt: skip
        for run in self.runs():
            if run[0].wire_type in FIXED and not run[0].is_array:
                self.write_fixed(run)
            else:
                self.write_field(run[0], "m." + run[0].name)
        if self.flexible:
            self.write_tags()
        return "\n".join(["def run(m, out):", *self.lines, "    return None"])

    def write_fixed(self, run: list[FieldSpec]) -> None:
        layout = struct.Struct(">" + "".join(FIXED[f.wire_type][0] for f in run))
        self.add(f"out += {self.bind('fixed', layout.pack)}({', '.join('m.' + f.name for f in run)})")

    def write_field(self, field: FieldSpec, value: str) -> None:
        name, wire_type, is_array = field.name, field.wire_type, field.is_array
        if wire_type in FIXED and not is_array:
            self.write_fixed([field])
            return
        if wire_type == "uuid" and not is_array:
            self.add(f"out += {value}.bytes")
            return
        self.add(f"x = {value}", "if x is None:")
        if not self.nullable(field):
            self.add(f"    null({name!r})")
        elif wire_type == "struct" and not is_array:
            self.add(f"    out.append({_absent(field)})")
        elif self.flexible:
            self.add("    out.append(0)")
        else:
            self.add("    out += long(-1)" if is_array or wire_type in {"bytes", "records"} else "    out += short(-1)")
        self.add("else:")
        if is_array:
            self.write_items(field)
        elif wire_type == "struct":
            self.add("    out.append(1)" if self.nullable(field) else "    pass")
            self.add(f"    {self.bind('item', writer_of(field.item, self.version))}(x, out)")
        else:
            self.write_bytes("    ", "x", wire_type)

    def write_bytes(self, indent: str, value: str, wire_type: str) -> None:
        if wire_type == "string":
            self.add(f"{indent}b = {value}.encode()")
            value = "b"
        if self.flexible:
            self.write_compact_length(value, indent)
        else:
            self.add(f"{indent}out += {'short' if wire_type == 'string' else 'long'}(len({value}))")
        self.add(f"{indent}out += {value}")

    def write_compact_length(self, value: str, indent: str) -> None:
        self.add(f"{indent}k = len({value}) + 1", f"{indent}if k < 128: out.append(k)", f"{indent}else: varint(k, out)")

    def write_items(self, field: FieldSpec) -> None:
        wire_type = field.wire_type
        if self.flexible:
            self.write_compact_length("x", "    ")
        else:
            self.add("    out += long(len(x))")
        if wire_type in FIXED:
            self.add(f"    out += pack_array({FIXED[wire_type][0]!r}, x)")
            return
        if wire_type == "struct":
            item = self.bind("item", writer_of(field.item, self.version))
            self.add("    if type(x) is once:", f"        write_once(x, {self.version}, {item}, out)")
            self.add("    else:", "        for i in x:", f"            {item}(i, out)")
            return
        self.add("    for i in x:")
        if wire_type == "uuid":
            self.add("        out += i.bytes")
        else:
            self.write_bytes("        ", "i", wire_type)

    def write_tags(self) -> None:
        if not self.tagged:
            self.add("out.append(0)")
            return
        defaults = self.bind("defaults", self.cls())
        self.add("t = []")
        for field in sorted(self.tagged, key=lambda f: f.tag or 0):
            source = _WriterSource(self.cls, self.version)
            source.plain, source.tagged, source.flexible = [field], [], True
            source.text()
            exec("\n".join(["def run(m, out):", *source.lines[:-1], "    return None"]), source.names)
            writer = self.bind("tag", source.names["run"])
            always = field.wire_type == "struct" and not field.is_array and self.nullable(field)
            condition = "True" if always else f"m.{field.name} != {defaults}.{field.name}"
            self.add(f"if {condition}:", "    o = bytearray()", f"    {writer}(m, o)")
            self.add(f"    t.append(({field.tag}, o))")
        self.add("tags(out, t)")
