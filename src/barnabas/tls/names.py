"""Names in a certificate: its subject in Java's form, and its alternative names.

Owns a reader for the necessary part of DER. Access control lists contain Kafka's text of a subject, so the text must be exactly
the same: that of `X500Principal.getName()`, which is RFC 2253 with these details:

  - The most specific part comes first; parts are joined by `,`, the attributes of one part by `+`.
  - CN, C, L, S(T), O, OU, STREET, DC and UID have names. Any other attribute, or a value that is not a string, is its number
    and the bytes of its value in hexadecimal (`#16...`).
  - `, = + < > # ; " \\` get a backslash before them at every position, blanks only at both ends, and a zero byte is `\\00`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import NamedTuple

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
STRING_TAGS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})  # UTF8, Printable, T61, IA5, General, Universal, BMP
ESCAPED = frozenset(',=+<>#;"\\')
VERSION_TAG, EXTENSIONS_TAG, EMAIL_TAG, DNS_TAG, URI_TAG, ADDRESS_TAG = 0xA0, 0xA3, 0x81, 0x82, 0x86, 0x87
KIND_OF_NAME = {EMAIL_TAG: "email", DNS_TAG: "DNS", URI_TAG: "URI"}


class Value(NamedTuple):
    """One value of DER: its tag, its content, and all its bytes (tag, length, content)."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate (DER) that OpenSSL has accepted."""
    return name_text(_fields(certificate)[5].content)


def values_of_subject(certificate: bytes, keyword: str) -> list[str]:
    """The values of one attribute (OU) in the subject of a certificate, unchanged; values that are not strings are left out."""
    found = []
    for part in _values(_fields(certificate)[5].content):
        for attribute in _values(part.content):
            identifier, value = _values(attribute.content)
            if KEYWORDS.get(_number(identifier.content)) == keyword and value.tag in STRING_TAGS:
                found.append(value.content.decode(errors="replace"))
    return found


def alternative_names_of(certificate: bytes) -> frozenset[str]:
    """The alternative names, each with its kind as a prefix."""
    names: set[str] = set()
    for field in _fields(certificate)[7:]:
        if field.tag == EXTENSIONS_TAG:
            (extensions,) = _values(field.content)
            for extension in _values(extensions.content):
                parts = list(_values(extension.content))
                if _number(parts[0].content) == SUBJECT_ALTERNATIVE_NAME:
                    (general_names,) = _values(parts[-1].content)
                    names.update(_general_name(value) for value in _values(general_names.content))
    return frozenset(names)


def name_text(name: bytes) -> str:
    """The text of a distinguished name; `name` is the content of its sequence."""
    parts = ["+".join(_attribute_text(attribute) for attribute in _values(part.content)) for part in _values(name)]
    return ",".join(reversed(parts))


def _fields(certificate: bytes) -> list[Value]:
    """The fields of a certificate: version, serial number, algorithm, issuer, validity, subject, key, and further ones."""
    (whole,) = _values(certificate)
    fields = list(_values(next(_values(whole.content)).content))
    return fields if fields[0].tag == VERSION_TAG else [fields[0], *fields]  # a version 1 certificate has no version field


def _attribute_text(attribute: Value) -> str:
    identifier, value = _values(attribute.content)
    number = _number(identifier.content)
    keyword = KEYWORDS.get(number)
    if keyword is None or value.tag not in STRING_TAGS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(value.content.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    out = "".join("\\" + c if c in ESCAPED else "\\00" if c == "\0" else c for c in text)
    lead = len(out) - len(out.lstrip(" \r"))
    end = len(out.rstrip(" \r"))
    if lead == len(out):
        return "".join("\\" + c for c in out)
    return "".join("\\" + c for c in out[:lead]) + out[lead:end] + "".join("\\" + c for c in out[end:])


def _general_name(value: Value) -> str:
    if value.tag == ADDRESS_TAG and len(value.content) in {4, 16}:
        return f"IP:{ipaddress.ip_address(value.content)}"
    kind = KIND_OF_NAME.get(value.tag)
    return f"{value.tag:#x}:{value.content.hex()}" if kind is None else f"{kind}:{value.content.decode(errors='replace')}"


def _values(data: bytes) -> Iterator[Value]:
    position = 0
    while position < len(data):
        tag, length, start = data[position], data[position + 1], position + 2
        if length & 0x80:
            start += length & 0x7F
            length = int.from_bytes(data[position + 2 : start], "big")
        yield Value(tag, data[start : start + length], data[position : start + length])
        position = start + length


def _number(content: bytes) -> str:
    """An object identifier as its numbers."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
