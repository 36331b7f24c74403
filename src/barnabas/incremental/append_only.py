"""Plans whose result only grows: each row of a stream makes rows by itself, and no later row takes one back. No I/O.

A stream has rows of the present step alone. A table has all of its rows after the step. A row of a stream is joined with the rows that a
table has in the step of the row; a later change of the table changes nothing that was written.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.incremental.plan import Groups, Input, Join, Less, Plan, Sums, Union

NO_STREAM = "it reads no stream"


def reason_against(plan: Plan) -> str | None:
    """Why the rows of a plan cannot be appended, as the end of a sentence; None if they can."""
    streams = streamed(plan)
    for number in sorted(streams):
        reason = _reason(plan, number, streams)
        if reason is not None:
            return reason
    return None if len(plan.nodes) - 1 in streams else NO_STREAM


def streamed(plan: Plan) -> frozenset[int]:
    """The nodes whose rows come from streams."""
    found: set[int] = set()
    for number, node in enumerate(plan.nodes):
        if (isinstance(node, Input) and node.is_stream) or found & set(plan.inputs_of(number)):
            found.add(number)
    return frozenset(found)


def _reason(plan: Plan, number: int, streams: Collection[int]) -> str | None:
    match plan.nodes[number]:
        case Sums(sums=sums):
            return "an aggregate of a stream changes with each row" if sums else "DISTINCT over a stream needs all rows before"
        case Groups(inputs=inputs, is_filter=True) if not set(inputs[1:]) & set(streams):
            return None
        case Groups():
            return (
                "a part of the query needs other rows of the stream than one: a window function, an order, a limit, or DISTINCT"
            )
        case Join(left=left, right=right) if left in streams and right in streams:
            return "two streams are joined, so a row would have to wait for rows that come later"
        case Union(inputs=inputs) if not set(inputs) <= set(streams):
            return "a stream and a table are combined, and the rows of the table would come again with each row of the stream"
        case Less(input=one, less=less) if not {one, less} <= set(streams):
            return "rows of a table without a partner in the stream are not known before the stream ends"
    return None
