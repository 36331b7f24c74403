"""Python environments of their own for clients that the tests' environment has no room for: other versions, other requirements.

Owns: `.cache/environments/` of the checkout. Each is made from a file of `python/` with pinned requirements, once for each text of it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "python"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "environments"
BEFORE_ASYNC_WAS_RESERVED = "kafka-python-1.3"


def environment(name: str) -> Path:
    """The interpreter of the environment that `python/NAME.txt` asks for."""
    requirements = SOURCES / f"{name}.txt"
    folder = CACHE / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            unfinished = Path(scratch) / "made"
            uv = str(Path(sys.executable).parent / "uv")
            subprocess.run([uv, "venv", "-q", "--relocatable", "--python", sys.executable, str(unfinished)], check=True)
            install = [uv, "pip", "install", "-q", "--python", str(unfinished / "bin" / "python"), "--require-hashes"]
            subprocess.run([*install, "-r", str(requirements)], check=True)
            if name == BEFORE_ASYNC_WAS_RESERVED:
                _rename_async(unfinished)
            shutil.move(unfinished, folder)
    return folder / "bin" / "python"


def _rename_async(folder: Path) -> None:
    """kafka-python has an argument `async` until 1.4.2, which Python 3.7 made a word of its own: name it as 1.4.3 does.

    Nothing else of it is touched, and nothing that it sends.
    """
    for source in folder.glob("lib/*/site-packages/kafka/**/*.py"):
        text = source.read_text()
        renamed = re.sub(r"\basync\b", "async_send", text)
        if renamed != text:
            source.write_text(renamed)
