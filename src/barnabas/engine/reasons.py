"""The reason of a failure in one line, also of one that Spark passes on with a traceback of Python and its own words around it."""

from __future__ import annotations

import re

from barnabas.pipelines.data_loss import LOSS_FAILS

MOST_CHARACTERS = 1_000
TRACEBACK = "Traceback (most recent call last):"
OURS = "barnabas."
_RAISED = re.compile(r"(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<text>.*))?")
_BEHIND = re.compile(r"\s*SQLSTATE: |=== |\s+at ")  # Spark writes it behind a traceback


def one_line(error: BaseException) -> str:
    """The reason of an error. Of our own errors it is the text alone, of others their name too."""
    text = str(error)
    found = _raised(text.rpartition(TRACEBACK)[2]) if TRACEBACK in text else None
    line = " ".join((found or text).split()) or type(error).__name__
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…"


def reason_of_view(error: BaseException, job: str) -> str:
    """The same for a view, with what helps: nobody sets an option of its source."""
    line = one_line(error)
    return f"{line.removesuffix(LOSS_FAILS)}{rebuild(job)}" if line.endswith(LOSS_FAILS) else line


def rebuild(job: str) -> str:
    """Advice about a view that cannot go on from its state."""
    return f"`barnabas job restart {job} --rebuild` computes it again from what is there"


def _raised(traceback: str) -> str | None:
    """The error at the end of a traceback."""
    lines: list[str] = []
    for line in traceback.splitlines()[1:]:
        if _BEHIND.match(line):
            break
        if line.startswith(" "):
            lines.clear()  # a frame; the error comes behind the last one
        elif line.strip():
            lines.append(line)
    found = _RAISED.fullmatch(lines[0]) if lines else None
    if found is None:
        return None
    kind = found["kind"]
    first = found["text"] or ""
    rest = " ".join([first, *lines[1:]]).strip()
    if kind.startswith(OURS) and rest:
        return rest
    name = kind.rpartition(".")[2]
    return f"{name}: {rest}" if rest else name
