"""JSON in the form of Avro's Java library, because canonical texts must have the same bytes as in Confluent's registry."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import msgspec

from barnabas.limits import MAX_AVRO_DEPTH
from barnabas.registry.formats.interface import InvalidSchema

_quote = json.JSONEncoder(ensure_ascii=False).encode
_LOWER_ESCAPE = re.compile(r"\\u00[01][0-9a-f]")
# An unclosed string or comment matches up to the end, so the search takes linear time.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)


def read_json(text: str) -> Any:
    """The JSON value of `text`, which may contain comments as in Java and C. Raises InvalidSchema."""
    if not text or text.isspace():
        raise InvalidSchema("The schema is empty")
    try:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            if "/*" not in text and "//" not in text:
                raise
            return msgspec.json.decode(_STRING_OR_COMMENT.sub(_without_comment, text))
    except RecursionError:
        raise InvalidSchema(f"The schema is nested deeper than {MAX_AVRO_DEPTH} levels") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidSchema(f"The schema is not JSON: {error}") from None


def _without_comment(match: re.Match[str]) -> str:
    found = match[0]
    return found if found.startswith('"') else " "


def string_text(value: str) -> str:
    """A string in quotes; its escapes have capital letters, as in Java."""
    quoted = _quote(value)
    if "\\u00" in quoted:
        return re.sub(r"\\\\|" + _LOWER_ESCAPE.pattern, lambda match: match[0][:2] + match[0][2:].upper(), quoted)
    return quoted


def float_text(value: float) -> str:
    """A number as in Java's `Double.toString`: with an exponent below 0.001 and from 10,000,000 on."""
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - 1
    if len(shown) == 1:  # Java writes at least two digits, the two nearest to the value
        mantissa, _, scale = f"{size:.1e}".partition("e")
        return f"{'-' * sign}{mantissa}E{int(scale)}"
    return f"{'-' * sign}{shown[0]}.{shown[1:]}E{power}"


def json_text(value: Any, *, ordered: bool = False, depth: int = MAX_AVRO_DEPTH) -> str:
    """The text without spaces. With `ordered` the members of objects are sorted. Raises InvalidSchema if it is nested too deep."""
    if isinstance(value, str):
        return string_text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value)
    if depth <= 0:
        raise InvalidSchema(f"A value in the schema is nested deeper than {MAX_AVRO_DEPTH} levels")
    if isinstance(value, list):
        return "[" + ",".join([json_text(item, ordered=ordered, depth=depth - 1) for item in value]) + "]"
    keys = sorted_names(value) if ordered else value
    members = [f"{string_text(key)}:{json_text(value[key], ordered=ordered, depth=depth - 1)}" for key in keys]
    return "{" + ",".join(members) + "}"


def sorted_names(names: Any) -> list[str]:
    """Names in the order of Java's strings, which compare UTF-16 code units."""
    return sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
