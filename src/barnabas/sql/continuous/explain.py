"""The nodes of a plan as text, with their state and the cost of a change."""

from __future__ import annotations

import re

from barnabas.incremental.plan import Groups, Input, Join, Less, Plan, Rows, Sums, Union

GROWS = "a change costs the rows that come"
ROWS = "a change costs the rows that it touches"
GROUP = "a change recomputes its group"
EVERYTHING = "a change recomputes everything"


def explain(plan: Plan) -> str:
    """One line a node: what it is, what it keeps, and what a change costs; then the key of the result."""
    found = [f"{number}: {what(plan, number)}; {keeps(plan, number)}; {cost(plan, number)}" for number in range(len(plan.nodes))]
    text = "\n".join([*found, f"result: {_key(plan)}"])
    for each in plan.functions:
        text = re.sub(each.call, each.name, text, flags=re.IGNORECASE)
    return text


def what(plan: Plan, number: int) -> str:
    """A node in words."""
    match plan.nodes[number]:
        case Input(table=table):
            return f"table {table}"
        case Rows(input=one, where=where, source=source):
            parts = [f"rows of {one}"]
            parts += [f"with {source.removeprefix('input_0').strip(', ')}"] if source != "input_0" else []
            return " ".join([*parts, *([f"where {where}"] if where else [])])
        case Join(left=left, right=right, on=on):
            return f"join of {left} and {right}{f' on {on}' if on else ', all pairs'}"
        case Sums(input=one, keys=keys, sums=sums):
            calls = ", ".join(f"{each.call}({each.argument or '*'})" for each in sums)
            return f"{calls or 'distinct rows'} of {one}{f' by {_listed([each.sql for each in keys])}' if keys else ''}"
        case Groups(inputs=inputs, keys=keys):
            by = _listed(keys[0]) if keys and keys[0] else ""
            return f"query over {_listed(inputs) or 'nothing'}{f' by {by}' if by else ''}"
        case Union(inputs=inputs):
            return f"union of {_listed(inputs)}"
        case Less(input=one, less=less):
            return f"{one} without {less}"


def keeps(plan: Plan, number: int) -> str:
    """The state of a node."""
    match plan.nodes[number]:
        case Input(is_keyed=True):
            return "keeps the newest row of each key"
        case Join(left=left, right=right):
            return f"keeps the rows of {left} and {right}"
        case Sums(keys=keys, input=one):
            line = "keeps a line of each group" if keys else "keeps one line"
            return line if is_added_up(plan, number) else f"{line}, and the rows of {one}"
        case Groups(inputs=inputs, keys=keys) if inputs:
            return f"keeps the rows of {_listed(inputs)}{'' if any(keys) else ', and its result'}"
    return "keeps nothing"


def cost(plan: Plan, number: int) -> str:
    """The cost of a change at a node."""
    match plan.nodes[number]:
        case Groups(keys=keys):
            return GROUP if any(keys) else EVERYTHING
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
