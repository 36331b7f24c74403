"""The nodes of a plan as text, with their state and the cost of a change."""

from __future__ import annotations

import re

from barnabas.incremental.append_only import streamed
from barnabas.incremental.plan import Final, Groups, Input, Join, Less, Lookup, OnTime, Plan, Rows, Sessions, Sums, Union, Until

_MARK = re.compile(r"\bw(\d+)\b")
GROWS = "a change costs the rows that come"
ROWS = "a change costs the rows that it touches"
GROUP = "a change recomputes its group"
RECORDS = "each record is read once"
EVERYTHING = "a change recomputes everything"


def explain(plan: Plan) -> str:
    """One line a node: what it is, what it keeps, and what a change costs; then the key of the result."""
    found = [f"{number}: {what(plan, number)}; {keeps(plan, number)}; {cost(plan, number)}" for number in range(len(plan.nodes))]
    return _readable(plan, [*found, f"result: {_key(plan)}"])


def _readable(plan: Plan, lines: list[str]) -> str:
    """The lines with the names of functions as statements have them."""
    text = "\n".join(lines)
    for each in plan.functions:
        text = re.sub(each.call, each.name, text, flags=re.IGNORECASE)
    return text


def explain_appends(plan: Plan) -> str:
    """The same of a plan whose rows are appended."""
    streams = streamed(plan)
    beside = {
        each for number in streams for each in plan.inputs_of(number) if not isinstance(plan.nodes[number], Final)
    } - streams
    found = []
    for number in range(len(plan.nodes)):
        if number in streams:
            kept = keeps(plan, number) if isinstance(plan.nodes[number], Final) else "keeps nothing"
            found.append(f"{number}: {what(plan, number)}; {kept}; {RECORDS}")
            continue
        kept = "keeps its rows" if number in beside and not isinstance(plan.nodes[number], Input) else keeps(plan, number)
        is_added = number in beside and isinstance(node := plan.nodes[number], Input) and not node.is_keyed
        found.append(f"{number}: {what(plan, number)}; {'keeps its rows' if is_added else kept}; {cost(plan, number)}")
    return _readable(plan, [*found, "result: rows that are appended, and never change"])


def what(plan: Plan, number: int) -> str:
    """A node in words."""
    match plan.nodes[number]:
        case Input(table=table, is_stream=is_stream):
            return table if is_stream else f"table {table}"
        case Rows(input=one, where=where, source=source):
            parts = [f"rows of {one}"]
            parts += [f"with {source.removeprefix('input_0').strip(', ')}"] if source != "input_0" else []
            return " ".join([*parts, *([f"where {where}"] if where else [])])
        case Join(left=left, right=right, on=on):
            return f"join of {left} and {right}{f' on {on}' if on else ', all pairs'}"
        case Lookup(left=left, right=right, on=on):
            return f"rows of {left} with those that {right} has when they come{f' on {on}' if on else ''}"
        case Sums(input=one, keys=keys, sums=sums):
            calls = ", ".join(f"{each.call}({each.argument or '*'})" for each in sums)
            return f"{calls or 'distinct rows'} of {one}{f' by {_listed([each.sql for each in keys])}' if keys else ''}"
        case Groups(inputs=inputs, keys=keys):
            by = _listed(keys[0]) if keys and keys[0] else ""
            return f"query over {_listed(inputs) or 'nothing'}{f' by {by}' if by else ''}"
        case OnTime(input=one, time=time, watermark=watermark):
            return (
                f"rows of {one} that are not late by {time}: its watermark is the greatest {watermark.removeprefix('input_0.')}"
            )
        case Sessions(input=one, keys=keys, gap=gap):
            return f"sessions of {one} with gaps of {gap}{f' by {_listed(keys)}' if keys else ''}"
        case Final(input=one):
            return f"rows of {one} that are final"
        case Union(inputs=inputs):
            return f"union of {_listed(inputs)}"
        case Less(input=one, less=less):
            return f"{one} without {less}"


def keeps(plan: Plan, number: int) -> str:
    """The state of a node."""
    found = _keeps(plan, number)
    untils = list(dict.fromkeys(_below(each) for each in untils_of(plan, number)))
    return f"{found} until {' and '.join(untils)}" if untils else found


def _below(until: Until) -> str:
    bound = _MARK.sub(lambda found: f"watermark({found[1]})", until.bound)
    return f"{until.sql.removeprefix('input_0.')} < {bound}"


def untils_of(plan: Plan, number: int) -> list[Until]:
    """When a node may forget rows; none if it keeps some for good."""
    match plan.nodes[number]:
        case Sums(until=until) | Sessions(until=until) | Final(until=until):
            return [until] if until is not None else []
        case Join(until=untils) | Groups(until=untils):
            found = [each for each in untils if each is not None]
            return found if len(found) == len(untils) else []
    return []


def _keeps(plan: Plan, number: int) -> str:
    match plan.nodes[number]:
        case Input(is_keyed=True):
            return "keeps the newest row of each key"
        case Join(left=left, right=right):
            return f"keeps the rows of {left} and {right}"
        case Lookup(right=right):
            return f"keeps the rows of {right}"
        case Sums(keys=keys, input=one):
            line = "keeps a line of each group" if keys else "keeps one line"
            return line if is_added_up(plan, number) else f"{line}, and the rows of {one}"
        case Groups(inputs=inputs, keys=keys) if inputs:
            return f"keeps the rows of {_listed(inputs)}{'' if any(keys) else ', and its result'}"
        case Sessions(input=one):
            return f"keeps the rows of {one}"
        case OnTime():
            return "keeps the watermark"
        case Final():
            return "keeps the others"
    return "keeps nothing"


def cost(plan: Plan, number: int) -> str:
    """The cost of a change at a node."""
    match plan.nodes[number]:
        case Groups(keys=keys):
            return GROUP if any(keys) else EVERYTHING
        case Sessions():
            return GROUP
        case Sums():
            return ROWS if is_added_up(plan, number) else GROUP
    return GROWS if plan.only_grows(number) else ROWS


def is_added_up(plan: Plan, number: int) -> bool:
    """Whether rows can be added to the aggregates of a node and, if rows go, taken from them."""
    node = plan.nodes[number]
    assert isinstance(node, Sums)
    if plan.only_grows(node.input):
        return True
    return all(each.call == "count" or (each.call == "sum" and each.kind != "DOUBLE") for each in node.sums)


def _key(plan: Plan) -> str:
    if plan.key is None:
        return "equal rows are counted, because no columns identify a row"
    shown = [f"{name} (hidden)" if name in plan.hidden else name for name in plan.key]
    return f"a row of each {_listed(shown)}"


def _listed(names: object) -> str:
    return ", ".join(str(each) for each in names) if isinstance(names, (list, tuple)) else str(names)
