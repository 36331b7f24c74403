"""Functions and types of Postgres' catalogue in a query: calls become subqueries over its tables, or answers that never change.

`x::regclass` and its kin: a literal becomes the object's number, anything else its name. `x OPERATOR(pg_catalog.~) y` becomes a call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from barnabas.sql.catalog.postgres.contents import DATABASE, OWNER, system_number
from barnabas.sql.catalog.postgres.shapes import shapes
from barnabas.sql.catalog.postgres.types import TYPES, oid_named
from barnabas.sql.dialect import Barnabas, parse_expression
from barnabas.sql.interface import SqlError
from barnabas.sql.states import INVALID_TEXT, UNDEFINED_OBJECT, UNDEFINED_TABLE

FindOid = Callable[[str], int | None]
# The names within begin with two lines, so that they never hide a name of the arguments.
_DESCRIPTION = (
    "(SELECT max(__d) FROM (SELECT objoid AS __o, objsubid AS __s, description AS __d FROM pg_catalog.pg_description)"
    " WHERE __o = {0} AND __s = %s)"
)
_ANCESTORS = "pg_partition_ancestors"
_CLASS = "(SELECT max(%s) FROM (SELECT oid AS __o, relname AS __n FROM pg_catalog.pg_class) WHERE %s)"
_TYPE = (
    "(SELECT max(__o) FROM (SELECT oid AS __o, typname AS __n FROM pg_catalog.pg_type)"
    " WHERE __n = lower({0}) OR format_type(__o, NULL) IN (lower({0}), {0}, regexp_replace({0}, '^public[.]', '')))"
)
_NAMESPACE = "(SELECT max(%s) FROM (SELECT oid AS __o, nspname AS __n FROM pg_catalog.pg_namespace) WHERE %s)"
_VISIBLE = (
    "(SELECT max(__v) FROM (SELECT c.oid AS __o, n.nspname IN (%s) AS __v FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
    " ON n.oid = c.relnamespace) WHERE __o = {0})"
)
_ROLE = "(SELECT max(__n) FROM (SELECT oid AS __o, rolname AS __n FROM pg_catalog.pg_roles) WHERE __o = {0})"
_CONSTRAINT = "(SELECT max(__d) FROM (SELECT oid AS __o, definition AS __d FROM pg_catalog.barnabas_constraints) WHERE __o = {0})"
_PRETTY_CONSTRAINT = (
    "(CASE WHEN {1} THEN regexp_replace(" + _CONSTRAINT + ", '^CHECK [(][(](.*)[)][)]', 'CHECK (' || chr(92) || '1)')"
    " ELSE " + _CONSTRAINT + " END)"
)
_INDEX = (
    "(SELECT max(__d) FROM (SELECT c.oid AS __o, x.indexdef AS __d FROM pg_catalog.pg_indexes x"
    " JOIN pg_catalog.pg_namespace n ON n.nspname = x.schemaname"
    " JOIN pg_catalog.pg_class c ON c.relname = x.indexname AND c.relnamespace = n.oid) WHERE __o = {0})"
)
_INDEX_COLUMN = (
    "(CASE WHEN {1} = 0 THEN " + _INDEX + " ELSE (SELECT max(__n) FROM (SELECT attrelid AS __o, attnum AS __p, attname AS __n"
    " FROM pg_catalog.pg_attribute) WHERE __o = {0} AND __p = {1}) END)"
)
_VIEW = (
    "(SELECT max(__d) FROM (SELECT c.oid AS __o, v.definition AS __d FROM (SELECT schemaname AS __s, viewname AS __n, definition"
    " FROM pg_catalog.pg_views UNION ALL SELECT schemaname, matviewname, definition FROM pg_catalog.pg_matviews) v"
    " JOIN pg_catalog.pg_namespace n ON n.nspname = v.__s"
    " JOIN pg_catalog.pg_class c ON c.relname = v.__n AND c.relnamespace = n.oid) WHERE __o = {0})"
)
# A name without a schema is looked for as by a search path: what is temporary, public, then anything.
_OF_NAME = (
    " __n = trim(split_part({0}, '.', -1), '\"') AND (NOT contains({0}, '.') OR __s = trim(split_part({0}, '.', -2), '\"'))"
)
_RANK = (
    "CASE n.nspname WHEN 'pg_catalog' THEN 0 WHEN 'public' THEN 2 ELSE CASE WHEN n.nspname LIKE 'pg_temp%' THEN 1 ELSE 3 END END"
)
_TO_CLASS = (
    f"(SELECT arg_min(__o, __r) FROM (SELECT c.oid AS __o, c.relname AS __n, n.nspname AS __s, {_RANK} AS __r"
    f" FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace) WHERE{_OF_NAME})"
)
_SERIAL = (
    f"(SELECT arg_min(__q, __r) FROM (SELECT m.nspname || '.' || s.relname AS __q, t.relname AS __n, n.nspname AS __s, a.attname AS __c,"
    f" {_RANK} AS __r FROM pg_catalog.pg_depend d"
    " JOIN pg_catalog.pg_class s ON s.oid = d.objid JOIN pg_catalog.pg_namespace m ON m.oid = s.relnamespace"
    " JOIN pg_catalog.pg_class t ON t.oid = d.refobjid JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE s.relkind = 'S')"
    f" WHERE{_OF_NAME} AND __c = {{1}})"
)
_FUNCTION = "(SELECT max(__d) FROM (SELECT oid AS __o, %s AS __d FROM pg_catalog.barnabas_functions) WHERE __o = {0})"
_PROCEDURE = (
    "(SELECT max(__o) FROM (SELECT oid AS __o, replace(signature, ' ', '') AS __s FROM pg_catalog.barnabas_functions)"
    " WHERE __s = replace({0}, ' ', '') OR split_part(__s, '(', 1) = {0})"
)
_QUERIES = {
    "pg_get_function_arguments": _FUNCTION % "arguments",
    "pg_get_function_identity_arguments": _FUNCTION % "arguments",
    "pg_get_function_result": _FUNCTION % "result",
    "pg_get_functiondef": _FUNCTION % "definition",
    "pg_get_function_sqlbody": "(nullif({0}, {0})::text)",
    "to_regproc": _PROCEDURE,
    "to_regprocedure": _PROCEDURE,
    "pg_get_viewdef": _VIEW,
    "obj_description": _DESCRIPTION % "0",
    "col_description": _DESCRIPTION % "{1}",
    "pg_get_userbyid": _ROLE,
    "pg_get_constraintdef": _CONSTRAINT,
    "pg_get_expr": "({0})",
    _ANCESTORS: "(SELECT CAST(NULL AS UINTEGER))",  # there are no partitions
    "to_regclass": _TO_CLASS,
    "to_regtype": _TYPE,
    "to_regnamespace": _NAMESPACE % ("__o", "__n = {0}"),
    "pg_get_serial_sequence": _SERIAL,
}
_NAMES = {
    "REGCLASS": _CLASS % ("__n", "__o = {0}"),
    "REGTYPE": "(format_type({0}, NULL))",
    "REGNAMESPACE": _NAMESPACE % ("__n", "__o = {0}"),
    "REGROLE": _ROLE,
}
_PLAIN = {
    "OID": "UINTEGER", "NAME": "TEXT", "REGPROC": "TEXT", "REGPROCEDURE": "TEXT", "REGOPER": "TEXT", "REGOPERATOR": "TEXT", "XID": "BIGINT",
    "CID": "BIGINT", "TID": "TEXT", "CHAR": "TEXT", "INT2VECTOR": "SMALLINT[]", "OIDVECTOR": "UINTEGER[]", "REGCOLLATION": "TEXT",
    "XML": "TEXT", "CSTRING": "TEXT", "CITEXT": "TEXT", "INET": "TEXT", "PG_LSN": "TEXT", "ACLITEM": "TEXT", "BPCHAR": "TEXT",
}  # fmt: skip


OWN_WORDS = frozenset((*_PLAIN, *_NAMES))  # words for types that are not of users


def answer_catalogue(tree: Any, find: FindOid, path: Sequence[str]) -> None:
    """Rewrite a query. Raises SqlError for a table or type that `::regclass` or `::regtype` does not find.

    Args:
        find: the number of a table by its name.
        path: the schemas whose tables need no schema before their names.
    """
    _answer_numbers(tree)
    for node in reversed(list(tree.walk())):
        match node:
            case exp.Anonymous() if isinstance(node.parent, exp.Table) and str(node.this).lower() == _ANCESTORS:
                _no_partitions(node.parent)
            case exp.Anonymous():
                _call(node, path)
            case exp.Cast():
                _cast(node, find)
            case exp.Operator():
                _operator(node)
            case exp.Collate():
                node.replace(node.this.copy())


def _answer_numbers(tree: Any) -> None:
    """`x.tableoid` of the catalogue's tables: the number of the table that a row is in."""
    for column in list(tree.find_all(exp.Column)):
        if column.name.lower() != "tableoid":
            continue
        select = column.find_ancestor(exp.Select)
        sources = [select.args.get("from_"), *(select.args.get("joins") or ())] if select is not None else []
        tables = [each.this for each in sources if each is not None and isinstance(each.this, exp.Table)]
        table = next((each for each in tables if column.table.lower() in ("", each.alias_or_name.lower())), None)
        if table is not None and table.db.lower() in ("", "pg_catalog") and ("pg_catalog", table.name.lower()) in shapes():
            number = exp.cast(exp.convert(system_number("pg_catalog", table.name.lower())), "UINTEGER", dialect="duckdb")
            _put(column, number, "tableoid")


def _no_partitions(table: exp.Table) -> None:
    """`pg_partition_ancestors(oid) WITH ORDINALITY` in FROM: no rows, since there are no partitions."""
    rows = exp.select("CAST(NULL AS UINTEGER) AS relid", "CAST(NULL AS BIGINT) AS ordinality").where(exp.false())
    table.replace(exp.Subquery(this=rows, alias=table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(_ANCESTORS))))


def _call(node: exp.Anonymous, path: Sequence[str]) -> None:
    name = str(node.this).lower()
    arguments = node.expressions
    template = _QUERIES.get(name)
    if name == "pg_table_is_visible":
        template = _VISIBLE % ", ".join("'" + each.replace("'", "''") + "'" for each in ("pg_catalog", *path))
    if name == "pg_get_indexdef":
        template = _INDEX if len(arguments) == 1 else _INDEX_COLUMN
    if name == "pg_get_constraintdef" and len(arguments) > 1:
        template = _PRETTY_CONSTRAINT
    if template is not None and len(arguments) >= 1 + ("{1}" in template):
        made = _filled(template, arguments)
        made.meta[_IS_TEXT] = name == "pg_get_serial_sequence"
        _put(node, made, name)


_IS_PROCEDURE = "is_procedure"  # the mark of a text that names a function: `::oid` looks its number up
_IS_TEXT = "is_text"  # the mark of an expression that names an object: `::regclass` looks its number up


def _put(node: exp.Expression, made: Any, name: str) -> None:
    """Put an expression in the place of another, with its name if it is an output."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        made = exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True))
    node.replace(made)


def _filled(template: str, arguments: Sequence[Any]) -> Any:
    """The expression of a template with arguments."""
    text = template.format(*(f'"__{place}"' for place in range(len(arguments))))
    made = parse_expression(text)
    for column in list(made.find_all(exp.Column)):
        if column.name[:2] == "__" and column.name[2:].isdigit() and not column.table:
            column.replace(arguments[int(column.name[2:])].copy())
    return made


def _cast(node: exp.Cast, find: FindOid) -> None:
    word = _word(node.to)
    if word in _PLAIN:
        if node.to.args.get("nested") or (word in ("CHAR", "BPCHAR") and node.to.expressions):
            return
        if word == "OID" and node.this.meta.get(_IS_PROCEDURE):
            _put(node, _filled(_PROCEDURE, [node.this]), "oid")
            return
        made: Any = exp.cast(node.this.copy(), _PLAIN[word], dialect="duckdb")
        made.meta[_IS_PROCEDURE] = word in ("REGPROC", "REGPROCEDURE")
        node.replace(made)
        return
    if word == "ARRAY" and isinstance(node.this, exp.Literal) and node.this.is_string and node.this.name.startswith("{"):
        node.set("this", array_of_text(node.this.name))
    if _is_of_catalogue(node.to) and word not in _NAMES:
        node.set("to", exp.DataType.build(word, dialect=Barnabas, udt=True))
    if word not in _NAMES:
        return
    value = node.this
    if isinstance(value, exp.Literal) and value.is_string:
        found = _number(word, value.name, find)
        made = exp.cast(exp.Literal.number(found), "UINTEGER", dialect="duckdb")
    elif isinstance(value, exp.Parameter):
        made = _filled(_QUERIES["to_regclass" if word == "REGCLASS" else "to_regtype"], [exp.cast(value.copy(), "TEXT")])
    elif word == "REGCLASS" and value.meta.get(_IS_TEXT):
        made = _filled(_QUERIES["to_regclass"], [value])
    else:
        made = _filled(_NAMES[word], [value])
    _put(node, made, value.name if isinstance(value, exp.Column) else word.lower())


def _is_of_catalogue(kind: Any) -> bool:
    inner = kind.args.get("kind")
    return isinstance(inner, exp.Dot) and inner.this.name.lower() == "pg_catalog"


def array_of_text(text: str) -> exp.Array:
    """A literal such as `{a,"b c",NULL}`. Raises SqlError."""
    items: list[exp.Expression] = []
    for found in re.finditer(r'\s*("(?:[^"\\]|\\.)*"|[^,{}"]*)\s*(?:,|$)', text[1:-1]) if text != "{}" else ():
        item = found[1]
        if item.startswith('"'):
            items.append(exp.Literal.string(re.sub(r"\\(.)", r"\1", item[1:-1])))
        elif item.strip().upper() == "NULL":
            items.append(exp.Null())
        elif item.strip():
            items.append(exp.Literal.string(item.strip()))
    if not text.endswith("}"):
        raise SqlError(INVALID_TEXT, f'malformed array literal: "{text[:100]}"')
    return exp.Array(expressions=items)


def _word(kind: Any) -> str:
    word = str(getattr(kind.this, "value", kind.this)).upper()
    if word in ("USERDEFINED", "USER-DEFINED", "OBJECT_IDENTIFIER"):
        word = str(kind.args.get("kind") or kind.sql()).upper()
    return word.removeprefix("PG_CATALOG.").strip('"')


def _number(word: str, text: str, find: FindOid) -> int:
    name = text.split(".")[-1].strip('"')
    if text.isdigit():
        return int(text)
    if word == "REGCLASS":
        found = next(
            (system_number(schema, each) for schema, each in shapes() if each == name.lower() and schema == "pg_catalog"), None
        )
        found = find(text) if found is None else found
        if found is None:
            raise SqlError(UNDEFINED_TABLE, f'relation "{text}" does not exist')
        return found
    if word == "REGTYPE":
        found = oid_named(text)
        if found is None:
            raise SqlError(UNDEFINED_OBJECT, f'type "{text}" does not exist')
        return found
    if word == "REGROLE":
        return OWNER
    return {"public": 2200, "pg_catalog": 11, "information_schema": 13000}.get(name.lower(), DATABASE)


def _operator(node: exp.Operator) -> None:
    """`a OPERATOR(pg_catalog.~) b`."""
    sign = str(node.args.get("operator") or "").rsplit(".", 1)[-1]
    left, right = node.this.copy(), node.expression.copy()
    made: Any
    match sign:
        case "~" | "~*":
            made = exp.func("REGEXP_MATCHES", left, right, *([exp.Literal.string("i")] if sign == "~*" else []), dialect="duckdb")
        case "!~" | "!~*":
            made = exp.not_(
                exp.func("REGEXP_MATCHES", left, right, *([exp.Literal.string("i")] if sign == "!~*" else []), dialect="duckdb")
            )
        case "~~":
            made = exp.Like(this=left, expression=right)
        case "!~~":
            made = exp.not_(exp.Like(this=left, expression=right))
        case "<>":
            made = exp.NEQ(this=left, expression=right)
        case "=":
            made = exp.EQ(this=left, expression=right)
        case _:
            return
    node.replace(made)


def type_cases() -> str:
    """The macro `format_type` of DuckDB."""
    cases = [f"WHEN {each.oid} THEN '{each.shown}'" for each in TYPES]
    cases += [f"WHEN {each.array} THEN '{each.shown}[]'" for each in TYPES if each.array]
    numeric = (
        "WHEN kind IN (1700, 1231) AND modifier > 4 THEN 'numeric(' || ((modifier - 4) >> 16) || ',' || ((modifier - 4) & 65535) || ')'"
        " || CASE kind WHEN 1231 THEN '[]' ELSE '' END"
    )
    varying = (
        "WHEN kind IN (1042, 1043, 1014, 1015) AND modifier > 4 THEN CASE WHEN kind IN (1042, 1014) THEN 'character'"
        " ELSE 'character varying' END"
        " || '(' || (modifier - 4) || ')'"
    )
    varying += " || CASE WHEN kind IN (1014, 1015) THEN '[]' ELSE '' END"
    times = "WHEN kind IN (1083, 1114, 1184, 1183, 1115, 1185) AND modifier >= 0 THEN CASE"
    for of_kind, word in (("(1083, 1183)", "time"), ("(1114, 1115, 1184, 1185)", "timestamp")):
        times += f" WHEN kind IN {of_kind} THEN '{word}(' || modifier || ')'"
    times += " END || CASE WHEN kind IN (1184, 1185) THEN ' with time zone' ELSE ' without time zone' END"
    times += " || CASE WHEN kind IN (1183, 1115, 1185) THEN '[]' ELSE '' END"
    return f"CASE WHEN kind IS NULL THEN NULL {numeric} {varying} {times} ELSE CASE kind {' '.join(cases)} ELSE '???' END END"
