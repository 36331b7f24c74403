r"""Records as text: the input of `produce` and the output of `consume`.

Formats
  text      the value; with a key separator: key, separator, value
  hex       the same, key and value in hexadecimal
  json      one object a line: key, value, headers, timestamp, and when printed topic, partition, offset. Bytes that are not
            UTF-8 are in key_base64 and value_base64. `produce` reads the output of `consume` back to the same bytes
  template  anything with a percent sign, as in kcat: the template also gives the separator between records.
            %k key, %v (or %s) value, %h headers (name=value,...), %t topic, %p partition, %o offset, %T timestamp in
            milliseconds, %K and %S sizes of key and value (-1 for null), %% a percent sign; \n \t \r \0 \xNN as usual

A null key or value is printed as an empty text, or as the marker of --null. In the input only the marker means null.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from barnabas.cli.errors import BadInput
from barnabas.cli.types import Text, checked
from barnabas.digits import is_number

Headers = list[tuple[str, bytes | None]]
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
TOKEN = re.compile(r"%(.)")
LAST_PARTITION, LAST_TIMESTAMP = 2**31 - 1, 2**63 - 1


class Record(NamedTuple):
    """A record of the input."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None = None
    partition: int | None = None


class BadRecord(BadInput):
    """A line of input that is not a record in the given format."""


Parser = Callable[[bytes], Record]
Printer = Callable[[Any], bytes]  # takes a Message of confluent-kafka


def unescape(text: str) -> bytes:
    r"""`\n`, `\t`, `\r`, `\0`, `\\` and `\xNN` in a text that came from a command line; other escapes stay unchanged."""
    out = bytearray()
    position = 0
    for match in ESCAPE.finditer(text):
        out += text[position : match.start()].encode()
        code = match[1]
        out += bytes([int(code[1:], 16)]) if len(code) == 3 else ESCAPES.get(code, match[0]).encode()
        position = match.end()
    return bytes(out + text[position:].encode())


# --- reading


def parser_for(
    format_name: str, *, key_separator: bytes | None, null_marker: bytes | None, json_parts: Collection[str] = ()
) -> Parser:
    """The function that parses a piece of input into a record.

    Args:
        json_parts: the parts (`key`, `value`) that stay JSON text in the record, even strings; for the format json.

    Raises:
        BadInput: there is no such format, or options contradict each other.
    """
    if format_name == "json":
        return partial(parse_json, json_parts=json_parts) if json_parts else parse_json
    if "%" in format_name:
        return _template_parser(format_name, null_marker)
    if format_name not in {"text", "hex"}:
        raise BadInput(f"no format {format_name!r}; there are text, json, hex, and templates such as '%k %v\\n'")
    take = _from_hex if format_name == "hex" else bytes

    def field(data: bytes) -> bytes | None:
        return None if data == null_marker else take(data)

    def parse_value(line: bytes) -> Record:
        return Record(None, field(line), [])

    def parse_pair(line: bytes) -> Record:
        assert key_separator is not None
        key, found, value = line.partition(key_separator)
        if not found:
            raise BadRecord(f"no key separator {key_separator.decode(errors='replace')!r} in {_excerpt(line)}")
        return Record(field(key), field(value), [])

    return parse_pair if key_separator else parse_value


def _from_hex(data: bytes) -> bytes:
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError:
        raise BadRecord(f"not hexadecimal: {_excerpt(data)}") from None


def parse_json(line: bytes, json_parts: Collection[str] = ()) -> Record:
    """A record from a JSON object; a value that is not a string is kept as JSON text. Raises BadRecord."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise BadRecord(f"not JSON ({error}): {_excerpt(line)}") from None
    if not isinstance(data, dict):
        raise BadRecord(f"not a JSON object: {_excerpt(line)}")
    unknown = data.keys() - JSON_FIELDS
    if unknown:
        raise BadRecord(f"unknown field {min(unknown)!r}; a record has {', '.join(sorted(JSON_FIELDS))}")
    timestamp, partition = data.get("timestamp"), data.get("partition")
    if not (_is_within(timestamp, LAST_TIMESTAMP) and _is_within(partition, LAST_PARTITION)):
        raise BadRecord(f"timestamp and partition are whole numbers of 0 or more: {_excerpt(line)}")
    key, value = (_json_bytes(data, name, is_json=name in json_parts) for name in ("key", "value"))
    return Record(key, value, _json_headers(data), timestamp, partition)


JSON_FIELDS = {
    "key", "key_base64", "value", "value_base64", "headers", "timestamp", "timestamp_type", "topic", "partition", "offset",
}  # fmt: skip


def _json_bytes(data: dict[str, Any], name: str, *, is_json: bool = False) -> bytes | None:
    if f"{name}_base64" in data:
        try:
            return base64.b64decode(data[f"{name}_base64"], validate=True)
        except (ValueError, TypeError):
            raise BadRecord(f"{name}_base64 is not base64") from None
    value = data.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) and not is_json else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _encoded(text, name)


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{name} has half of a surrogate pair, which is no text") from None


def _is_within(value: Any, last: int) -> bool:
    return value is None or (isinstance(value, int) and 0 <= value <= last)


def _json_headers(data: dict[str, Any]) -> Headers:
    headers = data.get("headers") or []
    if isinstance(headers, dict):
        headers = [{"key": key, "value": value} for key, value in headers.items()]
    if not isinstance(headers, list) or not all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in headers):
        raise BadRecord('headers are a list of {"key": ..., "value": ...}, or an object')
    for header in headers:
        _encoded(header["key"], "a header")
    return [(header["key"], _json_bytes(header, "value")) for header in headers]


def _template_parser(template: str, null_marker: bytes | None) -> Parser:
    """Parses lines that match the template; a line end at the end of the template is only the separator."""
    pattern, fields = b"", []
    text = template[:-2] if template.endswith("\\n") else template
    position = 0
    for match in TOKEN.finditer(text):
        pattern += re.escape(unescape(text[position : match.start()]))
        position = match.end()
        token = "v" if match[1] == "s" else match[1]
        if token == "%":
            pattern += b"%"
        elif token in "kvhTp" and token not in fields:
            fields.append(token)
            pattern += f"(?P<{token}>.*?)".encode()
        else:
            raise BadInput(f"%{match[1]} is not possible here; a template for input has %k, %v, %h, %T and %p, each once")
    compiled = re.compile(pattern + re.escape(unescape(text[position:])), re.DOTALL)

    def parse(line: bytes) -> Record:
        match = compiled.fullmatch(line)
        if match is None:
            raise BadRecord(f"not like the template {template!r}: {_excerpt(line)}")
        found = {name: None if data == null_marker else data for name, data in match.groupdict().items()}
        timestamp = _number(found.get("T"), line, LAST_TIMESTAMP)
        partition = _number(found.get("p"), line, LAST_PARTITION)
        return Record(found.get("k"), found.get("v"), _parse_headers(found.get("h")), timestamp, partition)

    return parse


def _number(data: bytes | None, line: bytes, most: int) -> int | None:
    if data is None:
        return None
    if not is_number(data, most):
        raise BadRecord(f"a number is expected (0 to {most}), not {_excerpt(data)}, in {_excerpt(line)}")
    return int(data)


def _parse_headers(data: bytes | None) -> Headers:
    headers: Headers = []
    for part in (data or b"").split(b","):
        if part:
            name, equals, value = part.partition(b"=")
            headers.append((name.decode(errors="replace"), value if equals else None))
    return headers


def _excerpt(data: bytes) -> str:
    text = data[:60].decode(errors="replace")
    return repr(text + "..." if len(data) > 60 else text)


# --- printing


def printer_for(format_name: str, *, key_separator: bytes | None, null_marker: bytes | None) -> Printer:
    """The function that formats a message as bytes; raises BadInput if there is no such format."""
    if format_name == "json":
        return print_json
    null = null_marker or b""
    if "%" in format_name:
        return _template_printer(format_name, null)
    if format_name not in {"text", "hex"}:
        raise BadInput(f"no format {format_name!r}; there are text, json, hex, and templates such as '%k %v\\n'")

    def show(data: bytes | None) -> bytes:
        if data is None:
            return null
        return data.hex().encode() if format_name == "hex" else data

    def print_value(message: Any) -> bytes:
        return show(message.value()) + b"\n"

    def print_pair(message: Any) -> bytes:
        assert key_separator is not None
        return b"%b%b%b\n" % (show(message.key()), key_separator, show(message.value()))

    return print_pair if key_separator else print_value


TIMESTAMP_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


def print_json(message: Any) -> bytes:
    return print_json_of(message, {})


def print_json_of(message: Any, decoded: Mapping[str, Any]) -> bytes:
    """The line of a message; `decoded` has its key or value if they are JSON instead of bytes."""
    timestamp_type, timestamp = message.timestamp()
    data: dict[str, Any] = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
    if timestamp_type in TIMESTAMP_TYPES:
        data |= {"timestamp": timestamp, "timestamp_type": TIMESTAMP_TYPES[timestamp_type]}
    data |= {"key": decoded["key"]} if "key" in decoded else _bytes_as_json("key", message.key())
    data |= {"value": decoded["value"]} if "value" in decoded else _bytes_as_json("value", message.value())
    data["headers"] = [{"key": name, **_bytes_as_json("value", value)} for name, value in message.headers() or []]
    return json.dumps(data, ensure_ascii=False).encode() + b"\n"


def _bytes_as_json(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def _size(data: bytes | None) -> bytes:
    return str(-1 if data is None else len(data)).encode()


def _template_printer(template: str, null: bytes) -> Printer:
    def show(data: bytes | None) -> bytes:
        return null if data is None else data

    tokens: dict[str, Printer] = {
        "k": lambda m: show(m.key()),
        "v": lambda m: show(m.value()),
        "s": lambda m: show(m.value()),
        "K": lambda m: _size(m.key()),
        "S": lambda m: _size(m.value()),
        "t": lambda m: str(m.topic()).encode(),
        "p": lambda m: b"%d" % m.partition(),
        "o": lambda m: b"%d" % m.offset(),
        "T": lambda m: b"%d" % m.timestamp()[1],
        "h": lambda m: b",".join(b"%b=%b" % (name.encode(), show(value)) for name, value in m.headers() or []),
        "%": lambda m: b"%",
    }
    parts: list[bytes | Printer] = []
    position = 0
    for match in TOKEN.finditer(template):
        if match[1] not in tokens:
            raise BadInput(f"%{match[1]} is not a token of a template; there are {' '.join('%' + name for name in tokens)}")
        parts += [unescape(template[position : match.start()]), tokens[match[1]]]
        position = match.end()
    parts.append(unescape(template[position:]))
    return lambda message: b"".join(part if isinstance(part, bytes) else part(message) for part in parts)


# --- options


def _check_input(format_name: str) -> None:
    parser_for(format_name, key_separator=None, null_marker=None)


def _check_output(format_name: str) -> None:
    printer_for(format_name, key_separator=None, null_marker=None)


INPUT_FORMAT, OUTPUT_FORMAT = Text(checked(_check_input)), Text(checked(_check_output))
