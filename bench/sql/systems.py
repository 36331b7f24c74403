"""`barnabas sql start` as a process of its own beside a broker."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Self

import psycopg
from tools.kafka import free_ports

from bench.peers.process import OwnProcess, Process
from bench.registry.systems import SOURCE

HOST = "127.0.0.1"
OURS = "barnabas"
CONNECT_TIMEOUT_S = 1.0


class SqlServer(OwnProcess):
    """The server; it counts as ready when both ports accept connections.

    Args:
        data_dir: None: a temporary folder of its own.
    """

    def __init__(self, bootstrap: str, data_dir: Path | None = None) -> None:
        super().__init__()
        http, postgres = free_ports(2)
        self.http, self.postgres = (HOST, http), (HOST, postgres)
        self._bootstrap, self._data_dir = bootstrap, data_dir

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "barnabas.cli", "sql", "start", "--bootstrap-server", self._bootstrap]
        command += ["--listener", "http://{}:{}".format(*self.http), "--postgres", "{}:{}".format(*self.postgres)]
        if self._data_dir is not None:
            command += ["--data-dir", str(self._data_dir)]
        self._running = Process("sql")
        self.ready_after_s = self._running.start(command, self._is_ready, {"PYTHONPATH": str(SOURCE)})
        return self

    def _is_ready(self) -> bool:
        for address in (self.http, self.postgres):
            socket.create_connection(address, CONNECT_TIMEOUT_S).close()
        return True

    def connect(self) -> psycopg.Connection:
        """A client. Every statement is a transaction of its own."""
        host, port = self.postgres
        return psycopg.connect(host=host, port=port, user="bench", dbname="barnabas", autocommit=True)
