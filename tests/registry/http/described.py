"""Compares requests and answers with the OpenAPI document."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema_rs

from barnabas.registry.http import openapi
from barnabas.registry.http.exchange import HEADERS, V1
from barnabas.web.routing import HttpError, Request, Response, Router

V1_HEADERS = HEADERS[V1]


@cache
def document() -> Any:
    return json.loads(openapi.answer().body)


def routes() -> list[tuple[str, str]]:
    """Method and pattern of every operation of the document."""
    found = [(method.upper(), _pattern(path)) for path, methods in document()["paths"].items() for method in methods]
    return sorted(found, key=lambda route: (route[1], route[0]))


def _pattern(path: str) -> str:
    return "/".join("{}" if segment.startswith("{") else segment for segment in path.split("/"))


@cache
def _router() -> tuple[Router, dict[Any, Any]]:
    router, operations = Router(), {}
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():

            async def handler(request: Request) -> Response:
                raise NotImplementedError

            router.add(method.upper(), _pattern(path), handler)
            operations[handler] = operation
    return router, operations


@cache
def validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator(
        {**json.loads(schema), "components": document()["components"], "$schema": "https://json-schema.org/draft/2020-12/schema"}
    )


def check(request: Request, response: Response, *, any_query: bool = False) -> None:
    """Raises AssertionError for an answer that the document does not have, or a request that it does not allow and that was answered.

    Args:
        any_query: the request may have parameters that the document does not name; they are ignored.
    """
    router, operations = _router()
    handler, refused = None, 0
    try:
        handler, _ = router.find(request.method, request.path)
    except HttpError as error:
        refused = error.status
    if handler is None:
        assert response.status == refused, (request.method, request.path)
        return
    operation, where = operations[handler], (request.method, request.path, response.status)
    responses = operation["responses"]
    found = responses.get(str(response.status)) or responses.get(f"{response.status // 100}XX")
    assert found, where
    media = dict(response.headers).get(b"content-type", b"").decode()
    assert (media in found["content"]) if "content" in found else not response.body, (where, media)
    if response.body:
        _validate(found["content"][media]["schema"], response.body, where)
    if response.status < 300:
        asked = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "query"}
        assert any_query or asked >= request.query.keys(), where
        if "requestBody" in operation:
            _validate(operation["requestBody"]["content"]["application/json"]["schema"], request.body, where)


def _validate(schema: Any, body: bytes, where: object) -> None:
    try:
        validator(json.dumps(schema)).validate(json.loads(body))
    except jsonschema_rs.ValidationError as error:
        raise AssertionError(f"{where}: {error}") from None
