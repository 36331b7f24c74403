"""`python tools/figures.py [FOLDER]`: figures of the code, to compare with those of another commit.

Sizes are lines. A duplicate is a repeated stretch of at least `SAME_LINES` lines, without imports, comments and empty lines.
Imports within functions count as imports. Imports only for types count only for the largest import circle and the upward
arrows. Arrows are compared with the layers of `server/` in import-linter's contract in pyproject.toml. The exit code is 1 if a
circle is larger than `LARGEST_CIRCLE`, or if there are more arrows than `UPWARD_ARROWS`.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tokenize import COMMENT, tokenize
from typing import NamedTuple

SAME_LINES = 6
LARGEST_CIRCLE, UPWARD_ARROWS = 3, 0  # allowed maximum
LAYERED = "barnabas.server"
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
    names = {_module(path, source): path for path in trees}
    imports = {name: set(imported(trees[path], names)) - {name} for name, path in names.items()}
    with_types = {name: set(imported(trees[path], names, for_types=True)) - {name} for name, path in names.items()}
    print(f"import circles   {len(circles(imports))}")
    largest = max(map(len, circles(with_types)), default=0)
    arrows = list(upward_arrows(with_types, layers_of(root)))
    print(f"with types       largest circle {largest}, upward arrows {len(arrows)}")
    found = list(exceptions(root))
    for kind in ("noqa", "type: ignore"):
        reasons = [each.has_reason for each in found if each.kind == kind]
        print(f"{kind:16} {len(reasons)}, with a reason {sum(reasons)}")
    print(f"no docstring     {len(list(undocumented(trees, source)))} public names of {', '.join(FOR_USERS)}, errors")
    for arrow in arrows:
        print(f"points up: {arrow}", file=sys.stderr)
    if largest > LARGEST_CIRCLE:
        print(f"the largest import circle has {largest} files; at most {LARGEST_CIRCLE} may import one another", file=sys.stderr)
    return 1 if largest > LARGEST_CIRCLE or len(arrows) > UPWARD_ARROWS else 0


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


def circles(imports: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules that import one another."""
    reached = {name: _reach(name, imports) for name in imports}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in imports}
    return groups - {frozenset()}


def layers_of(root: Path) -> dict[str, int]:
    """The layer of each module or package of `LAYERED`, 0 for the lowest; siblings that may not import one another have the
    same layer."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next((each["layers"] for each in contracts if each.get("containers") == [LAYERED]), ())
    return {name.strip(" ()"): rank for rank, layer in enumerate(reversed(layers)) for name in re.split("[|:]", layer)}


def upward_arrows(imports: Mapping[str, set[str]], layers: Mapping[str, int]) -> Iterator[str]:
    """Imports from one layer of `LAYERED` into a higher one."""
    for name, others in imports.items():
        for other in sorted(others):
            here, there = (layers.get(_room(each), -1) for each in (name, other))
            if 0 <= here < there:
                yield f"{name} -> {other}"


def _room(name: str) -> str:
    inside = name.removeprefix(LAYERED + ".")
    return "" if inside == name else inside.partition(".")[0]


def _module(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, names: Mapping[str, Path], *, for_types: bool = False) -> Iterator[str]:
    """The modules of `names` that a file imports.

    Args:
        for_types: include imports under TYPE_CHECKING.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        is_for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if isinstance(node, ast.If) and is_for_types and not for_types:
            pending += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in names or node.module in names:
                    yield whole if whole in names else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        pending += ast.iter_child_nodes(node)


def _reach(name: str, imports: Mapping[str, set[str]]) -> set[str]:
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
    """Every `type: ignore` and `noqa` in a comment of the code, including tests and tools."""
    for path in (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))):
        data = path.read_bytes()
        if not EXCEPTION.search(data.decode()):
            continue  # most files: finding the comments takes longer than this search
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
