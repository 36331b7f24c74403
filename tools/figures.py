"""`python tools/figures.py [FOLDER]`: what the code looks like from outside, in figures to compare with those of another commit.

Sizes are lines. A duplicate is a stretch of at least `SAME_LINES` lines that stands twice, without imports, comments and empty lines.
Imports within functions count as imports; those for types alone do not.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

SAME_LINES = 6
FOR_USERS = ("testing", "client", "pipelines")  # packages that users import, with `errors.py`
IGNORED = re.compile(r"#\s*(type: ignore|noqa)(\[[\w, -]+\]|:\s*[\w, ]+)?(.*)")
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
    print(f"duplicates       {len(list(_duplicates(texts)))}")
    print(f"import circles   {_circles(trees, source)}")
    everything = [
        path for folder in ("src", "tests", "bench", "demo", "tools", "examples") for path in (root / folder).rglob("*.py")
    ]
    for kind, (count, reasons) in _ignored(everything).items():
        print(f"{kind:16} {count}, with a reason {reasons}")
    print(f"no docstring     {len(list(_undocumented(trees, source)))} public names of {', '.join(FOR_USERS)}, errors")
    return 0


def _largest(sizes: dict[Path, int] | dict[str, int], source: Path | None = None) -> str:
    name, size = max(sizes.items(), key=lambda item: item[1])
    return f"{size} ({name.relative_to(source) if isinstance(name, Path) and source else name})"


def _duplicates(texts: dict[Path, str]) -> Iterator[tuple[Path, int]]:
    """Where stretches begin that stood before; a longer one counts once."""
    seen: set[tuple[str, ...]] = set()
    for path, text in texts.items():
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith(("#", "import ", "from "))]
        last = -SAME_LINES
        for number in range(len(lines) - SAME_LINES + 1):
            stretch = tuple(lines[number : number + SAME_LINES])
            if stretch in seen and sum(map(len, stretch)) > 20 * SAME_LINES:
                if number > last + 1:
                    yield path, number
                last = number
            seen.add(stretch)


def _circles(trees: dict[Path, ast.Module], source: Path) -> int:
    """How many groups of modules import one another."""
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


def _ignored(paths: Sequence[Path]) -> dict[str, tuple[int, int]]:
    """How many exceptions from types and from lint there are, and how many of them say why."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path in paths:
        for line in path.read_text().splitlines():
            match = IGNORED.search(line)
            if match:
                counts[match[1]][0] += 1
                counts[match[1]][1] += bool(match[3].strip(" #-"))
    return {kind: (count, reasons) for kind, (count, reasons) in sorted(counts.items())}


def _undocumented(trees: dict[Path, ast.Module], source: Path) -> Iterator[str]:
    for path, tree in trees.items():
        if path.relative_to(source).parts[0] not in (*FOR_USERS, "errors.py"):
            continue
        named = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        yield from (node.name for node in named if not node.name.startswith("_") and ast.get_docstring(node) is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
