"""An exception is made where it is raised: one that is kept and raised again keeps the frames of all the times before."""

from __future__ import annotations

import ast
from pathlib import Path

import barnabas

SOURCE = Path(barnabas.__file__).parent


def kept_and_raised(tree: ast.Module) -> list[str]:
    """Names that a module gives to an object and raises."""
    kept = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    raised = [node.exc.id for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name)]
    return sorted(kept.intersection(raised))


def test_no_exception_is_raised_twice() -> None:
    found = {str(path.relative_to(SOURCE)): kept_and_raised(ast.parse(path.read_text())) for path in SOURCE.rglob("*.py")}
    assert {name: names for name, names in found.items() if names} == {}


def test_one_would_be_found() -> None:
    assert kept_and_raised(ast.parse("E = ValueError('x')\ndef f():\n    raise E\n")) == ["E"]
