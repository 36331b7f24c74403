"""Asks a schema registry, in a thread, whether an id is registered as a rule demands.

| question | requests |
|---|---|
| a GUID | `GET /schemas/guids/{guid}/ids` for the id of the default context |
| the id under a subject | `GET /schemas/ids/{id}/subjects`; if the subject is not among them, `GET /config/{subject}` for its alias |
| the id under the name of its record | before that `GET /schemas/ids/{id}`; of Protobuf also with `format=serialized` |
"""

from __future__ import annotations

from http.client import NOT_FOUND, UNPROCESSABLE_ENTITY
from typing import Any

from barnabas.protocol.records.schema_ids import ID_BYTES, SchemaId
from barnabas.schemas.record_names import NoName, record_names
from barnabas.schemas.registry_client import RegistryClient, RegistryError
from barnabas.server.schema_validation.subject import Question, SubjectRule, Verdict

DEFAULT_CONTEXT = "."
PAGE = 1_000  # names in one page; if an answer has so many, more may follow


def verdict_of(client: RegistryClient, question: Question) -> Verdict:
    """The registry's answer to a question.

    Raises:
        RegistryError, RegistryUnreachable: the registry has no answer.
    """
    rule = question.rule
    schema_id = _number(client, question.schema_id)
    if schema_id is None:
        return Verdict(False, str(rule))
    candidates = [rule.prefix]
    if rule.by_record:
        candidates = _by_record(client, schema_id, rule)
        if not candidates:
            return Verdict(False, str(rule))
    is_registered = any(_is_under(client, schema_id, subject) for subject in candidates)
    return Verdict(is_registered, " or ".join(candidates[:3]))


def _get(client: RegistryClient, *path: object, **query: object) -> Any:
    """The JSON of the answer; None if the item does not exist or is invalid."""
    try:
        return client.get(*path, **query)
    except RegistryError as error:
        if error.status in (NOT_FOUND, UNPROCESSABLE_ENTITY):
            return None
        raise


def _number(client: RegistryClient, schema_id: SchemaId) -> int | None:
    if len(schema_id) == ID_BYTES:
        number = int.from_bytes(schema_id[1:], signed=True)
        return None if number < 0 else number  # no registry gives negative ids
    text = schema_id[1:].hex()
    guid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    for each in _get(client, "schemas", "guids", guid, "ids") or []:
        if each.get("context") == DEFAULT_CONTEXT:
            return int(each["id"])
    return None


def _by_record(client: RegistryClient, schema_id: int, rule: SubjectRule) -> list[str]:
    found = _get(client, "schemas", "ids", schema_id)
    if found is None:
        return []
    kind = str(found.get("schemaType", "AVRO"))
    if kind == "PROTOBUF":
        found = _get(client, "schemas", "ids", schema_id, format="serialized") or {}
    try:
        return [rule.prefix + name for name in record_names(kind, str(found.get("schema", "")))]
    except NoName:
        return []


def _is_under(client: RegistryClient, schema_id: int, subject: str) -> bool:
    subjects = _subjects(client, schema_id, subject)
    if not subjects or subject in subjects:
        return bool(subjects)
    alias = (_get(client, "config", subject) or {}).get("alias")
    return alias is not None and alias in subjects


def _subjects(client: RegistryClient, schema_id: int, subject: str) -> set[str]:
    """The subjects of the default context in which an id is registered."""
    found: set[str] = set()
    while True:
        page = _get(client, "schemas", "ids", schema_id, "subjects", subject=subject, offset=len(found) or None) or []
        before = len(found)
        found.update(page)
        if len(page) < PAGE or len(found) == before:  # a registry without pages gives the same names again
            return found
