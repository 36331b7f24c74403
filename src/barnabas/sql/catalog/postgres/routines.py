"""The rows of the catalogue about users' functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.functions.definition import Argument, Function
from barnabas.sql.catalog.postgres.contents import OWNER, PUBLIC, Facts, Make, Row, number_of
from barnabas.sql.catalog.postgres.types import oid_named

LANGUAGES = {"sql": 14, "python": 16_000}
TEXT, RECORD = 25, 2249
_VOLATILITY = {"immutable": "i", "stable": "s"}


def oid_of(function: Function) -> int:
    """The number of a function."""
    return number_of(f"function {function.signature}")


def _type_of(argument: Argument) -> int:
    return oid_named(argument.shown.partition("(")[0]) or TEXT


def _result_of(function: Function) -> int:
    if function.returns is not None:
        return _type_of(function.returns)
    return _type_of(function.columns[0]) if len(function.columns) == 1 else RECORD


def _procedures(facts: Facts) -> Iterable[Row]:
    for each in facts.functions:
        kinds = [_type_of(argument) for argument in each.arguments]
        names = [argument.name for argument in (*each.arguments, *each.columns)]
        all_kinds = [*kinds, *map(_type_of, each.columns)] if each.columns else None
        modes = ["i"] * len(kinds) + ["t"] * len(each.columns) if each.columns else None
        yield {
            "oid": oid_of(each), "proname": each.name, "pronamespace": PUBLIC, "proowner": OWNER, "prolang": LANGUAGES[each.language],
            "procost": 100.0, "prorows": 1000.0 if each.columns else 0.0, "provariadic": 0, "prosupport": "-", "prokind": "f",
            "prosecdef": False, "proleakproof": False, "proisstrict": each.is_strict, "proretset": bool(each.columns),
            "provolatile": _VOLATILITY.get(each.volatility, "v"), "proparallel": "s", "pronargs": len(kinds),
            "pronargdefaults": len(kinds) - each.least, "prorettype": _result_of(each), "proargtypes": kinds, "proallargtypes": all_kinds,
            "proargmodes": modes, "proargnames": names if any(names) else None, "prosrc": each.body,
        }  # fmt: skip


def _languages(_: Facts) -> Iterable[Row]:
    for name, oid in LANGUAGES.items():
        yield {
            "oid": oid, "lanname": name, "lanowner": OWNER, "lanispl": name != "sql", "lanpltrusted": name == "sql", "lanplcallfoid": 0,
            "laninline": 0, "lanvalidator": 0,
        }  # fmt: skip


def _texts(facts: Facts) -> Iterable[Row]:
    for each in facts.functions:
        yield {
            "oid": oid_of(each), "arguments": each.shown_arguments, "result": each.shown_result, "definition": each.statement,
            "signature": each.signature,
        }  # fmt: skip


def _routines(facts: Facts) -> Iterable[Row]:
    for each in facts.functions:
        yield {
            "specific_catalog": facts.database, "specific_schema": "public", "specific_name": f"{each.name}_{oid_of(each)}",
            "routine_catalog": facts.database, "routine_schema": "public", "routine_name": each.name, "routine_type": "FUNCTION",
            "data_type": each.returns.shown if each.returns is not None else "record", "routine_definition": each.body,
            "external_language": each.language.upper(),
        }  # fmt: skip


def _parameters(facts: Facts) -> Iterable[Row]:
    for each in facts.functions:
        for place, argument in enumerate((*each.arguments, *each.columns), 1):
            yield {
                "specific_catalog": facts.database, "specific_schema": "public", "specific_name": f"{each.name}_{oid_of(each)}",
                "ordinal_position": place, "parameter_mode": "IN" if place <= len(each.arguments) else "OUT",
                "parameter_name": argument.name or None, "data_type": argument.shown,
            }  # fmt: skip


MAKERS: Mapping[str, Make] = {"pg_proc": _procedures, "pg_language": _languages, "barnabas_functions": _texts}
OF_INFORMATION: Mapping[str, Make] = {"routines": _routines, "parameters": _parameters}
