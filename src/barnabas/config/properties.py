"""Java .properties files, such as Kafka's server.properties.

A line that ends in an odd number of backslashes continues on the next line. `#` and `!` start a comment at the head of a line
only. The key ends at the first unescaped `=`, `:` or white space. \\t \\n \\r \\f and \\uXXXX are escapes; any other escaped
character means itself. If a key is repeated, the last value counts.

Java decodes a file as ISO-8859-1. Most files are UTF-8, so this module decodes a file as UTF-8, or as ISO-8859-1 if it is not
valid UTF-8. This module writes ASCII with escapes, which is valid in both.

Source: the description of java.util.Properties.load.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

from barnabas.errors import ConfigError

WHITE = " \t\f"
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
WRITTEN = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
PRINTABLE = range(0x20, 0x7F)
MOST_BYTES = 1 << 24  # size of the largest file: it is read as a whole, and could be an endless device
LINE_END = re.compile(r"\r\n|\r|\n")


logger = logging.getLogger(__name__)


def read_properties_file(path: Path | str) -> dict[str, str]:
    """The keys and values of the file at `path`; raises OSError, and ConfigError for an invalid file."""
    return parse_properties_file(read_text(path))


def read_text(path: Path | str) -> str:
    """The text of a file of settings; raises OSError, and ConfigError for a file that is far too large."""
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError("file", str(path), f"at most {MOST_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        logger.warning("event=file-read-as-iso-latin path=%r", str(path))
        return data.decode("iso-8859-1")


def format_properties(properties: Mapping[str, str]) -> str:
    """The text of a file with these keys and values."""
    return "".join(f"{_escaped(key, '=: #!')}={_escaped(value, '')}\n" for key, value in properties.items())


def _escaped(text: str, also: str) -> str:
    out = []
    for position, character in enumerate(text):
        if character in WRITTEN:
            out.append(WRITTEN[character])
        elif character in also or (character == " " and position == 0):
            out.append(f"\\{character}")
        elif ord(character) in PRINTABLE:
            out.append(character)
        else:  # a character above 16 bits is written as two escapes
            data = character.encode("utf-16-be", "surrogatepass")
            out += [f"\\u{data[index : index + 2].hex()}" for index in range(0, len(data), 2)]
    return "".join(out)


def parse_properties_file(text: str) -> dict[str, str]:
    """The keys and values of a file; raises ConfigError for a broken \\u escape."""
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _key_end(line)
        rest = line[end:].lstrip(WHITE)
        if rest[:1] in {"=", ":"}:
            rest = rest[1:].lstrip(WHITE)
        result[_unescape(line[:end])] = _unescape(rest)
    return result


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for natural in LINE_END.split(text):
        line = natural.lstrip(WHITE)
        if pending is None and (not line or line[0] in "#!"):
            continue
        joined = (pending or "") + line
        if _ends_in_odd_backslashes(line):
            pending = joined[:-1]
        else:
            lines.append(joined)
            pending = None
    if pending is not None:
        lines.append(pending)
    return [line for line in lines if line]


def _ends_in_odd_backslashes(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_end(line: str) -> int:
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 2
            continue
        if line[position] in "=:" or line[position] in WHITE:
            return position
        position += 1
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            out += character if character != "\\" else ""
            continue
        escaped = text[position]
        position += 1
        if escaped == "u":
            out.append(_unicode(text, position))
            position += 4
        else:
            out.append(ESCAPES.get(escaped, escaped))
    return _join_surrogates("".join(out))


def _unicode(text: str, position: int) -> str:
    digits = text[position : position + 4]
    if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
        raise ConfigError("\\u" + digits, text, "four hexadecimal digits after \\u")
    return chr(int(digits, 16))


def _join_surrogates(text: str) -> str:
    """Java writes a character beyond 16 bits as two escapes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
