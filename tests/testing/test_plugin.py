"""The fixtures as a user's own test run sees them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs/guides/testing.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def run_pytest(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """pytest in a process of its own, with no plugin but ours, on one file."""
    (folder / "test_user.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")  # keeps out a configuration from the folders above
    # An installed package loads the plugin by its entry point. In a source tree the command has to name it.
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "barnabas.testing.plugin", "-p", "no:cacheprovider", "test_user.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, env=environment, check=False)


def test_each_test_gets_a_broker_of_its_own_and_the_session_one(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        "seen = []\n"
        "def test_one(kafka, kafka_session):\n"
        "    seen.append((kafka.bootstrap_servers, kafka_session.bootstrap_servers))\n"
        "def test_two(kafka, kafka_session):\n"
        "    (own, shared), = seen\n"
        "    assert kafka_session.bootstrap_servers == shared\n"
        "    assert shared not in (own, kafka.bootstrap_servers)\n"
        "    assert kafka_session.is_running() and kafka.is_running()\n",
    )
    assert done.returncode == 0, done.stdout


def test_nothing_is_left_of_a_test_that_fails(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "def test_it(kafka):\n    print('folder', kafka.data_dir.parent)\n    assert False\n")
    assert done.returncode == 1
    folder = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("folder "))
    assert not Path(folder).exists()


def test_the_first_example_of_the_guide_passes(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, BLOCK.findall(GUIDE.read_text())[0])
    assert done.returncode == 0, done.stdout


def test_the_examples_of_the_guide_are_python() -> None:
    for block in BLOCK.findall(GUIDE.read_text()):
        compile(block, str(GUIDE), "exec")
