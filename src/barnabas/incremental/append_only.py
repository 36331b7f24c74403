"""Plans whose result only grows: each row of a stream makes rows by itself, and no later row takes one back. No I/O.

A stream has rows of the present step alone. A table has all of its rows after the step. A row of a stream is joined with the rows that a
table has in the step of the row; a later change of the table changes nothing that was written.

Some nodes give rows that are never taken back, and keep what they need for it: a node Final, and a join of two streams that watermarks
bound. The nodes below them are kept as in every flow.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.incremental.plan import Final, Groups, Input, Join, Less, Lookup, Plan, Sums, Union

NO_STREAM = "it reads no stream"
UNBOUND = "two streams are joined without a bound of time, so each row would have to wait for ever for a partner"


def reason_against(plan: Plan) -> str | None:
    """Why the rows of a plan cannot be appended, as the end of a sentence; None if they can."""
    if not any(isinstance(each, Input) and each.is_stream for each in plan.nodes):
        return NO_STREAM
    streams = streamed(plan)
    for number in sorted(streams):
        reason = _reason(plan, number, streams)
        if reason is not None:
            return reason
    return None if len(plan.nodes) - 1 in streams else NO_STREAM


def streamed(plan: Plan) -> frozenset[int]:
    """The nodes whose rows come from streams, without those that are only below a node that is kept."""
    from_streams, found, pending = _from_streams(plan), set[int](), [len(plan.nodes) - 1]
    while pending:
        number = pending.pop()
        if number in from_streams and number not in found:
            found.add(number)
            pending += () if is_kept(plan, number) else plan.inputs_of(number)
    return frozenset(found)


def is_kept(plan: Plan, number: int) -> bool:
    """Whether a node over streams gives rows that are never taken back, and is kept with all below it."""
    node = plan.nodes[number]
    return isinstance(node, Final) or (joins_streams(plan, number) and isinstance(node, Join) and None not in node.until)


def joins_streams(plan: Plan, number: int) -> bool:
    """Whether a node is the join of two streams."""
    return isinstance(plan.nodes[number], Join) and set(plan.inputs_of(number)) <= _from_streams(plan)


def reads_streams_alone(plan: Plan, number: int) -> bool:
    """Whether all rows below a node come from streams, but for tables that they look up."""
    return _below(plan, number) <= _from_streams(plan)


def _from_streams(plan: Plan) -> set[int]:
    found = set[int]()
    for number, node in enumerate(plan.nodes):
        if isinstance(node, Final) or (isinstance(node, Input) and node.is_stream) or found & set(plan.inputs_of(number)):
            found.add(number)
    return found


def _below(plan: Plan, number: int) -> set[int]:
    """The nodes that a node reads, directly or not, without the tables of look-ups."""
    found, pending = set[int](), [number]
    while pending:
        each = pending.pop()
        node = plan.nodes[each]
        inputs = {node.left} if isinstance(node, Lookup) else set(plan.inputs_of(each))
        pending += inputs - found
        found |= inputs
    return found


def _reason(plan: Plan, number: int, streams: Collection[int]) -> str | None:
    if joins_streams(plan, number):
        return _reason_against_join(plan, number, streams)
    match plan.nodes[number]:
        case Sums(sums=sums):
            return "an aggregate of a stream changes with each row" if sums else "DISTINCT over a stream needs all rows before"
        case Groups(inputs=inputs, is_filter=True) if not set(inputs[1:]) & set(streams):
            return None
        case Groups():
            return (
                "a part of the query needs other rows of the stream than one: a window function, an order, a limit, or DISTINCT"
            )
        case Lookup(right=right) if right in streams:
            return "a stream is read as a table that a row meets"
        case Union(inputs=inputs) if not set(inputs) <= set(streams):
            return "a stream and a table are combined, and the rows of the table would come again with each row of the stream"
        case Less(input=one, less=less) if not {one, less} <= set(streams):
            return "rows of a table without a partner in the stream are not known before the stream ends"
    return None


def _reason_against_join(plan: Plan, number: int, streams: Collection[int]) -> str | None:
    """Why a join of two streams cannot be appended."""
    if not reads_streams_alone(plan, number):
        return "a table is joined with one stream before another is: join the streams first, or read it FOR SYSTEM_TIME AS OF PROCTIME()"
    if not is_kept(plan, number):
        return UNBOUND
    if any(each in streams and not is_kept(plan, each) for each in _below(plan, number)):
        return "a stream is read in a join of streams, and beside it"
    return None if plan.only_grows(number) else "a row of a joined stream could be taken back"
