"""Schemas of a registry, with a cache.

The schema of an id never changes, so the cache keeps it. Only the latest version of a subject is requested each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from barnabas import limits
from barnabas.schemas.errors import SchemaDataError
from barnabas.schemas.registry_client import RegistryClient, RegistryError

NOT_FOUND = 404


class Needed(Struct, frozen=True):
    """A schema that another one needs, with its name in the other one. For Protobuf the text is a file descriptor."""

    name: str
    text: str


class RegisteredSchema(Struct, frozen=True):
    """A schema with all schemas that it needs.

    Args:
        id: None if the schema was requested by its guid.
        guid: None if the registry has no guids.
        schema_type: `AVRO`, `JSON` or `PROTOBUF`.
        text: for Protobuf, the file's descriptor in base64, as with `format=serialized`.
        needed: the schemas of its references, each after those that it needs.
    """

    id: int | None
    guid: str | None
    schema_type: str
    text: str
    needed: tuple[Needed, ...] = ()

    def is_same(self, other: RegisteredSchema) -> bool:
        """Whether both read and write the same data."""
        return (self.schema_type, self.text, self.needed) == (other.schema_type, other.text, other.needed)


class RegisteredSchemas:
    """Reads schemas from a registry and caches the answers. Like its client, it is not thread-safe."""

    def __init__(self, client: RegistryClient) -> None:
        self.client = client
        self._known: OrderedDict[tuple[int | str, str | None], RegisteredSchema] = OrderedDict()

    def get(self, name: int | str, subject: str | None = None) -> RegisteredSchema:
        """The schema of this id or guid.

        Args:
            subject: a subject in the context of the id, if that is not the default one.

        Raises:
            SchemaDataError: the schema is not registered.
            RegistryError, RegistryUnreachable: the registry did not answer.
        """
        key = (name, subject)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        kind, word = ("ids", "id") if isinstance(name, int) else ("guids", "guid")
        try:
            answer = self.client.get("schemas", kind, name, subject=subject)
        except RegistryError as error:
            if error.status == NOT_FOUND:
                raise SchemaDataError(f"no schema with the {word} {name} is registered") from error
            raise
        number = name if isinstance(name, int) else answer.get("id")
        return self._keep(key, self._whole(answer, number, ("schemas", kind, name), subject))

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version of a subject. Raises SchemaDataError if there is none."""
        return self.version(subject, "latest")

    def version(self, subject: str, version: int | str) -> RegisteredSchema:
        """A version of a subject, by number or `latest`. Raises SchemaDataError if there is none."""
        try:
            answer = self.client.get("subjects", subject, "versions", version)
        except RegistryError as error:
            if error.status == NOT_FOUND:
                raise SchemaDataError(f"no schema is registered under the subject {subject}: {error.message}") from error
            raise
        return self._whole(answer, int(answer["id"]), ("subjects", subject, "versions", answer["version"]), subject)

    def register(
        self,
        subject: str,
        text: str,
        schema_type: str = "AVRO",
        references: Sequence[dict[str, Any]] = (),
        *,
        normalize: bool = False,
    ) -> RegisteredSchema:
        """Register a text, or find it if it is registered already. Raises RegistryError if the registry refuses it."""
        body = {"schema": text, "schemaType": schema_type, "references": list(references)}
        made = self.client.post("subjects", subject, "versions", body=body, normalize=normalize)
        return self.get(int(made["id"]), subject)

    def _keep(self, key: tuple[int | str, str | None], schema: RegisteredSchema) -> RegisteredSchema:
        self._known[key] = schema
        if len(self._known) > limits.MAX_CACHED_SCHEMAS:
            self._known.popitem(last=False)
        return schema

    def _whole(self, answer: Any, number: int | None, place: tuple[object, ...], subject: str | None) -> RegisteredSchema:
        kind = answer.get("schemaType", "AVRO")
        form = "serialized" if kind == "PROTOBUF" else None
        guid = str(place[-1]) if "guids" in place else answer.get("guid")
        text = answer["schema"] if form is None else self.client.get(*place, subject=subject, format=form)["schema"]
        needed: dict[str, Needed] = {}
        self._collect(answer.get("references") or [], form, needed, 0)
        return RegisteredSchema(number, guid, kind, text, tuple(needed.values()))

    def _collect(self, references: Sequence[Any], form: str | None, needed: dict[str, Needed], depth: int) -> None:
        if depth > limits.MAX_REFERENCE_DEPTH:
            raise SchemaDataError(f"references are deeper than {limits.MAX_REFERENCE_DEPTH}")
        for each in references:
            if each["name"] in needed:
                continue
            version = "latest" if each["version"] == -1 else each["version"]
            answer = self.client.get("subjects", each["subject"], "versions", version, deleted=True, format=form)
            self._collect(answer.get("references") or [], form, needed, depth + 1)
            needed[each["name"]] = Needed(each["name"], answer["schema"])
