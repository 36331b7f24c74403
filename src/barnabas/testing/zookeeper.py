"""ZooKeeper servers as child processes, from the jars of Debian's package `zookeeper`.

Owns the processes it starts and their folder.

Rules
  1. Servers listen on loopback only, on ports that were free, with their files in a temporary folder (or the one given).
  2. They are stopped by their process id; after `close` no process is left, and no folder that this module created.
  3. When the process that started them dies for any reason, a guard (`children.Guard`) stops them and removes the folder.
  4. A server gets a descriptor of its folder instead of a path. So a folder may have any name: zoo.cfg is decoded as ISO-8859-1
     with escapes and loses spaces at an end, and Java knows only names that the locale's encoding has.

Ugly: ZooKeeper cannot report a port that the system chose, so free ports are chosen first. If another process takes one of them
before, the server ends at once, and all servers start again on other ports.

    with ZooKeeper() as zookeeper:
        store = ZooKeeperStore(zookeeper.address)
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType

from barnabas.testing.children import Guard

JAR = Path("/usr/share/java/zookeeper.jar")  # the manifest of this jar names the other jars
LOGGER = Path("/usr/share/java/slf4j-simple.jar")  # logs the reason if a server does not start; it is in the same package
CODEC = Path("/usr/share/java/netty-codec.jar")  # TLS needs this jar, but the manifest does not name it
START_TIMEOUT_S = 60.0  # about 1 s on an idle machine
START_ATTEMPTS = 3
ASK_AGAIN_S = 0.02
TICK_MS = 100  # the shortest session timeout is two ticks
MIN_SYNC_TICKS, SYNC_MS = 4, 2_000  # servers of an ensemble wait for each other for the longer of these two times
JVM = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true")
PROPERTIES = {
    "zookeeper.admin.enableServer": "false",
    "org.slf4j.simpleLogger.defaultLogLevel": "warn",
    "zookeeper.4lw.commands.whitelist": "srvr",
    "znode.container.checkIntervalMs": "1000",
}
# the only connection factory with TLS
SECURE = {"zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory"}
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeperUnavailable(RuntimeError):
    """ZooKeeper cannot start on this machine; the text names the missing part."""


def java() -> str:
    """The path of Java; raises ZooKeeperUnavailable with the missing part."""
    path = shutil.which("java")
    if path is None:
        raise ZooKeeperUnavailable("ZooKeeper needs `java`, which is not on the path (Debian package: openjdk-17-jre-headless)")
    if not JAR.is_file():
        raise ZooKeeperUnavailable(f"{JAR} is missing: install ZooKeeper (Debian: apt-get install zookeeper)")
    return path


class ZooKeeper:
    """One server, or an ensemble of several.

    Args:
        servers: their number.
        folder: the folder of their files; `close` keeps it. None: a temporary folder, which `close` removes.
        properties: system properties of the servers' JVMs, in addition to the defaults.
        secure: the servers accept TLS only, with the stores that `properties` name; the readiness check uses this context.
        longest_session_ms: the longest session timeout that a client may request; by default twenty ticks.
    """

    def __init__(
        self,
        servers: int = 1,
        folder: Path | None = None,
        tick_ms: int = TICK_MS,
        properties: Mapping[str, str] = MappingProxyType({}),
        secure: ssl.SSLContext | None = None,
        longest_session_ms: int | None = None,
    ) -> None:
        self._longest_session_ms = longest_session_ms
        self._properties = {**PROPERTIES, **(SECURE if secure else {}), **properties}
        self._secure = secure
        self._java = java()
        self._tick_ms = tick_ms
        self._sync_ticks = max(MIN_SYNC_TICKS, SYNC_MS // tick_ms)
        self._kept = folder is not None
        self.folder = folder.resolve() if folder is not None else Path(tempfile.mkdtemp(prefix="barnabas-zookeeper-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        self._here = f"/proc/self/fd/{self._descriptor}"
        self.ports: list[int] = []
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * servers
        self._guard = Guard(None if self._kept else self.folder)
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise

    @property
    def hosts(self) -> str:
        """The servers in the form of `zookeeper.connect`."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def address(self) -> str:
        """The address in the form of `--metadata`, without a root path."""
        return f"zookeeper://{self.hosts}"

    @property
    def pids(self) -> list[int]:
        """The process ids of the running servers."""
        return [process.pid for process in self._processes if process is not None]

    def _start_all(self) -> None:
        for attempt in range(START_ATTEMPTS):
            self._configure()
            try:
                for index in range(len(self._processes)):
                    self._launch(index)
                self.wait_ready()
                break
            except ZooKeeperUnavailable:
                for index in range(len(self._processes)):
                    self.kill(index)
                if attempt == START_ATTEMPTS - 1:
                    raise

    def _configure(self) -> None:
        count = len(self._processes)
        self.ports, peers, votes = (free_ports(count) for _ in range(3))
        port_key = "secureClientPort" if self._secure else "clientPort"
        lines = [
            f"tickTime={self._tick_ms}",
            "initLimit=100",
            f"syncLimit={self._sync_ticks}",
            f"{port_key}Address=127.0.0.1",
            "maxClientCnxns=0",
        ]
        if self._longest_session_ms is not None:
            lines.append(f"maxSessionTimeout={self._longest_session_ms}")
        if count > 1:
            lines += [f"server.{i + 1}=127.0.0.1:{peers[i]}:{votes[i]}" for i in range(count)]
        for index in range(count):
            data = self._data(index)
            data.mkdir(parents=True, exist_ok=True)
            (data / "myid").write_text(str(index + 1))
            own = [f"dataDir={self._here}/{data.name}", f"{port_key}={self.ports[index]}"]
            (self.folder / f"{index + 1}.cfg").write_text("\n".join([*lines, *own, ""]))

    def _data(self, index: int) -> Path:
        return self.folder / f"data-{index + 1}"

    def _launch(self, index: int) -> None:
        properties = [f"-D{name}={value}" for name, value in self._properties.items()]
        command = [self._java, *JVM, *properties, "-cp", f"{JAR}:{LOGGER}:{CODEC}", MAIN, f"{self._here}/{index + 1}.cfg"]
        with (self.folder / f"{index + 1}.log").open("ab") as log:
            process = self._processes[index] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[self._descriptor],
                start_new_session=True,  # Ctrl-C in a terminal must not end the server: brokers need it to stop cleanly
            )
        self._guard.watch(process.pid)

    def start(self, index: int = 0) -> None:
        """Start a killed server with its files."""
        self._launch(index)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until every running server serves clients; raises ZooKeeperUnavailable."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for index, process in enumerate(self._processes):
            while process is not None and not self._serves(index):
                if _ends_within(process, ASK_AGAIN_S) or time.monotonic() > deadline:
                    raise ZooKeeperUnavailable(f"ZooKeeper did not start: {self._last_words(index)}")

    def _serves(self, index: int) -> bool:
        return "Mode:" in self.ask(index, b"srvr")

    def ask(self, index: int, word: bytes) -> str:
        """The answer to a four-letter word; empty if there is none."""
        try:
            with self._connect(self.ports[index]) as connection:
                connection.sendall(word)
                return connection.makefile("rb").read().decode()
        except OSError:
            return ""

    def _connect(self, port: int) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", port), timeout=1)
        return plain if self._secure is None else self._secure.wrap_socket(plain, server_hostname="127.0.0.1")

    def leader(self) -> int | None:
        """The index of the server that leads the ensemble."""
        live = (index for index, process in enumerate(self._processes) if process is not None)
        return next((index for index in live if "Mode: leader" in self.ask(index, b"srvr")), None)

    def _last_words(self, index: int) -> str:
        lines = (self.folder / f"{index + 1}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-10:]) or "it said nothing"

    def kill(self, index: int = 0) -> None:
        """Kill a server, like a power cut."""
        process = self._processes[index]
        self._processes[index] = None
        if process is not None:
            process.kill()
            process.wait()
            self._guard.forget(process.pid)

    def pause(self, index: int = 0) -> None:
        """Stop a server's process: when this returns, it keeps its connections and answers nothing."""
        process = self._processes[index]
        if process is not None:
            process.send_signal(signal.SIGSTOP)
            os.waitid(
                os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT
            )  # all threads must have stopped; they stop one after the other

    def resume(self, index: int = 0) -> None:
        """Continue a paused server."""
        self._signal(index, signal.SIGCONT)

    def _signal(self, index: int, number: signal.Signals) -> None:
        process = self._processes[index]
        if process is not None:
            process.send_signal(number)

    def close(self) -> None:
        """End all servers, and remove their folder unless the caller gave it."""
        for index in range(len(self._processes)):
            self.kill(index)
        self._guard.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if not self._kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> ZooKeeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def free_ports(count: int) -> list[int]:
    """Ports of loopback that were free when this was called."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
