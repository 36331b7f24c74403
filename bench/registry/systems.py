"""The compared registries, each a process of its own with a topic of its own; and `barnabas start` with services beside the
broker.

Karapace needs Python 3.12 or later. `karapace.txt` names its version; its environment stays in `.cache/environments`.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tools.kafka import free_ports

from barnabas.testing.children import Child
from bench.peers.peer import PeerUnavailable
from bench.peers.process import OwnProcess, Process, family

HOST = "127.0.0.1"
OURS, KARAPACE = "barnabas", "Karapace"
REQUIREMENTS = Path(__file__).with_name("karapace.txt")
ENVIRONMENTS = Path(__file__).resolve().parents[2] / ".cache" / "environments"
SOURCE = Path(__file__).resolve().parents[2] / "src"
LEAST_PYTHON = (3, 12)
STOP_TIMEOUT_S = 15.0


def call(address: tuple[str, int], method: str, path: str, value: object = None) -> tuple[int, object]:
    """Send one request; returns the status and the JSON of the answer. Raises OSError."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    try:
        body = None if value is None else json.dumps(value)
        connection.request(method, path, body, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


class RegistryProcess(OwnProcess):
    """A registry; it counts as ready when it answers a read and a write."""

    name = ""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__()
        self.address = (HOST, free_ports(1)[0])
        self._bootstrap, self._topic = bootstrap, topic

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Its command and environment. Raises PeerUnavailable."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        command, environment = self._command()
        self._running = Process(self.name)
        self.ready_after_s = self._running.start(command, self._is_ready, environment)
        return self

    def _is_ready(self) -> bool:
        if call(self.address, "GET", "/schemas/types")[0] != 200:
            return False
        return call(self.address, "PUT", "/config", {"compatibility": "BACKWARD"})[0] == 200


class OurRegistry(RegistryProcess):
    """`barnabas registry start`."""

    name = OURS

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        command = [sys.executable, "-m", "barnabas.cli", "registry", "start", "--bootstrap-server", self._bootstrap]
        command += ["--listener", "http://{}:{}".format(*self.address)]
        command += ["-X", f"kafkastore.topic={self._topic}", "-X", f"schema.registry.group.id={self._topic}"]
        return command, {"PYTHONPATH": str(SOURCE)}


class Bare(RegistryProcess):
    """A server without a registry: it shows the maximum rate of the load itself."""

    name = "no registry"

    def __init__(self) -> None:
        super().__init__("", "")

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        path = os.pathsep.join((str(SOURCE.parent), str(SOURCE)))
        return [sys.executable, "-m", "bench.registry.bare", str(self.address[1])], {"PYTHONPATH": path}


class Karapace(RegistryProcess):
    """Karapace with its defaults, without the REST proxy."""

    name = KARAPACE

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        settings = {
            "KARAPACE_REGISTRY": "true", "BOOTSTRAP_URI": self._bootstrap, "HOST": HOST, "PORT": str(self.address[1]),
            "ADVERTISED_HOSTNAME": HOST, "TOPIC_NAME": self._topic, "GROUP_ID": self._topic, "LOG_LEVEL": "WARNING",
        }  # fmt: skip
        return [str(karapace_python()), "-m", "karapace"], {f"KARAPACE_{key}": value for key, value in settings.items()}


def karapace_python() -> Path:
    """The interpreter of the environment with Karapace; creates the environment if it is missing. Raises PeerUnavailable."""
    wanted = REQUIREMENTS.read_text().strip()
    folder = ENVIRONMENTS / wanted.replace("==", "-")
    if folder.is_dir():
        return folder / "bin" / "python"
    uv = str(Path(sys.executable).parent / "uv")
    base = _recent_python()
    ENVIRONMENTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ENVIRONMENTS) as scratch:
        made = Path(scratch) / "made"
        try:
            _quietly([uv, "venv", "-q", "--relocatable", "--python", base, str(made)])
            _quietly([uv, "pip", "install", "-q", "--python", str(made / "bin" / "python"), "-r", str(REQUIREMENTS)])
        except subprocess.CalledProcessError as error:
            raise PeerUnavailable(f"{wanted} cannot be installed: {_words(error.stderr)}") from None
        shutil.move(made, folder)
    return folder / "bin" / "python"


def _words(text: str) -> str:
    """The reason why uv fails, in one line without its symbols."""
    words = " ".join(re.sub(r"[^\x20-\x7e]+", " ", text).split())
    reason = re.search(r"Because (.+?)(?: and you require|$)", words)
    return (reason[1] if reason else words).strip(" .:")[:300]


def _quietly(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _recent_python() -> str:
    """An interpreter that is recent enough for Karapace. Raises PeerUnavailable."""
    least = "{}.{}".format(*LEAST_PYTHON)
    uv = str(Path(sys.executable).parent / "uv")
    found = subprocess.run(
        [uv, "python", "find", "--no-python-downloads", f">={least}"], capture_output=True, text=True, check=False
    )
    candidates = [found.stdout.strip()] if found.returncode == 0 else []
    candidates += sorted(map(str, Path.home().glob(".pyenv/versions/*/bin/python")))
    for each in candidates:
        code = f"import sys; sys.exit(sys.version_info < {LEAST_PYTHON})"
        if subprocess.run([each, "-c", code], check=False, capture_output=True).returncode == 0:
            return each
    raise PeerUnavailable(f"no Python {least} or later is installed, which Karapace needs")


MAKERS: Mapping[str, Callable[[str, str], RegistryProcess]] = {OURS: OurRegistry, KARAPACE: Karapace}


class Together:
    """`barnabas start`, with the registry beside the broker or alone.

    Fields:
        broker_after_s: the seconds from the start of the process to the broker's line.
        services_after_s: the seconds from that line to the registry's line; 0 without services.
    """

    def __init__(self, *, services: bool) -> None:
        self._services = services
        self.broker_after_s = self.services_after_s = 0.0
        self._folder = ""
        self._process: Child[str] | None = None

    @property
    def broker(self) -> int:
        """The id of the broker's process."""
        assert self._process is not None
        return self._process.pid

    @property
    def others(self) -> list[int]:
        """The ids of the processes that the broker has started."""
        return family(self.broker)[1:]

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp(prefix="bench-together-")
        command = [sys.executable, "-m", "barnabas.cli", "start", "--data-dir", f"{self._folder}/data"]
        command += ["--listeners", f"PLAINTEXT://{HOST}:{free_ports(1)[0]}"]
        command += ["--registry-listener", f"http://{HOST}:0"] if self._services else ["--no-services"]
        began = time.perf_counter()
        self._process = Child(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_environment())
        try:
            self._await("barnabas broker")
            self.broker_after_s = time.perf_counter() - began
            if self._services:
                self._await("barnabas schema registry")
                self.services_after_s = time.perf_counter() - began - self.broker_after_s
        except BaseException:
            self.__exit__()
            raise
        return self

    def _await(self, words: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(words):
                return
        raise RuntimeError(f"barnabas start ended with {self._process.wait()}")

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.end()
            if self._process.stdout is not None:
                self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}
