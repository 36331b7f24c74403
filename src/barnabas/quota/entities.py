"""The entities of quotas, the quotas that each entity can have, and Kafka's errors for wrong ones.

An entity is one or several pairs of a type and a name; the name None means all names without a quota of their own. Users and
client ids may be combined. Kafka has no consumer groups as entities, so it has no quota for the consumption of a whole group.
"""

from __future__ import annotations

import ipaddress
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.errors import ErrorCode, KafkaError

USER, CLIENT_ID, IP, GROUP = "user", "client-id", "ip", "group"
_ORDER = {CLIENT_ID: 0, USER: 1, IP: 2, GROUP: 3}  # order of the types in an entity, as in Kafka's responses
TYPES = frozenset(_ORDER)

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

MAX_INT, MAX_LONG = 2**31 - 1, 2**63 - 1
FRACTION = 1e-6  # tolerated deviation from a whole number
_WHOLE: Mapping[str, tuple[str, int]] = {  # quotas that must be whole numbers: Kafka's name of the type, and the largest value
    PRODUCER_BYTE_RATE: ("a LONG", MAX_LONG),
    CONSUMER_BYTE_RATE: ("a LONG", MAX_LONG),
    CONNECTION_CREATION_RATE: ("an INT", MAX_INT),
}
_OF_CLIENTS = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})

Entity = tuple[tuple[str, str | None], ...]  # pairs of type and name, in the order of `_ORDER`
Quotas = Mapping[str, float]


def entity_of(pairs: Iterable[tuple[str, str | None]]) -> Entity:
    """The entity of these pairs: each type once, with its last name."""
    return tuple(sorted(dict(pairs).items(), key=lambda pair: _ORDER.get(pair[0], len(_ORDER))))


def check_entity(entity: Entity) -> None:
    """Raises KafkaError(INVALID_REQUEST) for an invalid entity."""
    if not entity:
        raise _refused("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in TYPES:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
    names = dict(entity)
    if IP in names and names.keys() & {USER, CLIENT_ID}:
        raise _refused("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if len(names) > 1 and GROUP in names:
        raise _refused("Invalid quota entity combination, a group is not combined with others")
    address = names.get(IP)
    if address is not None and not is_address(address):
        raise _refused(f"{address} is not a valid IP or resolvable host.")


def keys_of(entity: Entity) -> frozenset[str]:
    """The quotas that the entity can have."""
    kinds = {kind for kind, _ in entity}
    if IP in kinds:
        return frozenset({CONNECTION_CREATION_RATE})
    return frozenset({CONSUMER_BYTE_RATE}) if GROUP in kinds else _OF_CLIENTS


def check_quota(entity: Entity, key: str, value: float) -> None:
    """Raises KafkaError(INVALID_REQUEST) for a value that a quota of `entity` cannot have."""
    if key not in keys_of(entity):
        raise _refused(f"Invalid configuration key {key}")
    if not value > 0:  # also refuses NaN, which Kafka accepts
        raise _refused(f"Quota {key} must be greater than 0")
    whole = _WHOLE.get(key)
    if whole is None:
        return
    name, largest = whole
    if value > largest:
        raise _refused(f"Proposed value for {key} is too large for {name}.")
    if math.fmod(value, 1.0) > FRACTION:
        raise _refused(f"{key} cannot be a fractional value.")


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def encode_entity(entity: Entity) -> str:
    """The stored key: the same for the same entity."""
    return json.dumps(entity, ensure_ascii=False, separators=(",", ":"))


def decode_entity(text: str) -> Entity:
    return tuple((kind, name) for kind, name in json.loads(text))


def decode_all(declared: Mapping[str, Any]) -> dict[Entity, Quotas]:
    """The declared quotas by entity; entities with fewer types first."""
    found = {decode_entity(key): quotas for key, quotas in declared.items()}
    return dict(sorted(found.items(), key=lambda pair: (len(pair[0]), [(kind, name or "") for kind, name in pair[0]])))


def _refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
