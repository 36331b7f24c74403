"""The filter of a DescribeClientQuotas request (KIP-546), and Kafka's errors for a wrong one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from barnabas.errors import ErrorCode, KafkaError
from barnabas.quota.entities import CLIENT_ID, GROUP, IP, TYPES, USER, Entity


class Match(IntEnum):
    """The kinds of a match, with their numbers in the request."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2  # any name, or the default


class EntityFilter(Struct, frozen=True):
    """Entities with all of these types.

    Args:
        names: the exact names of some types; None for the default.
        any_name: types that may have any name.
        strict: no other types are allowed.
    """

    names: Mapping[str, str | None]
    any_name: frozenset[str]
    strict: bool

    def takes(self, entity: Entity) -> bool:
        found = dict(entity)
        if self.strict and len(found) != len(self.names) + len(self.any_name):
            return False
        if not self.any_name <= found.keys():
            return False
        return all(kind in found and found[kind] == name for kind, name in self.names.items())


def filter_of(components: Sequence[tuple[str, int, str | None]], *, strict: bool) -> EntityFilter:
    """The filter of a request's types, numbers of `Match` and names; raises KafkaError."""
    names: dict[str, str | None] = {}
    any_name: set[str] = set()
    for kind, match, name in components:
        if not kind:
            raise _refused("Invalid empty entity type.")
        if kind in names or kind in any_name:
            raise _refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if match == Match.EXACT:
            if name is None:
                raise _refused("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            names[kind] = name
        elif match in {Match.DEFAULT, Match.SPECIFIED}:
            if name is not None:
                raise _refused(f"Request specified MATCH_TYPE_{Match(match).name}, but also specified a match string.")
            if match == Match.DEFAULT:
                names[kind] = None
            else:
                any_name.add(kind)
        else:
            raise _refused(f"Unknown match type {match}")
    asked = names.keys() | any_name
    if len(asked) > 1 and IP in asked and asked & {USER, CLIENT_ID}:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
            "filter component."
        )
    if len(asked) > 1 and GROUP in asked:
        raise _refused("Invalid entity filter component combination. A group is not combined with others.")
    return EntityFilter(names, frozenset(any_name), strict)


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
