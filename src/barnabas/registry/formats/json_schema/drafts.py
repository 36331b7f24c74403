"""The drafts of JSON Schema: finds the draft of a text, and checks the text against the metaschema of its draft.

The metaschemas are in jsonschema-rs. The validators are offline: they never read a file or use the network.
"""

from __future__ import annotations

import enum
import functools
import json

import jsonschema_rs

from barnabas.registry.formats.interface import InvalidSchema
from barnabas.registry.formats.json_schema.text import Json


class Draft(enum.IntEnum):
    """A draft; later drafts are greater."""

    DRAFT_4 = 4
    DRAFT_6 = 6
    DRAFT_7 = 7
    DRAFT_2019_09 = 2019
    DRAFT_2020_12 = 2020


METASCHEMAS = {
    Draft.DRAFT_4: "http://json-schema.org/draft-04/schema",
    Draft.DRAFT_6: "http://json-schema.org/draft-06/schema",
    Draft.DRAFT_7: "http://json-schema.org/draft-07/schema",
    Draft.DRAFT_2019_09: "https://json-schema.org/draft/2019-09/schema",
    Draft.DRAFT_2020_12: "https://json-schema.org/draft/2020-12/schema",
}
_DRAFT_OF_PLACE = {uri.partition("://")[2]: draft for draft, uri in METASCHEMAS.items()}
_VALIDATORS = {
    Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}


def draft_of(schema: Json, default: Draft = Draft.DRAFT_7) -> Draft:
    """The draft that `$schema` names; `default` if it is absent or names another dialect."""
    named = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(named, str):
        return default
    return _DRAFT_OF_PLACE.get(named.rstrip("#").partition("://")[2], default)


@functools.lru_cache(maxsize=len(Draft))
def _metaschema(draft: Draft) -> jsonschema_rs.Validator:
    return _VALIDATORS[draft]({"$ref": METASCHEMAS[draft] + "#"}, validate_formats=False, offline=True)


def check(text: str, schema: Json, draft: Draft) -> None:
    """Raise InvalidSchema if the schema does not fit the metaschema of its draft. `text` is the text of `schema`."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise InvalidSchema("Invalid JSON Schema: the schema is neither an object nor a boolean")
    try:
        _metaschema(draft).validate(json.loads(text))
    except jsonschema_rs.ValidationError as error:
        place = "#/" + "/".join(str(step) for step in error.instance_path)
        raise InvalidSchema(f"Invalid JSON Schema at '{place[:200]}': {error.message[:500]}") from None
    except ValueError as error:  # a number is too large for jsonschema-rs
        raise InvalidSchema(f"Invalid JSON Schema: {error}") from None
