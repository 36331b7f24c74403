"""The syntax trees of the code, for the files that test all of it.

Such a file of tests has the mark `usefixtures("syntax_trees")`, which ends the trees after it. Otherwise the garbage collector would
visit them at the end of every later file of tests, and this takes a second each time.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file. Callers do not change it."""
    return ast.parse(path.read_text())
