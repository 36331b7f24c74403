"""A broker for tests: a child process with a port and a data folder of its own.

Owns the child process, its temporary folder and its port. The child is the real server on real sockets, so a client that works
here works with any other barnabas.

Rules
  1. The first start takes a free port; every later start uses the same port, so that clients find the broker again.
  2. After `close()` no process and no file is left. A data folder of the caller stays.
  3. When the process that created the Broker ends for any reason, the standard input of the child ends. The child then stops
     and removes the temporary folder itself.

Ugly: between `kill()` and `start()` another process could take the port. The kernel assigns ephemeral ports from a wide range,
so this is unlikely; the start then fails with a clear error.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import barnabas
from barnabas.config.folders import why_not
from barnabas.errors import BarnabasError, ConfigError
from barnabas.testing.broker_process import TASK_VARIABLE
from barnabas.testing.users import settings_for, store_users

if TYPE_CHECKING:
    from barnabas.testing.certificates import Certificates
    from barnabas.testing.services import ServicesProcess

READY_TIMEOUT_S = 60.0  # a normal start takes 1% of this; a loaded machine is slow
STOP_TIMEOUT_S = 60.0  # a clean stop writes checkpoints; a longer stop counts as a hang
LOG_TAIL_LINES = 20  # last lines of the broker's log in the message of BrokerFailed
ADDRESS = re.compile(r"(?<![=\w])([A-Za-z_][A-Za-z0-9_]*)://(\[[0-9A-Fa-f:]+\]|[^\s\[\]:/,;]+):(\d+)")
REGISTRY_URL = "confluent.schema.registry.url"
LISTENERS, TLS_LISTENERS = "PLAINTEXT://127.0.0.1:0", "SSL://127.0.0.1:0"

# Test defaults that differ from Kafka's: groups start without a delay, and internal topics are small. The caller's `config`
# overrides them.
TEST_DEFAULTS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}


class BrokerFailed(BarnabasError):
    """The broker did not start or did not stop; `log` is the end of its standard error."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(reason, log)
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        return f"{self.reason}\n{self.log}" if self.log else self.reason


class Broker:
    """A real broker on 127.0.0.1 that lives as long as the `with` block.

    Args:
        config: broker settings by Kafka's names, for example `{"auto.create.topics.enable": "false"}`.
        tls: listen with TLS, with a certificate of its own authority; see `certificates`. Clients may present certificates.
        data_dir: the folder of the data, instead of a temporary one; `close` does not remove it.
        log_dirs: number of log directories, as on several disks; the others are beside the first one.
        log_level: level of the broker's log (see `log`): debug, info, warning or error.
        ready_timeout_s: seconds until a start that is not ready counts as failed.
        users: passwords by user name; clients must then log in, see `login`.

    Raises:
        ConfigError: data_dir is a folder that `log.dirs` cannot name.
        BrokerFailed: from `start()` and `with`, if the broker does not start; its text has the end of the broker's log.
    """

    def __init__(
        self,
        config: Mapping[str, str | int | bool] | None = None,
        *,
        tls: bool = False,
        data_dir: str | os.PathLike[str] | None = None,
        log_dirs: int = 1,
        log_level: str = "info",
        ready_timeout_s: float = READY_TIMEOUT_S,
        users: Mapping[str, str] | None = None,
    ) -> None:
        self._users = dict(users or {})
        asked = settings_for(self._users, tls=tls) if self._users else {}
        self._config = {**asked, **{key: _text(value) for key, value in (config or {}).items()}}
        self._has_tls = tls
        self._certificates: Certificates | None = None
        self._given_data_dir = Path(data_dir) if data_dir is not None else None
        if data_dir is not None and (reason := why_not(os.fspath(data_dir))) is not None:
            raise ConfigError("log.dirs", os.fspath(data_dir), reason)
        self._log_dirs = log_dirs
        self._log_level = log_level
        self._ready_timeout_s = ready_timeout_s
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._listeners: dict[str, str] = {}
        self._registry: ServicesProcess | None = None
        self._registry_port = 0
        self._release_registry_port: Callable[[], object] = lambda: None

    @property
    def bootstrap_servers(self) -> str:
        """`host:port` of the first listener, for `bootstrap.servers` of any client; keeps its value while the broker is down."""
        if not self._listeners:
            raise RuntimeError("the broker was not started yet")
        return next(iter(self._listeners.values()))

    @property
    def listeners(self) -> dict[str, str]:
        """`host:port` by the name of the listener."""
        return dict(self._listeners)

    def login(self, user: str | None = None, mechanism: str = "PLAIN") -> dict[str, str]:
        """Settings with which a librdkafka client logs in as one of the `users`, by default the first.

        Args:
            mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
        """
        user = next(iter(self._users)) if user is None else user
        return {
            "security.protocol": "SASL_SSL" if self._has_tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": self._users[user],
        }

    @property
    def schema_registry_url(self) -> str:
        """The URL of a schema registry beside the broker, for `schema.registry.url` of any client; started on first use.

        Callers do not log in. Needs `pip install 'barnabas[registry]'`.

        Raises:
            ServicesFailed: the registry does not start.
        """
        if self._registry is None:
            from barnabas.testing.services import ServicesProcess  # imported here, because few tests need it

            properties = {"bootstrap.servers": self.bootstrap_servers}
            if self._has_tls:
                properties |= {"security.protocol": "SSL", **self.certificates.client_settings()}
            if self._users:
                properties |= self.login()
            self._release_registry_port()
            log = self._working_folder() / "services.log"
            self._registry = ServicesProcess("registry", properties, log, f"http://127.0.0.1:{self._registry_port}")
        return self._registry.url

    @property
    def port(self) -> int:
        """The port in `bootstrap_servers`."""
        return int(self.bootstrap_servers.rpartition(":")[2])

    @property
    def data_dir(self) -> Path:
        """The folder with the topics; it stays the same over restarts."""
        if self._given_data_dir is not None:
            return self._given_data_dir
        return self._working_folder() / "data"

    @property
    def data_dirs(self) -> list[Path]:
        """All folders of `log.dirs`; the first of them is `data_dir`."""
        first = self.data_dir
        return [first, *(first.with_name(f"{first.name}-{number}") for number in range(2, self._log_dirs + 1))]

    @property
    def certificates(self) -> Certificates:
        """The authority of a broker with TLS; it also signs certificates of clients."""
        if self._certificates is None:
            from barnabas.testing.certificates import Certificates  # imports cryptography, which few tests need

            self._certificates = Certificates(self._working_folder() / "certificates")
        return self._certificates

    @property
    def pid(self) -> int | None:
        """The broker's process id; None while it is down."""
        return self._process.pid if self._process is not None else None

    @property
    def log(self) -> str:
        """The broker's standard error since the Broker was created."""
        path = self._log_path()
        return path.read_text(errors="replace") if path is not None and path.exists() else ""

    def start(self) -> Self:
        """Start and wait until the broker accepts connections; does nothing if it is running."""
        if self.is_running():
            return self
        self._forget_process()
        for folder in self.data_dirs:
            folder.mkdir(parents=True, exist_ok=True)
        if REGISTRY_URL not in self._config:
            self._hold_registry_port()
        if self._users:
            store_users(self.data_dir, self._users)
        self._process = self._spawn()
        try:
            self._listeners = self._wait_ready(self._process)
        except BaseException:
            self.kill()
            if not self._listeners:  # the broker never ran: only its log is useful, and the error contains it
                self._remove_folder()
            raise
        return self

    def is_running(self) -> bool:
        """Whether the broker's process exists; it may be paused."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop cleanly (SIGTERM) and wait for the end; the data stays for the next `start()`.

        Raises:
            BrokerFailed: the broker did not end in time and was killed, or its exit code is not 0.
        """
        if self._process is None:
            return
        self._process.terminate()
        try:
            code = self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"the broker did not stop within {STOP_TIMEOUT_S:g} s and was killed", self._log_tail()) from None
        self._forget_process()
        if code != 0:
            raise BrokerFailed(f"the broker ended with exit code {code}", self._log_tail())

    def kill(self) -> None:
        """End the broker with SIGKILL, like a crash; the data on disk stays unchanged."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget_process()

    def restart(self) -> None:
        """A clean stop and a start on the same port and data."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill the broker and remove its temporary folder; may be called again.

        This kills a broker on a temporary folder, because the folder is removed anyway. It stops a broker on the caller's
        folder cleanly.
        """
        registry, self._registry = self._registry, None
        self._release_registry_port()
        try:
            if registry is not None:
                registry.close()
            if self._given_data_dir is not None and self.is_running():
                self.stop()
        finally:
            self.kill()
            self._remove_folder()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f"{self.bootstrap_servers} pid={self.pid}" if self.is_running() else "down"
        return f"<Broker {state}>"

    def _hold_registry_port(self) -> None:
        """Bind a port and name it in the broker's settings, so that no other process takes it before the registry."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        self._registry_port = held.getsockname()[1]
        self._config[REGISTRY_URL] = f"http://127.0.0.1:{self._registry_port}"
        self._release_registry_port = weakref.finalize(self, os.close, held.detach())

    def _working_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="barnabas-"))
        return self._folder

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = self._certificates = None

    def _log_path(self) -> Path | None:
        return self._folder / "broker.log" if self._folder is not None else None

    def _log_tail(self) -> str:
        return "\n".join(self.log.splitlines()[-LOG_TAIL_LINES:])

    def _properties(self) -> dict[str, str]:
        """The caller's settings, with the addresses of the first start."""
        configured = str(self._config.get("listeners", TLS_LISTENERS if self._has_tls else LISTENERS))
        listeners = ",".join(self._with_its_port(each.strip()) for each in configured.split(","))
        log_dirs = ",".join(map(str, self.data_dirs))
        tls = self.certificates.broker_settings if self._has_tls else {}
        return {**TEST_DEFAULTS, "log.dirs": log_dirs, **tls, **self._config, "listeners": listeners}

    def _with_its_port(self, listener: str) -> str:
        """A listener of the configuration with the port of the first start; an advertised listener without a port gets none."""
        name, _, address = listener.partition("://")
        host, _, port = address.rpartition(":")
        got = self._listeners.get(name)
        if port != "0" or got is None or "advertised.listeners" in self._config:
            return listener
        return f"{name}://{host}:{got.rpartition(':')[2]}"

    def _spawn(self) -> subprocess.Popen[bytes]:
        folder = self._working_folder()
        task = {"properties": self._properties(), "log_level": self._log_level, "remove_when_orphaned": str(folder)}
        # The child process must import the same barnabas, even if it is only in this process's sys.path.
        source = str(Path(barnabas.__file__).resolve().parent.parent)
        path = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH")) if part)
        with (folder / "broker.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "barnabas.testing.broker_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path, TASK_VARIABLE: json.dumps(task)},
                start_new_session=True,  # Ctrl-C in the terminal must reach only the tests, which end the broker themselves
            )

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> dict[str, str]:
        """The addresses in the line that the broker prints when it accepts connections."""
        assert process.stdout is not None
        deadline = time.monotonic() + self._ready_timeout_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise BrokerFailed(f"the broker was not ready within {self._ready_timeout_s:g} s", self._log_tail())
                piece = os.read(process.stdout.fileno(), 4096)
                if not piece:
                    raise BrokerFailed(f"the broker ended with exit code {process.wait()} before it was ready", self._log_tail())
                line += piece
        addresses = {name: f"{host}:{port}" for name, host, port in ADDRESS.findall(line.decode())}
        if not addresses:
            raise BrokerFailed(f"the broker's first line names no address: {line.decode().rstrip()}", self._log_tail())
        return addresses

    def _forget_process(self) -> None:
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
