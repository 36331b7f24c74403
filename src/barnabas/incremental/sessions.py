"""Sessions: a query by key over all rows of the sessions that are open. The rows of those that have ended are forgotten."""

from __future__ import annotations

from barnabas.incremental.bag import HASH, Bag
from barnabas.incremental.changes import Step, lines_of, listing, same
from barnabas.incremental.groups import GroupedRows, computed
from barnabas.incremental.marks import MARKS, has_moved
from barnabas.incremental.plan import Groups, Sessions


def as_groups(node: Sessions) -> Groups:
    """The query by key."""
    return Groups((node.input,), (node.keys or ("0",),), node.query, node.columns)


class SessionRows(GroupedRows):
    """Rows with the bounds of their sessions. Its bag belongs to it alone, since the rows that it needs depend on other rows."""

    def __init__(self, number: int, node: Sessions, bag: Bag, kinds: list[str]) -> None:
        super().__init__(number, as_groups(node), [bag], kinds)
        self._sessions, self._bag = node, bag

    def forget(self, step: Step) -> None:
        """Forget the rows of sessions that have ended."""
        node, bag = self._sessions, self._bag
        if node.until is None or not has_moved(step, node.until):
            return
        prefix = f"_forgotten_{self._number}"
        old = f"({node.at}) + {node.gap} < ({node.until.bound})"
        keys = f"SELECT DISTINCT {self._keys[0]} FROM {bag.table} AS input_0, {MARKS} WHERE {old}"
        rows = step.change(f"{prefix}_lines", f"{lines_of(bag.table, f'{self._keys[0]} IN ({keys})', 0)}")
        if rows.rows == 0:
            return
        step.make(f"{prefix}_rows", computed(self._node, [bag], [rows], 1))
        ended = f"SELECT {listing(bag.columns, 'input_0')} FROM {prefix}_rows AS input_0, {MARKS} WHERE {node.until.condition}"
        equal = same("s", "e", [each.name for each in bag.columns])
        pairs = f"{prefix}_lines AS s JOIN (SELECT *, {bag.row_hash()} AS _e FROM ({ended})) AS e ON s.{HASH} = e._e AND {equal}"
        step.database.run(f"DELETE FROM {bag.table} WHERE rowid IN (SELECT s._r FROM {pairs})")
