"""The parts that all sessions of an engine use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import BoundedSemaphore

from barnabas import limits
from barnabas.client.config import ClientConfig
from barnabas.errors import ConfigError
from barnabas.sql.catalog.function_store import FunctionStore
from barnabas.sql.catalog.samples import Samples
from barnabas.sql.catalog.sequence_store import SequenceStore
from barnabas.sql.catalog.store import DefinitionStore
from barnabas.sql.duck.pool import Instances, QueryLimits
from barnabas.sql.interface import Caller
from barnabas.sql.live.tables import LiveTables
from barnabas.sql.running import Deadlines
from barnabas.sql.states import of_failure
from barnabas.sql.views.jobs import ViewJobs
from barnabas.sql.writing.locks import RowLocks


@dataclass(slots=True)
class Shared:
    """The parts of an engine that its sessions use.

    Args:
        config: of the engine's own clients.
        dialect: of sessions that do not choose.
        runs_python: whether users' functions in Python run here, and may be made here.
        key_index: the folder of the indexes of keys of topics; None: no index.
    """

    config: ClientConfig
    limits: QueryLimits
    dialect: str
    instances: Instances
    definitions: DefinitionStore
    sequences: SequenceStore
    functions: FunctionStore
    samples: Samples
    views: ViewJobs
    live: LiveTables
    locks: RowLocks = field(default_factory=RowLocks)
    deadlines: Deadlines = field(default_factory=Deadlines)
    key_index: Path | None = None
    runs_python: bool = True
    spark_places: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(limits.MAX_SQL_SPARK_SESSIONS))

    def config_of(self, caller: Caller) -> ClientConfig:
        """The settings of a caller's clients. Raises SqlError for a bad one."""
        if not caller.settings:
            return self.config
        servers = ",".join(f"{host}:{port}" for host, port in self.config.bootstrap_servers)
        try:
            own = ClientConfig.from_options({"bootstrap.servers": servers, **caller.settings})
        except ConfigError as error:
            raise of_failure(error) from error
        return replace(
            self.config,
            tls=own.tls or self.config.tls,
            credentials=own.credentials or self.config.credentials,
            client_id=own.client_id,
        )

    def close(self) -> None:
        """Release everything; no session is left."""
        self.deadlines.close()
        self.definitions.close()
        self.views.close()
        self.sequences.close()
        self.functions.close()
        self.instances.close()
        self.live.close()
