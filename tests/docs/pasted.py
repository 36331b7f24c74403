"""Runs the fenced blocks of a page as a reader would paste them, in order, and compares what they print with what the page says.

Owns a folder in which all blocks of a page run, and the servers that the page starts.

Rules
  1. The text of the page stays unchanged; only places are exchanged before a block runs, so that pages do not meet each other:
     every port behind an address of this machine is a free one (the same for the same number), and folders under /tmp and
     /var/lib lie in the page's folder.
  2. `shell` blocks run line by line in bash (a here-document is one line); the first command that fails ends the page, but for one of
     which a comment behind it says that it is refused: that has to fail. A line that starts a server is left running, and the next
     begins when the server says that it is ready; it gets the settings `QUICK` besides, which save time. A server on a port that
     another one has ends that one first, as Ctrl-C would. If the page names the port of the schema registry, a server starts one.
  3. `python` blocks are programs, run as `venv/bin/python job.py` without activating the environment: the PATH does not have its folder.
     One with tests in it is run by pytest. The environment names the page's broker to the command line.
  4. A `text` block behind another block is what that one prints: each of its lines stands in the output, in order; `…` stands for
     anything. Any number of blanks equals any other, since the columns of a table are as wide as their values.
  5. A block behind `<!-- not run: WHY -->` is not run. Blocks of other languages, and of none, are to be read.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from operator import ne
from pathlib import Path
from types import TracebackType

from barnabas.testing.children import Child

ROOT = Path(__file__).resolve().parent.parent.parent
FENCE = re.compile(r"^( *)```([\w-]*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: [^>]+ -->\s*\Z")
SERVER = re.compile(r"barnabas (?:start|broker start)\b")
PORT = re.compile(r"((?:127\.0\.0\.1|localhost|://):)(\d{4,5})\b")
PLACES = re.compile(r"(?<![\w.])/(tmp|var/lib)/")
HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")
REFUSED = re.compile(r"\s# refused\b")
WITHIN_S = 300.0
DEFAULT_PORT, REGISTRY_PORT, CONNECT_PORT = "9092", "8081", "8083"
STRICTNESS = {"PYTHONWARNINGS", "PYTHONDEVMODE"}  # set for the tests; a reader's shell has none of these, and libraries may warn
QUICK = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")
SHORT_RUNS_OF_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # a session of Spark starts with half of the CPU


@dataclass
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    line: int
    is_run: bool
    prints: str = ""  # expected output, from the text block after this one


def blocks_of(page: Path) -> list[Block]:
    """The blocks of `page` that are run, in order, each with what it is to print."""
    text, found = page.read_text(), list[Block]()
    for match in FENCE.finditer(text):
        language, before = match[2], text[: match.start()]
        if language == "text" and found:
            found[-1].prints = match[3]
        elif language in ("shell", "python", "text"):
            found.append(Block(language, match[3], before.count("\n") + 1, NOT_RUN.search(before) is None))
    return [block for block in found if block.is_run and block.language != "text"]


@dataclass
class Pasted:
    """A reader with a terminal in `folder`; leaves no process behind."""

    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    servers: dict[int, Child[str]] = field(default_factory=dict)
    has_registry: bool = False

    def __enter__(self) -> Pasted:
        for place in ("tmp", "var/lib"):
            (self.folder / place).mkdir(parents=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for port in list(self.servers):
            self.stop(port)

    def run_page(self, page: Path) -> int:
        """Run every block of `page`; how many that were. A difference is an AssertionError that names the block's line."""
        blocks = blocks_of(page)
        self.has_registry = any(f":{REGISTRY_PORT}" in block.text for block in blocks)
        for block in blocks:
            output = self.run(block)
            missing = first_missing(block.prints, output)
            assert missing is None, f"{page.name}:{block.line} was to print {missing!r}, and printed:\n{output}"
        return len(blocks)

    def run(self, block: Block) -> str:
        """The output of the block."""
        text = self.placed(block.text)
        if block.language == "python":
            return self._run_python(text, f"block_{block.line}")
        return "".join(self._run_line(line) for line in commands(text))

    def placed(self, text: str) -> str:
        """`text` with free ports, and folders of this page."""
        text = PORT.sub(lambda match: f"{match[1]}{self.port(match[2])}", text)
        return PLACES.sub(lambda match: f"{self.folder}/{match[1]}/", text)

    def port(self, written: str) -> int:
        """The free port that stands for the one that is `written`."""
        if written not in self.ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.ports[written] = probe.getsockname()[1]
        return self.ports[written]

    def stop(self, port: int) -> None:
        """End the server on `port` as Ctrl-C does; it is to end in order."""
        server = self.servers.pop(port)
        server.send_signal(signal.SIGINT)
        try:
            output, _ = server.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()
            raise
        assert server.returncode == 0, output

    def _run_line(self, line: str) -> str:
        if SERVER.match(line):
            return self._start(line)
        return self._complete(["bash", "-euo", "pipefail", "-c", line], line, is_refused=REFUSED.search(line) is not None)

    def _run_python(self, text: str, name: str) -> str:
        is_test = re.search(r"^def test_", text, re.MULTILINE) is not None
        program = self.folder / (f"test_{name}.py" if is_test else f"{name}.py")
        program.write_text(text)
        pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        return self._complete([sys.executable, *(pytest if is_test else []), str(program)], name, is_activated=False)

    def _start(self, line: str) -> str:
        words = shlex.split(line, comments=True)
        if "--listeners" not in words:
            words += [
                "--listeners",
                f"{'SASL_SSL' if '--secure' in words else 'PLAINTEXT'}://127.0.0.1:{self.port(DEFAULT_PORT)}",
            ]
        words += [f"--config={setting}" for setting in QUICK]
        if self.has_registry:
            words += ["--registry-listener", f"http://127.0.0.1:{self.port(REGISTRY_PORT)}"]
        port, *others = map(int, re.findall(r":(\d+)", words[words.index("--listeners") + 1]))
        for taken in {port, *others} & self.servers.keys():
            self.stop(taken)
        log = self.folder / f"server-{port}.log"
        with log.open("a") as errors:
            server: Child[str] = Child(
                words, cwd=self.folder, env=self._environment(), stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.servers[port] = server
        assert server.stdout is not None
        count = (
            1
            + self.has_registry
            + ("--sql-listener" in words)
            + ("--engine-listener" in words)
            + ("--postgres-listener" in words)
        )
        ready = [server.stdout.readline() for _ in range(count)]
        assert all(ready), f"{line}\n{log.read_text()}"
        return "".join(ready)

    def _complete(self, command: list[str], what: str, *, is_refused: bool = False, is_activated: bool = True) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(is_activated=is_activated),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        assert (done.returncode != 0) == is_refused, f"{what}: exit code {done.returncode}\n{done.stdout}"
        return done.stdout

    def _environment(self, *, is_activated: bool = True) -> dict[str, str]:
        own = str(Path(sys.executable).parent)
        path = [place for place in os.environ["PATH"].split(os.pathsep) if place != own]
        places = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        return {
            **{name: value for name, value in os.environ.items() if name not in STRICTNESS},
            "PATH": os.pathsep.join([own, *path] if is_activated else path),
            "PYTHONPATH": os.pathsep.join(place for place in places if place),
            "SPARK_SUBMIT_OPTS": SHORT_RUNS_OF_JAVA,
            "BARNABAS_BOOTSTRAP_SERVERS": f"127.0.0.1:{self.port(DEFAULT_PORT)}",
            "BARNABAS_CONNECT_URL": f"http://127.0.0.1:{self.port(CONNECT_PORT)}",
            "SCHEMA_REGISTRY_URL": f"http://127.0.0.1:{self.port(REGISTRY_PORT)}",
        }


def commands(text: str) -> list[str]:
    """The commands of a shell block, each with its further lines."""
    lines, found = iter(re.sub(r"\\\n\s*", "", text).splitlines()), list[str]()
    for line in lines:
        here = HERE_DOCUMENT.search(line)
        if here is not None:
            found.append("\n".join([line, *takewhile(partial(ne, here[1]), lines), here[1]]))
        elif line.strip() and not line.startswith("#"):
            found.append(line)
    return found


def first_missing(expected: str, output: str) -> str | None:
    """The first line of `expected` that does not stand in `output` behind those before it."""
    lines = iter(output.splitlines())
    for wanted in filter(str.strip, expected.splitlines()):
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(wanted.split()).split("…")))
        if not any(pattern.fullmatch(" ".join(line.split())) for line in lines):
            return wanted
    return None
