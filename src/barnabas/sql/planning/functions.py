"""Functions and operators that DuckDB has under another name, or with another meaning for the same words."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import exp

from barnabas.sql.dialect import WRITTEN
from barnabas.sql.planning.literals import whole_number

_ENCODERS = {"base64": "__base64_lines", "hex": "__hex", "escape": "__escaped"}
_DECODERS = {"base64": "from_base64", "hex": "unhex"}
_SPECIFIER = re.compile(r"%(?:(?P<place>\d+)\$)?(?P<left>-)?(?P<width>\d+)?(?:(?P<kind>[sIL%])|.?)")
_QUOTES = {"I": "quote_ident", "L": "quote_nullable"}
_CLOCKS: dict[type[exp.Expression], str] = {
    exp.CurrentTimestamp: "now",
    exp.CurrentDate: "today",
    exp.CurrentTime: "get_current_time",
    exp.Localtime: "current_localtime",
    exp.Localtimestamp: "current_localtimestamp",
}  # as calls: DuckDB takes a word such as CURRENT_DATE for the output of the same name


def read_functions(tree: Any, *, is_spark: bool) -> None:
    """Rewrite a tree.

    Args:
        is_spark: whether a cast to `varchar(n)` keeps the whole text.
    """
    for node in reversed(list(tree.walk())):
        made = _made(node, is_spark=is_spark)
        if made is not None:
            node.replace(made)


def _made(node: Any, *, is_spark: bool) -> Any:
    if type(node) in _CLOCKS:
        made = _call(_CLOCKS[type(node)])
        made.meta.update(node.meta)  # the place in the statement, for errors
        made.meta.setdefault(WRITTEN, str(node.sql_name()).lower())
        return made
    renamed = _renamed(node) or (None if is_spark else _of_postgres(node)) or _of_texts(node)
    if renamed is not None:
        return renamed
    match node:
        case exp.SHA2() | exp.SHA2Digest():
            return _digest(node)
        case exp.ArrayAgg() | exp.GroupConcat() if isinstance(node.this, exp.Distinct) and len(node.this.expressions) == 1:
            return _in_order(node)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _null_row(node)
        case exp.Not() if isinstance(node.this, exp.Is) and isinstance(node.this.expression, exp.Null):
            return _row_without_nulls(node.this)
        case exp.DayOfWeek():
            return exp.Add(this=_call("dayofweek", exp.cast(node.this.copy(), "date")), expression=exp.convert(1))  # Sunday is 1
        case exp.Anonymous():
            return _anonymous(node)
    return None


def _of_postgres(node: Any) -> Any:
    """Functions that mean something else in Spark."""
    match node:
        case exp.Sqrt():
            return _call("__sqrt", node.this)
        case exp.Ln():
            return _call("__ln", node.this)
        case exp.SplitPart():
            return _call("__split_part", node.this, node.args["delimiter"], node.args["part_index"])
        case exp.StrToTime() if node.meta.get(WRITTEN) == "to_timestamp":
            return exp.cast(node.copy(), "timestamptz")
        case exp.Substring() if not _is_simple_part(node) and not _has_pattern(node):
            return _call("__part", *(each for each in (node.this, node.args.get("start"), node.args.get("length")) if each))
        case exp.Cast():
            return _cut(node)
    return None


def _of_texts(node: Any) -> Any:
    """Functions and operators of texts and bytes."""
    match node:
        case exp.Hex() if node.meta.get(WRITTEN) == "to_hex":
            return _call("__hex", node.this)
        case exp.Encode() | exp.Decode() if isinstance(node.args.get("charset"), exp.Literal):
            known = _ENCODERS if isinstance(node, exp.Encode) else _DECODERS
            name = known.get(node.args["charset"].name.lower())
            return None if name is None else _call(name, node.this)
        case exp.Format() if isinstance(node.this, exp.Literal):
            return _formatted(node.this.name, node.expressions)
        case exp.Substring() if _has_pattern(node):
            return _part(node.this, node.args["start"].name)
        case exp.Like() | exp.ILike() if not isinstance(node.parent, exp.Escape):
            return _escaped(node)
    return None


def _has_pattern(part: Any) -> bool:
    """Whether the start of a substring is a pattern."""
    start = part.args.get("start")
    return isinstance(start, exp.Literal) and bool(start.is_string)


def _renamed(node: Any) -> Any:
    """Functions that DuckDB has by another name, with the same arguments."""
    match node:
        case exp.FirstValue() | exp.LastValue() if not isinstance(node.parent, (exp.Window, exp.IgnoreNulls, exp.RespectNulls)):
            return _call("first" if isinstance(node, exp.FirstValue) else "last", node.this)
        case exp.JustifyDays() | exp.JustifyHours() | exp.JustifyInterval() if isinstance(node.this, exp.Literal):
            node.set("this", exp.cast(node.this.copy(), "interval"))
        case exp.Cbrt():
            return _call("cbrt", node.this)
        case exp.SimilarTo():
            return _call("__similar", node.this, node.expression)
        case exp.ToNumber():
            return _call("__to_number", node.this)
        case exp.Anonymous() if str(node.this).lower() == "make_date" and len(node.expressions) == 3:
            return _call("__make_date", *node.expressions)
        case exp.Concat() | exp.ConcatWs():
            _show_arguments(node)
    return _of_arrays(node)


def _of_arrays(node: Any) -> Any:
    """Functions of arrays, and the division `div`."""
    match node:
        case exp.Cast() if isinstance(node.this, exp.IntDiv) and node.meta.get(WRITTEN) == "div":
            return _call("__quotient", node.this.this, node.this.expression)  # sqlglot casts it to a decimal
        case exp.ArrayPosition() if node.args.get("zero_based"):
            return _call("__position_from", node.this, node.expression, node.args["zero_based"])
        case exp.ArrayDistinct():
            return _call("__distinct", node.this)
        case exp.ArrayRemove():
            return _call("array_remove", node.this, node.expression)
        case exp.StringToArray() if node.expression is not None:
            return _call("__split", node.this, node.expression, *([node.args["null"]] if node.args.get("null") else []))
    return None


def _show_arguments(node: Any) -> None:
    """Let the arguments of `concat` be texts as Postgres shows them: `t` for true."""
    for each in node.expressions:
        is_text = isinstance(each, exp.Literal) and each.is_string
        if not is_text and not (isinstance(each, exp.Anonymous) and each.this == "__in_text"):
            each.replace(_call("__in_text", each))


def _anonymous(node: Any) -> Any:
    name, arguments = str(node.this).lower(), node.expressions
    if name == "to_char" and len(arguments) == 2:
        return _shown(node)
    if name in ("sha224", "sha256", "sha384", "sha512") and len(arguments) == 1:
        return _call("__digest", arguments[0], exp.convert(int(name[3:])))
    if name == "age" and any(_is_text(each) for each in arguments):
        return _call(name, *(exp.cast(each.copy(), "timestamp") if _is_text(each) else each for each in arguments))
    if name == "octet_length":
        return _call("__octets", *arguments)
    if name not in ("regexp_match", "regexp_matches") or len(arguments) not in (2, 3):
        return None
    pattern, flags = arguments[1], arguments[2].name if len(arguments) == 3 else ""
    if not isinstance(pattern, exp.Literal):
        return None
    wanted = f"(?i){pattern.name}" if "i" in flags else pattern.name
    if name == "regexp_match":
        return _match(arguments[0], wanted)
    if isinstance(node.parent, (exp.Unnest, exp.Explode)):  # the groups of all matches, one by one
        if "g" not in flags:
            return _match(arguments[0], wanted)
        return _call("flatten", _all_groups(arguments[0], wanted))
    return _matches(arguments[0], wanted, repeated="g" in flags)


def _is_text(node: Any) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


_TIME_WORDS = {
    "YYYY": "%Y", "MM": "%m", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S", "US": "%f", "MS": "%g",
}  # fmt: skip
_OF_TIMES = re.compile(r"(?:YYYY|MM|DD|HH24|MI|SS|US|MS|[-/:., T]|(?<=DD)T)+", re.IGNORECASE)


def _shown(node: Any) -> Any:
    """`to_char`: DuckDB's own function for the usual patterns of times, which is faster."""
    value, pattern = node.expressions
    text = pattern.name if isinstance(pattern, exp.Literal) and pattern.is_string else ""
    if _OF_TIMES.fullmatch(text) and re.search("YYYY|DD", text, re.IGNORECASE):
        words = re.sub("|".join(_TIME_WORDS), lambda found: _TIME_WORDS[found[0].upper()], text, flags=re.IGNORECASE)
        return _call("strftime", value, exp.Literal.string(words))
    return _call("__to_char", value, pattern)


def _digest(node: Any) -> Any:
    """SHA-2 of other lengths than 256, which is DuckDB's only one. `sha2` of Spark gives hexadecimal digits."""
    bits = node.args.get("length")
    if bits is None or whole_number(bits) in (0, 256):
        return None
    if whole_number(bits) is None:
        bits = exp.Coalesce(this=exp.Nullif(this=bits.copy(), expression=exp.convert(0)), expressions=[exp.convert(256)])
    made = _call("__digest", node.this, bits)
    return made if isinstance(node, exp.SHA2Digest) else _call("__hex", made)


def _is_simple_part(node: Any) -> bool:
    """Whether a start and a length are literals that DuckDB reads as Postgres does."""
    start, length = node.args.get("start"), node.args.get("length")
    return all(each is None or (isinstance(each, exp.Literal) and each.name.isdigit()) for each in (start, length)) and not (
        start is not None and start.name == "0"
    )


def _in_order(node: Any) -> Any:
    """The distinct values of an aggregate in their order, as Postgres finds them."""
    made = node.copy()
    value = made.this.expressions[0].copy()
    made.set("this", exp.Order(this=made.this.copy(), expressions=[exp.Ordered(this=value, nulls_first=False)]))
    return made


def _cells(row: Any) -> list[Any] | None:
    """The values of `ROW(…)` or `(…, …)`; None for anything else."""
    row = row.unnest()
    if isinstance(row, exp.Tuple) or (isinstance(row, exp.Anonymous) and str(row.this).lower() == "row"):
        return list(row.expressions)
    return None


def _null_row(node: Any) -> Any:
    """A row is null if all of its values are."""
    cells = _cells(node.this)
    return exp.Paren(this=exp.and_(*(exp.Is(this=each.copy(), expression=exp.Null()) for each in cells))) if cells else None


def _row_without_nulls(node: Any) -> Any:
    """A row IS NOT NULL if none of its values is null."""
    cells = _cells(node.this)
    if not cells:
        return None
    return exp.Paren(this=exp.and_(*(exp.Not(this=exp.Is(this=each.copy(), expression=exp.Null())) for each in cells)))


def _groups(pattern: str) -> int:
    try:
        return re.compile(pattern).groups
    except re.error:
        return 0


def _match(text: Any, pattern: str) -> Any:
    """The groups of the first match, or the whole match; null if there is none."""
    literal = exp.Literal.string(pattern)
    numbers = range(1, _groups(pattern) + 1) if _groups(pattern) else (0,)
    parts = exp.Array(expressions=[_call("regexp_extract", text, literal, exp.convert(number)) for number in numbers])
    return exp.Case(ifs=[exp.If(this=_call("regexp_matches", text, literal), true=parts)])


def _matches(text: Any, pattern: str, *, repeated: bool) -> Any:
    """A row of groups for each match."""
    if not repeated:
        return _call("__present", _match(text, pattern))
    return _call("unnest", _all_groups(text, pattern))


def _all_groups(text: Any, pattern: str) -> Any:
    """A list of the groups of each match."""
    literal, count = exp.Literal.string(pattern), _groups(pattern)
    parts = [_call("regexp_extract_all", text, literal, exp.convert(number)) for number in range(1, count + 1)]
    if count < 2:
        parts = [_call("regexp_extract_all", text, literal, exp.convert(count))]
    row = exp.column("e")
    names = [row] if count < 2 else [_call("struct_extract", row, exp.convert(number)) for number in range(1, count + 1)]
    zipped = parts[0] if len(parts) == 1 else _call("list_zip", *parts)
    return _call("list_transform", zipped, exp.Lambda(this=exp.Array(expressions=names), expressions=[exp.to_identifier("e")]))


def _formatted(text: str, arguments: list[Any]) -> Any:
    """`format` of Postgres, if its text has plain specifiers only."""
    parts: list[Any] = [exp.Literal.string("")]
    at, used = 0, 0
    for found in _SPECIFIER.finditer(text):
        parts.append(exp.Literal.string(text[at : found.start()]))
        at, kind = found.end(), found["kind"]
        if kind == "%":
            parts.append(exp.Literal.string("%"))
            continue
        used = int(found["place"]) - 1 if found["place"] else used
        if kind is None or not 0 <= used < len(arguments):
            return None
        value: Any = exp.cast(arguments[used].copy(), "text")
        value = _call(_QUOTES[kind], value) if kind in _QUOTES else value
        parts.append(_padded(value, int(found["width"]), is_left=bool(found["left"])) if found["width"] else value)
        used += 1
    return _call("concat", *parts, exp.Literal.string(text[at:]))


def _padded(value: Any, width: int, *, is_left: bool) -> Any:
    """A text with spaces up to a width; a longer one stays."""
    wanted = _call("greatest", exp.convert(width), _call("length", value))
    return _call("rpad" if is_left else "lpad", _call("concat", value), exp.cast(wanted, "int"), exp.Literal.string(" "))


def _part(text: Any, pattern: str) -> Any:
    """`substring(text from pattern)`: its first group, or the whole match."""
    return _call("list_extract", _match(text, pattern), exp.convert(1))


def _escaped(node: Any) -> Any:
    """A backslash escapes in patterns, unless another character is named."""
    pattern = node.expression
    if isinstance(pattern, (exp.Any, exp.All, exp.Paren)) or (isinstance(pattern, exp.Literal) and "\\" not in pattern.name):
        return None
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _cut(node: Any) -> Any:
    """A text that is as long as a type says."""
    sizes, word = node.to.expressions, str(getattr(node.to.this, "value", ""))
    if word == "CHAR" and not sizes:
        sizes = [exp.Literal.number(1)]
    if word not in ("VARCHAR", "CHAR", "BPCHAR") or len(sizes) != 1:
        return None
    return exp.Substring(this=exp.cast(node.this.copy(), "text"), start=exp.convert(1), length=exp.Literal.number(sizes[0].name))


def _call(name: str, *arguments: Any) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])
