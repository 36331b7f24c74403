"""`python tools/figures.py [FOLDER]`: figures about the code, to compare with those of another commit.

Sizes are lines. A duplicate is a repeated stretch of at least `SAME_LINES` lines, without imports, comments and empty lines.
Imports within functions count as imports; those for types alone do not.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tokenize import COMMENT, tokenize
from typing import NamedTuple

SAME_LINES = 6
FOR_USERS = ("testing", "client", "pipelines")  # packages that users import, with `errors.py`
EXCEPTION = re.compile(r"# (type: ignore|noqa)\b")
WITH_REASON = re.compile(r"# (type: ignore\[[a-z, -]+\]  # (?!noqa)\S|noqa: [A-Z]+\d+(, [A-Z]+\d+)* - \S)")
FOLDERS = ("src", "tests", "bench", "demo", "tools", "examples")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(arguments: Sequence[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    source = root / "src/barnabas"
    texts = {path: path.read_text() for path in sorted(source.rglob("*.py")) if path.parent != source / "protocol/messages"}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    files = {path: len(text.splitlines()) for path, text in texts.items() if text.strip()}
    functions = {
        f"{path.relative_to(source)}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, Function)
    }
    print(f"files            {len(files)}, median {statistics.median(files.values()):.0f}, largest {_largest(files, source)}")
    print(f"functions        {len(functions)}, median {statistics.median(functions.values()):.0f}, largest {_largest(functions)}")
    print(f"duplicates       {len(list(duplicates(texts, trees)))}")
    print(f"import circles   {_circles(trees, source)}")
    found = list(exceptions(root))
    for kind in ("noqa", "type: ignore"):
        reasons = [each.has_reason for each in found if each.kind == kind]
        print(f"{kind:16} {len(reasons)}, with a reason {sum(reasons)}")
    print(f"no docstring     {len(list(undocumented(trees, source)))} public names of {', '.join(FOR_USERS)}, errors")
    return 0


def _largest(sizes: dict[Path, int] | dict[str, int], source: Path | None = None) -> str:
    name, size = max(sizes.items(), key=lambda item: item[1])
    return f"{size} ({name.relative_to(source) if isinstance(name, Path) and source else name})"


def duplicates(texts: Mapping[Path, str], trees: Mapping[Path, ast.Module]) -> Iterator[tuple[Path, int]]:
    """The file and line of each repeated stretch; a longer one counts once."""
    seen: set[tuple[str, ...]] = set()
    for path, text in texts.items():
        imports = {
            number
            for node in ast.walk(trees[path])
            if isinstance(node, ast.Import | ast.ImportFrom)
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        numbered = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if number not in imports]
        numbered = [(number, line) for number, line in numbered if line and not line.startswith("#")]
        lines = [line for _, line in numbered]
        last = -SAME_LINES
        for number in range(len(lines) - SAME_LINES + 1):
            stretch = tuple(lines[number : number + SAME_LINES])
            if stretch in seen and sum(map(len, stretch)) > 20 * SAME_LINES:
                if number > last + 1:
                    yield path, numbered[number][0]
                last = number
            seen.add(stretch)


def _circles(trees: dict[Path, ast.Module], source: Path) -> int:
    """The number of groups of modules that import each other."""
    names = {_module(path, source): path for path in trees}
    imports: dict[str, set[str]] = {name: set(_imported(trees[path], names)) - {name} for name, path in names.items()}
    reached = {name: _reach(name, imports) for name in names}
    groups: set[frozenset[str]] = set()
    for name in names:
        group = frozenset(other for other in reached[name] if name in reached[other])
        if group:
            groups.add(group)
    return len(groups)


def _module(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, names: dict[str, Path]) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            pending += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from (name for name in (whole, node.module) if name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        pending += ast.iter_child_nodes(node)


def _reach(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        for other in imports[pending.pop()] - found:
            found.add(other)
            pending.append(other)
    return found


class Exempt(NamedTuple):
    """A line that mypy or ruff must ignore."""

    place: str
    kind: str
    has_reason: bool


def exceptions(root: Path) -> Iterator[Exempt]:
    """Every `type: ignore` and `noqa` in a comment of the code, tests and tools included."""
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))):
        data = path.read_bytes()
        if not EXCEPTION.search(data.decode()):
            continue  # most of them: telling comments from texts takes longer than reading
        for token in tokenize(BytesIO(data).readline):
            for match in EXCEPTION.finditer(token.string) if token.type == COMMENT else ():
                place = f"{path.relative_to(root)}:{token.start[0]}"
                yield Exempt(place, match[1], WITH_REASON.match(token.string, match.start()) is not None)


def undocumented(trees: Mapping[Path, ast.Module], source: Path) -> Iterator[str]:
    """Public functions and classes without a docstring, in the packages that users import."""
    for path, tree in trees.items():
        if path.relative_to(source).parts[0] not in (*FOR_USERS, "errors.py"):
            continue
        named = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        public = [node for node in named if not node.name.startswith("_")]
        yield from (f"{path.relative_to(source)}: {node.name}" for node in public if ast.get_docstring(node) is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
