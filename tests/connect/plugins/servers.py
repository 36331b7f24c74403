"""Servers of databases for tests: Debian's PostgreSQL and MariaDB, on loopback, in temporary folders."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from tests.waiting import wait_until

STOP_S = 30


def binaries_of_postgres() -> Path | None:
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda each: int(each.parts[-3]))
    return found[-1].parent if found else None


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Server:
    """A server process in a folder of its own. It runs as another user than root, because databases demand it."""

    user: str

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="barnabas-database-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            own = pwd.getpwnam(self.user)
            os.chown(self.folder, own.pw_uid, own.pw_gid)

    def run(self, *command: str) -> None:
        """Run a command to its end. Its output goes into an error."""
        done = subprocess.run(command, **self._as_user(), cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def spawn(self, command: Sequence[str]) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )

    def _as_user(self) -> dict[str, Any]:
        """Temporary files are its own, because a MariaDB that starts removes those of others."""
        options: dict[str, Any] = {"env": {**os.environ, "TMPDIR": str(self.folder)}}
        if os.geteuid() == 0:
            options |= {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}
        return options

    def wait_ready(self, is_ready: Callable[[], bool]) -> None:
        def ready() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "log").read_text()
            return is_ready()

        wait_until(ready, "the database does not answer")

    def end(self, how: signal.Signals) -> None:
        """Send a signal, and wait for the end."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(STOP_S)
            self.process = None

    def remove(self) -> None:
        shutil.rmtree(self.folder)


class PostgresServer(Server):
    """A PostgreSQL server with logical decoding, that trusts its users."""

    user = admin = "postgres"

    def __init__(self) -> None:
        super().__init__()
        binaries = binaries_of_postgres()
        assert binaries is not None
        self._binaries = binaries
        self.data = self.folder / "data"
        self.run(
            str(binaries / "initdb"), "-D", str(self.data), "-U", "postgres", "--no-sync", "-A", "trust", "-E", "UTF8",
            "--locale=C.UTF-8",
        )  # fmt: skip
        self.start()

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def start(self, **more: str) -> None:
        """Start it, with further settings."""
        settings = {
            "port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "wal_level": "logical",
            "max_wal_senders": 20, "max_replication_slots": 20, "wal_sender_timeout": "10s", "shared_buffers": "32MB",
            "deadlock_timeout": "20ms", **more,
        }  # fmt: skip
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.spawn([str(self._binaries / "postgres"), "-D", str(self.data), *options])
        self.wait_ready(self._answers)

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection that commits each statement."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True, client_encoding="UTF8"
        )  # fmt: skip

    def ask_for_password(self, user: str) -> None:
        """Let a user in with a password alone."""
        path = self.data / "pg_hba.conf"
        path.write_text(f"host all {user} 127.0.0.1/32 scram-sha-256\n{path.read_text()}")
        self.query("SELECT pg_reload_conf()")

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement; its rows, if it has some."""
        with self.connect() as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def create_user(self, user: str, password: str) -> None:
        """Create a user with all rights, who needs the password."""
        self.query(f"CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{password}'")
        self.ask_for_password(user)

    def change_password(self, user: str, password: str) -> None:
        """Connections that are open stay."""
        self.query(f"ALTER ROLE {user} PASSWORD '{password}'")

    def end_connections(self, user: str) -> None:
        """End all connections of a user."""
        self.query(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{user}'")

    def kill(self) -> None:
        """Crash the server, as a power cut of the machine would but for the disk."""
        self.end(signal.SIGQUIT)

    def close(self) -> None:
        self.end(signal.SIGINT)
        self.remove()


class MariadbServer(Server):
    """A MariaDB server with a binary log of rows, that trusts its users."""

    user, admin = "mysql", "root"

    def __init__(self) -> None:
        super().__init__()
        self.run(
            "mariadb-install-db", "--no-defaults", f"--datadir={self.folder / 'data'}", "--auth-root-authentication-method=normal",
            "--skip-test-db",
        )  # fmt: skip
        self.start()
        self.query("CREATE DATABASE shop")

    @property
    def url(self) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/shop"

    def start(self) -> None:
        self.spawn(
            [
                "/usr/sbin/mariadbd", "--no-defaults", f"--datadir={self.folder / 'data'}", f"--port={self.port}",
                "--bind-address=127.0.0.1", f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}",
                "--server-id=1", f"--log-bin={self.folder / 'data' / 'log'}", "--binlog-format=ROW", "--binlog-row-image=FULL",
                "--binlog-row-metadata=FULL", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=32M",
                "--skip-name-resolve",
            ]
        )  # fmt: skip
        self.wait_ready(self._answers)

    def _answers(self) -> bool:
        try:
            self.connect(None).close()
        except pymysql.err.OperationalError:
            return False
        return True

    def connect(self, database: str | None = "shop") -> Any:
        """A connection that commits each statement."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", database=database, autocommit=True, charset="utf8mb4"
        )  # fmt: skip

    def query(self, statement: str, database: str | None = None) -> Any:
        """Run a statement; its rows, if it has some."""
        connection = self.connect(database)
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            connection.close()

    def create_user(self, user: str, password: str) -> None:
        """Create a user with all rights, who needs the password."""
        self.query(f"CREATE USER {user} IDENTIFIED BY '{password}'")
        self.query(f"GRANT ALL ON *.* TO {user}")

    def change_password(self, user: str, password: str) -> None:
        """Connections that are open stay."""
        self.query(f"ALTER USER {user} IDENTIFIED BY '{password}'")

    def end_connections(self, user: str) -> None:
        """End all connections of a user."""
        self.query(f"KILL USER {user}")

    def kill(self) -> None:
        """Crash the server."""
        self.end(signal.SIGKILL)

    def close(self) -> None:
        self.end(signal.SIGTERM)
        self.remove()
