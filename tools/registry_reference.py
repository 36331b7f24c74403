"""The page `docs/reference/registry-rest.md`: the registry's interface from its OpenAPI document, its rights and its errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from barnabas.registry.core import errors
from barnabas.registry.http import rights
from barnabas.registry.http.all_tables import DOCUMENT
from barnabas.registry.http.openapi import document
from barnabas.web.routing import NAMED, HttpError

Json = dict[str, Any]
SECTIONS = {
    "subjects": "Subjects and versions", "compatibility": "Compatibility", "schemas": "Schemas by id and guid",
    "config": "Configs", "mode": "Modes", "contexts": "Contexts", "associations": "Associations", "": "The registry itself",
}  # fmt: skip
IN_CONTEXT = re.compile(r"/contexts/\{\w+\}(?=/)")
REF = re.compile(r".*/")
NEEDS_CLUSTER = "of the cluster"
INTRO = """# REST interface of the schema registry

Every route, its parameters, its bodies and the errors. The interface is Confluent's, with
[these differences](../guides/schema-registry.md#what-differs-from-confluents). `/openapi.json` serves the same as an OpenAPI document.
{generated}

- Bodies are JSON: `application/vnd.schemaregistry.v1+json`, `application/vnd.schemaregistry+json`, `application/json`, and for requests
  `application/octet-stream` too.
- A route also works below `/contexts/{{context}}`, where it means the subjects, ids and settings of that context.
- `version` is a number, `latest` or `-1`. Names in a path are percent-encoded: `/subjects/a%2Fb/versions` is about the subject `a/b`.
- A right counts where callers log in. It is one of the cluster on the topic of the subject: `orders` for `orders-key` and
  `orders-value`. A route without a right in the table shows and changes only what the caller may.
"""


def registry_page(generated: str) -> str:
    """The page; `generated` is the note on its source."""
    described = document()
    lines = [INTRO.format(generated=generated), *_routes(described["paths"]), "## Bodies", ""]
    lines += ["A field with `?` may be absent, or null in a request.", ""]
    for name, shape in sorted(described["components"]["schemas"].items()):
        lines += _body(name, shape)
    return "\n".join([*lines, *_errors(), ""])


def _routes(paths: Json) -> Iterator[str]:
    plain = [path for path in paths if not IN_CONTEXT.match(path)]
    for segment, title in SECTIONS.items():
        yield from (f"## {title}", "", "| request | effect | parameters | body | answer | right |", "|---|---|---|---|---|---|")
        for path in plain:
            first = path.strip("/").partition("/")[0].partition(":")[0]
            if first == segment or (not segment and first not in SECTIONS):
                yield from (_route(path, method, operation) for method, operation in paths[path].items())
        yield ""


def _route(path: str, method: str, operation: Json) -> str:
    parameters = ", ".join(f"`{each['name']}`" for each in operation["parameters"] if each["in"] == "query")
    body = _content(operation.get("requestBody"))
    status, answer = next((status, each) for status, each in operation["responses"].items() if status.startswith("2"))
    said = " ".join(filter(None, ("" if status == "200" else f"{status}", _content(answer))))
    cells = f"`{method.upper()} {path}`", operation["summary"], parameters, body, said, _right(method.upper(), path)
    return f"| {' | '.join(cells)} |"


def _right(method: str, path: str) -> str:
    """The cluster's operation that a route needs."""
    rule = rights.RULES.get((method, re.sub(r"\{\w+\}", NAMED, path)), rights.OTHERWISE)
    if rule.right is None or path == DOCUMENT:
        return ""
    operation = rule.right.on_topic if rule.on_subject else rule.right.on_cluster
    name = operation.name.title().replace("_", "")
    return name if rule.on_subject else f"{name} {NEEDS_CLUSTER}"


def _content(part: Json | None) -> str:
    contents = (part or {}).get("content")
    return "" if not contents else _type(next(iter(contents.values()))["schema"])


def _type(shape: Json) -> str:
    """A type in words, without null, since a field that may be null may also be absent."""
    if "$ref" in shape:
        name = REF.sub("", shape["$ref"])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in shape:
        return " or ".join(_type(each) for each in shape["anyOf"] if each.get("type") != "null")
    if shape.get("type") == "array":
        return f"list of {_type(shape['items'])}"
    values = shape.get("additionalProperties")
    if isinstance(values, dict) and values:
        return f"object of {_type(values)}"
    return str(shape.get("type", "any JSON"))


def _body(name: str, shape: Json) -> Iterator[str]:
    yield from (f"### {name}", "", shape.get("description", ""), "", "| field | type |", "|---|---|")
    for field, kind in shape.get("properties", {}).items():
        yield f"| `{field}`{'' if field in shape.get('required', ()) else ' ?'} | {_type(kind)} |"
    yield ""


def _errors() -> Iterator[str]:
    yield from ("## Errors", "", "An error has the status and a body [ErrorBody](#errorbody).", "")
    yield from ("| status | code | message |", "|---|---|---|")
    functions = [each for _, each in inspect.getmembers(errors, inspect.isfunction) if each.__module__ == errors.__name__]
    found = [each(*map(_placeholder, inspect.signature(each).parameters.values())) for each in functions]
    found += [rights.denied(rights.WRITE, "{subject}")]
    for error in sorted((each for each in found if isinstance(each, HttpError)), key=lambda each: each.code):
        text = "says what is wrong" if error.message == "{text}" else f"`{error.message}`"
        yield f"| {error.status} | {error.code} | {text} |"


def _placeholder(parameter: inspect.Parameter) -> str | list[str]:
    name = f"{{{parameter.name}}}"
    return [name] if "Iterable" in str(parameter.annotation) else name
