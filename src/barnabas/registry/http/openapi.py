"""The OpenAPI document of the interface, generated from the tables of routes and the types of bodies at the first request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from barnabas.registry.core.entities import Json
from barnabas.registry.http import bodies
from barnabas.registry.http.all_tables import DOCUMENT, TABLES
from barnabas.registry.http.exchange import CONSUMED, PRODUCED
from barnabas.registry.http.operations import OPERATIONS, Operation
from barnabas.web.routing import NAMED, Response

HEADERS = ((b"content-type", b"application/json"),)
REF = "#/components/schemas/{name}"
# preceding path segment -> name of the parameter `{}`; the second of two parameters in a row has a separate name
NAMES = {
    "subjects": "subject", "config": "subject", "mode": "subject", "versions": "version", "ids": "id", "guids": "guid",
    "contexts": "context", "resources": "resource",
}  # fmt: skip
ALWAYS = {"4XX": "The request is refused", "5XX": "The registry cannot answer"}
ERRORS = {404: "Not found", 409: "In conflict with what is registered", 422: "Not valid"}
OWN = Operation("Get this document", dict[str, Any])


def document() -> Json:
    """The document of all routes."""
    operations = list(_operations())
    types = [bodies.ErrorBody, *(kind for _, _, each in operations for kind in (each.answer, each.body) if kind is not None)]
    shapes, components = msgspec.json.schema_components(types, ref_template=REF)
    by_type = dict(zip(map(str, types), shapes, strict=True))
    paths: Json = {}
    for method, pattern, operation in operations:
        path, parameters = _path(pattern)
        paths.setdefault(path, {})[method.lower()] = _described(operation, method, path, parameters, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "barnabas schema registry", "version": version("barnabas")},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components},
    }


def _operations() -> Iterator[tuple[str, str, Operation]]:
    yield "GET", DOCUMENT, OWN
    for table in TABLES:
        for method, pattern, handler in table:
            yield method, pattern, OPERATIONS[handler]
            if pattern != "/":
                yield method, f"/contexts/{NAMED}{pattern}", OPERATIONS[handler]


def _path(pattern: str) -> tuple[str, list[Json]]:
    """The path with names of parameters, and the parameters."""
    segments, names, before = [], [], ""
    for segment in pattern.strip("/").split("/"):
        if segment == NAMED:
            name = NAMES.get(before, "name")
            while name in names:
                name = f"other{name.capitalize()}"
            names.append(name)
            segments.append(f"{{{name}}}")
        else:
            segments.append(segment)
        before = segment
    return "/" + "/".join(segments), [_parameter("path", name, _shape_of(name)) for name in names]


def _shape_of(name: str) -> Json:
    if name == "id":
        return {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
    return {"type": "string", "minLength": 1}


def _parameter(where: str, name: str, shape: Json) -> Json:
    return {"in": where, "name": name, "schema": shape} | ({"required": True} if where == "path" else {})


def _described(operation: Operation, method: str, path: str, parameters: list[Json], by_type: dict[str, Json]) -> Json:
    error = {"content": {PRODUCED[0]: {"schema": by_type[str(bodies.ErrorBody)]}}}
    found: Json = {"summary": operation.summary, "operationId": f"{method.lower()} {path}", "parameters": parameters}
    for names, shape in (
        (operation.flags, {"type": "boolean"}),
        (operation.texts, {"type": "string"}),
        (operation.numbers, {"type": "integer", "minimum": -(2**31) + 1, "maximum": 2**31 - 1}),
    ):
        found["parameters"] = [*found["parameters"], *(_parameter("query", name, shape) for name in names)]
    if operation.body is not None:
        content = {media: {"schema": by_type[str(operation.body)]} for media in sorted(CONSUMED)}
        found["requestBody"] = {"required": True, "content": content}
    success: Json = {"description": "Done"}
    if operation.answer is not None:
        medias = ("application/json",) if operation is OWN else PRODUCED
        success["content"] = {media: {"schema": by_type[str(operation.answer)]} for media in medias}
    found["responses"] = {str(operation.status): success}
    for status in operation.errors:
        found["responses"][str(status)] = {"description": ERRORS[status], **error}
    for statuses, description in ALWAYS.items():
        found["responses"][statuses] = {"description": description, **error}
    return found


@cache
def answer() -> Response:
    """The answer with the document."""
    return Response(msgspec.json.encode(document()), 200, HEADERS)
