"""Requests and answers of the interface: media types, bodies, numbers, booleans and pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from barnabas.registry.core import errors
from barnabas.registry.core.entities import Json
from barnabas.web.routing import HttpError, Request, Response

V1 = "application/vnd.schemaregistry.v1+json"
PRODUCED = (V1, "application/vnd.schemaregistry+json", "application/json")
CONSUMED = frozenset({*PRODUCED, "application/octet-stream"})
HEADERS = {media: ((b"content-type", media.encode()),) for media in (*PRODUCED, "text/plain")}
LARGEST = 2**31 - 1
Item = TypeVar("Item")
encode = msgspec.json.Encoder().encode


def media_type(request: Request) -> str:
    """The first media type on offer that the client accepts. Raises HttpError 406."""
    accept = request.headers.get("accept", "")
    if not accept or accept == "*/*" or accept == V1:
        return V1
    best, weight = "", 0.0
    for part in accept.split(","):
        wanted, _, parameters = part.partition(";")
        quality = _quality(parameters)
        found = _produced(wanted.strip().lower())
        if found and quality > weight:
            best, weight = found, quality
    if not best:
        raise HttpError(406, "HTTP 406 Not Acceptable")
    return best


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _produced(wanted: str) -> str:
    """The media type of an answer for one that the client accepts. As in Confluent's registry, `*` means all types, alone or
    before any subtype."""
    if wanted.partition("/")[0] == "*" or wanted == "application/*":
        return V1
    return wanted if wanted in PRODUCED else ""


def answer(request: Request, value: Any, status: int = 200) -> Response:
    """An answer with a value as JSON."""
    return raw(request, encode(value), status)


def raw(request: Request, body: bytes, status: int = 200) -> Response:
    """An answer with finished JSON."""
    return Response(body, status, HEADERS[media_type(request)])


def body_of(request: Request, kind: type[Struct]) -> Json:
    """The body: a JSON object with the fields and types of `kind`. Raises HttpError 415, 400 or 422."""
    media = request.headers.get("content-type", V1).partition(";")[0].strip().lower()
    if media not in CONSUMED and media != "":
        raise HttpError(415, "HTTP 415 Unsupported Media Type")
    if not request.body:
        raise HttpError(422, "The request has no body", 422)
    try:
        found = msgspec.json.decode(_utf8(request.body))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"The request is no JSON: {error}", 400) from None
    except RecursionError:
        raise HttpError(400, "The request is nested too deeply", 400) from None
    if not isinstance(found, dict):
        raise HttpError(400, "The request is no JSON object", 400)
    try:
        msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise HttpError(422, f"The request has a field of another type: {error}", 422) from None
    return found


def _utf8(body: bytes) -> bytes:
    """JSON in UTF-8. Clients may also send UTF-16 and UTF-32; the first bytes show the encoding."""
    encoding = "utf-8" if body[0] in b"{[" and body[1:2] != b"\0" else json.detect_encoding(body)
    return body if encoding == "utf-8" else body.decode(encoding).encode()


def flag(request: Request, name: str) -> bool:
    """A boolean parameter; a name without a value is false, as in Confluent's registry."""
    return request.query.get(name, "").lower() == "true"


def number(request: Request, name: str, default: int) -> int:
    """A number parameter. Raises HttpError 404 for other text, like Confluent's registry."""
    text = request.query.get(name)
    if text is None or text == "":
        return default
    return integer(text)


def integer(text: str) -> int:
    """A number in a path. Raises HttpError 404."""
    try:
        found = int(text)
    except ValueError:
        raise HttpError(404, "HTTP 404 Not Found") from None
    if not -LARGEST <= found <= LARGEST:
        raise HttpError(404, "HTTP 404 Not Found")
    return found


def version_number(text: str) -> int:
    """A version in a path; -1 for the latest. Raises HttpError 42202."""
    if text.lower() == "latest":
        return -1
    try:
        found = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if found != -1 and not 1 <= found <= LARGEST:
        raise errors.invalid_version(text)
    return found


def page(request: Request, items: Sequence[Item], most: int) -> Sequence[Item]:
    """The part of a list for the parameters `offset` and `limit`. A limit that is not positive, or too large, means `most`."""
    offset, limit = max(0, number(request, "offset", 0)), number(request, "limit", -1)
    return items[offset : offset + (limit if 0 < limit <= most else most)]


def many(request: Request, name: str) -> list[str]:
    """All values of a parameter."""
    found = [value for key, value in request.queries if key == name]
    return found or ([request.query[name]] if name in request.query else [])
