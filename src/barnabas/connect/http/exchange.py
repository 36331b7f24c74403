"""Bodies of requests, and answers, as Kafka Connect reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from barnabas.connect.herder import errors
from barnabas.connect.herder.records import Target
from barnabas.web.routing import HttpError, Request, Response

JSON = ((b"content-type", b"application/json"),)
FIELDS = frozenset({"name", "config", "initial_state"})
STATES = {"RUNNING": Target.STARTED, "PAUSED": Target.PAUSED, "STOPPED": Target.STOPPED}


def answer(data: Any, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """An answer as JSON."""
    return Response(msgspec.json.encode(data), status, (*JSON, *headers))


def nothing(status: int) -> Response:
    """An answer without a body."""
    return Response(b"", status)


def error_response(error: HttpError) -> Response:
    """A refusal."""
    return answer({"error_code": error.code, "message": error.message}, error.status)


def body_of(request: Request) -> Any:
    """The body as JSON; None without one. Numbers stay the text that they are. Raises HttpError 415, 500."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind and kind != "application/json":
        raise HttpError(415, "HTTP 415 Unsupported Media Type")
    if not request.body:
        return None
    try:
        return json.loads(request.body, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise errors.unusable(f"the body is not JSON: {error}") from None


def config_of(data: Any) -> dict[str, str | None]:
    """A config of a body: numbers and booleans become text. Raises HttpError 500."""
    if not isinstance(data, dict):
        raise errors.unusable("a config is an object of keys and values")
    return {key: _text(key, value) for key, value in data.items()}


def _text(key: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise errors.unusable(f"the value of {key} in a config is text")


def new_connector(data: Any) -> tuple[str, dict[str, str | None], Target | None]:
    """Name, config and first state in the body of a request to create. Raises HttpError 500."""
    if not isinstance(data, dict):
        raise errors.unusable("the body is an object with name, config and, if wanted, initial_state")
    if unknown := sorted(data.keys() - FIELDS):
        raise errors.unusable(
            f'Unrecognized field "{unknown[0]}", not marked as ignorable (3 known properties: "config", "name", "initial_state")'
        )
    name, state = data.get("name"), data.get("initial_state")
    if not isinstance(name, str | int | None):
        raise errors.unusable("the name of a connector is text")
    if state is not None and (not isinstance(state, str) or state.upper() not in STATES):
        raise errors.unusable(f"initial_state is one of {', '.join(STATES)}, not {state}")
    return str(name or "").strip(), config_of(data.get("config")), None if state is None else STATES[state.upper()]


def flag(query: Mapping[str, str], name: str, *, default: bool) -> bool:
    """A parameter that is true or false."""
    text = query.get(name)
    return default if text is None else text.lower() == "true"
