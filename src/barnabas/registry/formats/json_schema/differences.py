"""The differences between two schemas: the kinds that break a reader, and the sentence of Confluent's registry for each kind."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.limits import MAX_JSON_SCHEMA_PATH_CHARACTERS
from barnabas.registry.formats.interface import Incompatibility

BOUNDS_FROM_ABOVE = ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM", "MAX_PROPERTIES", "MAX_ITEMS", "MAX_CONTAINS")
BOUNDS_FROM_BELOW = ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM", "MIN_PROPERTIES", "MIN_ITEMS", "MIN_CONTAINS")
_CONTENTS = ("ADDITIONAL_PROPERTIES", "ADDITIONAL_ITEMS", "UNEVALUATED_PROPERTIES", "UNEVALUATED_ITEMS")

COMPATIBLE = frozenset(
    [f"{bound}_{change}" for bound in BOUNDS_FROM_ABOVE for change in ("INCREASED", "REMOVED")]
    + [f"{bound}_{change}" for bound in BOUNDS_FROM_BELOW for change in ("DECREASED", "REMOVED")]
    + [f"{content}_{change}" for content in _CONTENTS for change in ("ADDED", "EXTENDED")]
    + [
        "ID_CHANGED",
        "TITLE_CHANGED",
        "DESCRIPTION_CHANGED",
        "DEFAULT_CHANGED",
        "SCHEMA_REMOVED",
        "TYPE_EXTENDED",
        "PATTERN_REMOVED",
        "MULTIPLE_OF_REDUCED",
        "MULTIPLE_OF_REMOVED",
        "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED",
        "REQUIRED_ATTRIBUTE_REMOVED",
        "DEPENDENCY_ARRAY_NARROWED",
        "DEPENDENCY_ARRAY_REMOVED",
        "DEPENDENCY_SCHEMA_REMOVED",
        "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "UNIQUE_ITEMS_REMOVED",
        "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL",
        "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL",
        "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ENUM_ARRAY_EXTENDED",
        "COMBINED_TYPE_EXTENDED",
        "PRODUCT_TYPE_NARROWED",
        "SUM_TYPE_EXTENDED",
        "NOT_TYPE_NARROWED",
    ]
)

LENIENT = COMPATIBLE | frozenset(  # differences that `compatibilityPolicy=LENIENT` allows
    {
        "ADDITIONAL_PROPERTIES_NARROWED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    }
)

_FRAME = '{{errorType:"{kind}", description:"{description}"}}'
_KEYWORD = "The keyword at path '{path}' in the new schema is not present in the old schema"
_MORE = "The value at path '{path}' in the new schema is more than its value in the old schema"
_LESS = "The value at path '{path}' in the new schema is less than its value in the old schema"
_CHANGED = "The value at path '{path}' is different between the new and old schema"
_FEWER = "An array or combined type at path '{path}' has fewer elements in the new schema than the old schema"
_EXTENDED = "An array or combined type at path '{path}' has more elements in the new schema than the old schema"
_TYPE = "A type at path '{path}' is different between the new schema and the old schema"
_OPEN = "The new schema has an open content model and has a property or item at path '{path}' which is missing in the old schema"
_UNOPEN = (
    "The new schema has an unopen content model and has a required property at path '{path}' which is missing in the old schema"
)
_CLOSED = "The new schema has a closed content model and is missing a property or item present at path '{path}' in the old schema"
_REMOVED = (
    "A property or item is missing in the new schema but present at path '{path}' in the old schema"
    " and is not covered by its partially open content model"
)
_ADDED = (
    "The new schema has a property or item at path '{path}' which is missing in the old schema"
    " and is not covered by its partially open content model"
)
_SENTENCES = {
    **{f"{bound}_ADDED": _KEYWORD for bound in (*BOUNDS_FROM_ABOVE, *BOUNDS_FROM_BELOW, "MULTIPLE_OF", "PATTERN")},
    **{f"{bound}_INCREASED": _MORE for bound in BOUNDS_FROM_BELOW},
    **{f"{bound}_DECREASED": _LESS for bound in BOUNDS_FROM_ABOVE},
    **{f"{content}_REMOVED": _KEYWORD for content in _CONTENTS},
    **{f"{content}_NARROWED": _FEWER for content in _CONTENTS},
    "MULTIPLE_OF_EXPANDED": _MORE,
    "REQUIRED_ATTRIBUTE_ADDED": _KEYWORD,
    "DEPENDENCY_ARRAY_ADDED": _KEYWORD,
    "DEPENDENCY_SCHEMA_ADDED": _KEYWORD,
    "UNIQUE_ITEMS_ADDED": _KEYWORD,
    "ENUM_ARRAY_NARROWED": _FEWER,
    "SUM_TYPE_NARROWED": _FEWER,
    "PATTERN_CHANGED": _CHANGED,
    "MULTIPLE_OF_CHANGED": _CHANGED,
    "DEPENDENCY_ARRAY_CHANGED": _CHANGED,
    "TYPE_CHANGED": _TYPE,
    "TYPE_NARROWED": _TYPE,
    "COMBINED_TYPE_CHANGED": _TYPE,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _TYPE,
    "ENUM_ARRAY_CHANGED": _TYPE,
    "DEPENDENCY_ARRAY_EXTENDED": _EXTENDED,
    "PRODUCT_TYPE_EXTENDED": _EXTENDED,
    "SUM_TYPE_EXTENDED": _EXTENDED,
    "NOT_TYPE_EXTENDED": _EXTENDED,
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _OPEN,
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": _OPEN,
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": _OPEN,
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": _OPEN,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": _UNOPEN,
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": _CLOSED,
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": _CLOSED,
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _REMOVED,
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _REMOVED,
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _ADDED,
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": _ADDED,
    "TOO_LARGE_TO_COMPARE": "The schemas at path '{path}' take too many comparisons to tell whether they are compatible",
}  # Confluent's registry has an empty sentence for all other kinds, such as SCHEMA_ADDED


class Difference(NamedTuple):
    """One difference.

    Args:
        kind: Confluent's name of the difference.
        path: the steps from the compared schemas to the place of the difference.
    """

    kind: str
    path: tuple[str, ...] = ()

    @property
    def compatible(self) -> bool:
        """Whether a reader with the updated schema can still read all data of the original one."""
        return self.kind in COMPATIBLE

    @property
    def location(self) -> str:
        """The path in the form of messages, such as `#/properties/id`."""
        return ("#/" + "/".join(self.path))[:MAX_JSON_SCHEMA_PATH_CHARACTERS]


def incompatibility(difference: Difference) -> Incompatibility:
    """The answer of the registry for a difference that breaks a reader."""
    return Incompatibility.of(difference.kind, _SENTENCES.get(difference.kind, ""), _FRAME, path=difference.location)
