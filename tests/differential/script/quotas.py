"""AlterClientQuotas and DescribeClientQuotas (KIP-546), and quotas for changes of metadata (KIP-599)."""

from __future__ import annotations

from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from barnabas.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.differential.talk import Talk

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Names = dict[str, str | None]


def _entry(names: Names, quotas: dict[str, float | None]) -> RequestEntryData:
    entity = [RequestEntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
    ops = [OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()]
    return RequestEntryData(entity=entity, ops=ops)


def _alter(names: Names, quotas: dict[str, float | None], *, validate_only: bool = False) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=[_entry(names, quotas)], validate_only=validate_only)


def _describe(*components: tuple[str, int, str | None], strict: bool = False) -> DescribeClientQuotasRequest:
    wanted = [ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components]
    return DescribeClientQuotasRequest(components=wanted, strict=strict)


def _of_users(user: str, client: str) -> dict[str, AlterClientQuotasRequest]:
    """Changes of what users and their clients may, one after the other."""
    every = {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6, "request_percentage": 12.5, "controller_mutation_rate": 0.5}
    return {
        "every quota of a client": _alter({"user": user, "client-id": client}, {**every}),
        "only looked at": _alter({"user": user}, {"producer_byte_rate": 1.0}, validate_only=True),
        "one is removed": _alter({"user": user, "client-id": client}, {"consumer_byte_rate": None}),
        "one that is not there is removed": _alter({"user": user}, {"consumer_byte_rate": None}),
        "nothing changes": _alter({"user": user}, {}),
        "an unknown one is removed": _alter({"user": user}, {"no_such_rate": None}),
        "unknown": _alter({"user": user}, {"no_such_rate": 1.0}),
        "of an address, for a user": _alter({"user": user}, {"connection_creation_rate": 1.0}),
    }


def _of_odd_values(user: str) -> dict[str, AlterClientQuotasRequest]:
    return {
        "of a user, for an address": _alter({"ip": "10.0.0.1"}, {"producer_byte_rate": 1.0}),
        "zero": _alter({"user": user}, {"producer_byte_rate": 0.0}),
        "negative": _alter({"user": user}, {"request_percentage": -1.0}),
        "not a number": _alter({"user": user}, {"request_percentage": float("nan")}),
        "a fraction": _alter({"user": user}, {"producer_byte_rate": 1.5}),
        "almost whole": _alter({"user": user}, {"producer_byte_rate": 3.0000000001}),
        "too large": _alter({"user": user}, {"producer_byte_rate": 1e19}),
        "too large for an address": _alter({"ip": "10.0.0.1"}, {"connection_creation_rate": 3e9}),
        "infinite": _alter({"user": user}, {"producer_byte_rate": float("inf")}),
        "infinite percentage": _alter({"user": user}, {"request_percentage": float("inf")}),
        "a fraction of an address": _alter({"ip": "10.0.0.1"}, {"connection_creation_rate": 1.5}),
    }


def _of_odd_entities(user: str, client: str) -> dict[str, AlterClientQuotasRequest]:
    return {
        "nobody": _alter({}, {"producer_byte_rate": 1.0}),
        "empty user": _alter({"user": ""}, {"producer_byte_rate": 1.0}),
        "empty client id": _alter({"client-id": ""}, {"producer_byte_rate": 1.0}),
        "unknown type": _alter({"planet": "x"}, {"producer_byte_rate": 1.0}),
        "empty type": _alter({"": "x"}, {"producer_byte_rate": 1.0}),
        "address and user": _alter({"ip": "10.0.0.1", "user": user}, {"connection_creation_rate": 1.0}),
        "address and client": _alter({"ip": "10.0.0.1", "client-id": client}, {"connection_creation_rate": 1.0}),
        "all three": _alter({"ip": "10.0.0.1", "client-id": client, "user": user}, {"producer_byte_rate": 1.0}),
        "no address": _alter({"ip": "no address at all"}, {"connection_creation_rate": 1.0}),
        "address 6": _alter({"ip": "::1"}, {"connection_creation_rate": 5.0}),
        "remove it from address 6": _alter({"ip": "::1"}, {"connection_creation_rate": None}),
        "nothing": AlterClientQuotasRequest(entries=[]),
    }


def _of_several(user: str, client: str) -> dict[str, AlterClientQuotasRequest]:
    """Requests that say something twice, or one thing right and another one wrong."""
    types = [RequestEntityData(entity_type="user", entity_name=user)]
    once = [OpData(key="producer_byte_rate", value=1.0)]
    both = [OpData(key="producer_byte_rate", value=9.0), OpData(key="producer_byte_rate", remove=True)]
    good, bad = _entry({"client-id": client}, {"producer_byte_rate": 7.0}), _entry({"client-id": client}, {"x": 7.0})
    return {
        "one type twice": AlterClientQuotasRequest(entries=[RequestEntryData(entity=types * 2, ops=once)]),
        "one good, one bad": AlterClientQuotasRequest(entries=[good, bad]),
        "one twice": AlterClientQuotasRequest(entries=[good, good]),
        "set and removed at once": AlterClientQuotasRequest(entries=[RequestEntryData(entity=types, ops=both)]),
    }


def alter_client_quotas(talk: Talk) -> None:
    user, client = talk.name("user"), talk.name("client")
    families = _of_users(user, client), _of_odd_values(user), _of_odd_entities(user, client), _of_several(user, client)
    for version in talk.versions_of("AlterClientQuotas"):
        for cases in families:
            for case, request in cases.items():
                talk.ask(case, request, version)
        talk.settle()
        talk.ask(f"after v{version}", _describe(("user", EXACT, user)), 1)
        talk.ask(f"clients after v{version}", _describe(("client-id", EXACT, client), strict=True), 1)


def describe_client_quotas(talk: Talk) -> None:
    one, other, client = talk.name("one"), talk.name("other"), talk.name("client")
    given: list[tuple[Names, dict[str, float | None]]] = [
        ({"user": one}, {"producer_byte_rate": 1.0}),
        ({"user": other}, {"consumer_byte_rate": 2.0}),
        ({"user": one, "client-id": client}, {"request_percentage": 3.0}),
        ({"user": one, "client-id": None}, {"controller_mutation_rate": 4.0}),
    ]
    for names, quotas in given:
        talk.do(_alter(names, quotas), 1)
    talk.settle()
    for version in talk.versions_of("DescribeClientQuotas"):
        cases = {
            "a user": _describe(("user", EXACT, other)),
            "a user and nothing else": _describe(("user", EXACT, one), strict=True),
            "a user and a client": _describe(("user", EXACT, one), ("client-id", EXACT, client)),
            "a user and all clients": _describe(("user", EXACT, one), ("client-id", DEFAULT, None)),
            "somebody else": _describe(("user", EXACT, "nobody")),
            "a client of anybody": _describe(("client-id", EXACT, client), ("user", SPECIFIED, None)),
            "a client alone": _describe(("client-id", EXACT, client), strict=True),
            "an address": _describe(("ip", EXACT, "10.9.9.9")),
            "an address that is none": _describe(("ip", EXACT, "x")),
            "empty type": _describe(("", EXACT, "x")),
            "unknown type": _describe(("planet", EXACT, "x")),
            "a type twice": _describe(("user", EXACT, one), ("user", SPECIFIED, None)),
            "a default twice": _describe(("user", DEFAULT, None), ("user", DEFAULT, None)),
            "no name": _describe(("user", EXACT, None)),
            "default with a name": _describe(("user", DEFAULT, "x")),
            "any with a name": _describe(("user", SPECIFIED, "x")),
            "unknown match": _describe(("user", 3, "x")),
            "negative match": _describe(("user", -1, None)),
            "address and user": _describe(("ip", SPECIFIED, None), ("user", SPECIFIED, None)),
            "address and client": _describe(("ip", EXACT, "10.0.0.1"), ("client-id", DEFAULT, None)),
        }
        for case, request in cases.items():
            talk.ask(case, request, version)
