"""The messages for clients about each change of a schema, and the changes that a reader can read."""

from __future__ import annotations

from barnabas.registry.formats.interface import Incompatibility
from barnabas.registry.formats.protobuf.compare import Difference

COMPATIBLE = frozenset(
    (
        "PACKAGE_CHANGED",
        "MESSAGE_ADDED",
        "MESSAGE_MOVED",
        "ENUM_ADDED",
        "ENUM_REMOVED",
        "ENUM_CONST_ADDED",
        "ENUM_CONST_CHANGED",
        "ENUM_CONST_REMOVED",
        "FIELD_ADDED",
        "FIELD_REMOVED",
        "FIELD_NAME_CHANGED",
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "ONEOF_ADDED",
        "ONEOF_REMOVED",
        "ONEOF_FIELD_ADDED",
    )
)

# The exact sentences of Confluent's registry, with double spaces and odd colons, because clients search for them.
_SENTENCES = {
    "MESSAGE_REMOVED": "The new schema is missing a MESSAGE type at path '{path}' in the old schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the new schema does not match the old schema",
    "FIELD_SCALAR_KIND_CHANGED": (
        "The kind of a SCALAR field at path '{path}' in the new schema does not match its kind in the old schema"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The type of a MESSAGE field at path '{path}' in the new schema does not match its type in the old schema"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The label for a NUMERIC field at path '{path}' in the new schema does not match its label in the old schema"
    ),
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the new schema is missing in the old schema",
    "REQUIRED_FIELD_REMOVED": "The new schema is missing a required field at path: '{path}' in the old schema",
    "ONEOF_FIELD_REMOVED": "The new schema is missing a oneof field at path '{path}' in the old schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "Multiple fields in the oneof at path '{path}' in the new schema are outside a oneof in the old schema"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "A field in the oneof at path '{path}' in the new schema is outside an existing oneof in the old schema"
    ),
}

_FRAME = '{{errorType:"{kind}", description:"{description}"}}'
OTHER_FORMAT = "Incompatible because of different schema type"


def incompatibilities(changes: list[Difference]) -> list[Incompatibility]:
    """The changes that a reader cannot read, each with its message. In the messages, the reader's schema is the new one."""
    minded = (each for each in changes if each.kind not in COMPATIBLE)
    return [Incompatibility.of(each.kind, _SENTENCES[each.kind], _FRAME, path=each.path) for each in minded]
