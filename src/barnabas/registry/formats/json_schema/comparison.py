"""Compares two schemas by Confluent's rules.

A rule is a generator. It yields a pair of schemas to compare and receives their differences, so a deep schema does not need a
deep stack. The differences of a pair are computed once and kept: schemas that refer to each other have few pairs, but very many
paths between them.

If a pair occurs again during its own comparison, it counts as compatible there. If it is incompatible in the end, the
comparison starts again with this result, because other pairs have used the wrong one. Each start has more known pairs, so the
comparison ends.
"""

from __future__ import annotations

from barnabas.limits import MAX_JSON_SCHEMA_DIFFERENCES, MAX_JSON_SCHEMA_PATH, MAX_JSON_SCHEMA_STEPS
from barnabas.registry.formats.json_schema import rules
from barnabas.registry.formats.json_schema.differences import COMPATIBLE, Difference
from barnabas.registry.formats.json_schema.documents import Documents
from barnabas.registry.formats.json_schema.model import Node, Schemas
from barnabas.registry.formats.json_schema.steps import Report, Steps, TooLarge
from barnabas.registry.formats.json_schema.text import Interner

# result of an unfinished pair; deeper than any path in a report
_KNOWN = Difference("TYPE_CHANGED", ("recursion",) * (MAX_JSON_SCHEMA_PATH + 1))


class Comparison:
    """One comparison.

    Args:
        original: the schema of the written data.
        update: the schema of the reader.
        accepted: the kinds of differences that a reader can handle, also in parts of a schema.
    """

    def __init__(self, original: Documents, update: Documents, accepted: frozenset[str] = COMPATIBLE) -> None:
        interner = Interner()
        self._root = (Schemas(original, interner).root, Schemas(update, interner).root)
        self._report = Report(accepted, MAX_JSON_SCHEMA_STEPS, MAX_JSON_SCHEMA_DIFFERENCES, MAX_JSON_SCHEMA_PATH)
        self._incompatible: set[tuple[int, int]] = set()

    def differences(self) -> list[Difference]:
        """All differences, with their paths from the root; one difference of the kind TOO_LARGE_TO_COMPARE if the comparison
        needs too many steps."""
        try:
            found, proved = self._run()
            while proved - self._incompatible:
                self._incompatible |= proved
                found, proved = self._run()
        except TooLarge:
            return [Difference("TOO_LARGE_TO_COMPARE")]
        shown = [difference for difference in found if difference is not _KNOWN]
        if len(shown) < len(found) and self._report.allows(shown):
            shown.append(Difference("TYPE_CHANGED"))
        return shown

    def _run(self) -> tuple[list[Difference], set[tuple[int, int]]]:
        """The differences, and the pairs that counted as compatible and are not."""
        known: dict[tuple[int, int], list[Difference]] = {}
        met: set[tuple[int, int]] = set()
        open_pairs: dict[tuple[int, int], Steps] = {}
        answer: list[Difference] | None = None
        wanted: tuple[Node, Node] | None = self._root
        while True:
            if wanted is not None:
                original, update = wanted[0].target(), wanted[1].target()
                key = (id(original), id(update))
                if key in known:
                    answer = known[key]
                elif key in open_pairs:
                    met.add(key)
                    answer = [_KNOWN] if key in self._incompatible else []
                else:
                    self._report.spend(1)
                    open_pairs[key] = rules.compare(self._report, original, update)
                    answer = None
            key, steps = next(reversed(open_pairs.items()))
            try:
                wanted = steps.send(answer)  # type: ignore[arg-type]  # the first `send` must pass None
            except StopIteration as end:
                found: list[Difference] = end.value
                known[key] = answer = found
                del open_pairs[key]
                wanted = None
                if not open_pairs:
                    return found, {pair for pair in met if not self._report.allows(known[pair])}
