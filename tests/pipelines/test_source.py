"""How Spark finds the source, without a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def python(code: str) -> str:
    """The output of `code` in a fresh interpreter that sees only installed packages and our sources."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_source_is_found_under_its_name() -> None:
    assert python("import pyspark_barnabas; print(pyspark_barnabas.DefaultSource.name())") == "barnabas"


def test_looking_it_up_loads_nothing_heavy() -> None:
    loaded = python("import pyspark_barnabas; print(*sorted({m.split('.')[0] for m in sys.modules}))").split()
    assert not {"numba", "pyarrow", "numpy", "pandas", "confluent_kafka", "cramjam"} & set(loaded)


def test_looking_it_up_fails_nowhere() -> None:
    blocked = "class Block:\n  def find_spec(self, name, *_):\n    if name.split('.')[0] == 'pyspark': raise ImportError(name)\n"
    code = (
        blocked + "sys.meta_path.insert(0, Block())\nimport pyspark_barnabas; print(hasattr(pyspark_barnabas, 'DefaultSource'))"
    )
    assert python(code) == "False"


def test_the_package_is_cheap_to_import() -> None:
    loaded = python("import barnabas.pipelines; print(*sorted({m.split('.')[0] for m in sys.modules}))").split()
    assert not {"pyspark", "numba", "pyarrow", "numpy"} & set(loaded)
