"""The broker: makes, connects, starts and stops all its parts.

A start goes from the bottom up: data folder, metadata, logs, groups, sockets. A stop goes from the top down. So no part is used before it
is ready. Only the event loop touches the state. Calls that may block run in `io_threads`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from enum import Flag, auto
from functools import partial
from pathlib import Path
from uuid import UUID

from barnabas.cluster.membership.member import Member
from barnabas.cluster.membership.standalone_controller import StandaloneController
from barnabas.cluster.metadata.declared import Kind
from barnabas.cluster.metadata.image import (
    COORDINATED_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    BrokerRegistration,
    MetadataImage,
)
from barnabas.cluster.store.interface import StoreUnavailable
from barnabas.config.broker import BrokerConfig
from barnabas.config.cordoning import absolute, cordoned_among
from barnabas.config.listeners import Endpoint
from barnabas.errors import ConfigError, LogDirFailed, StorageError
from barnabas.protocol.base_message import Message
from barnabas.protocol.request_headers import RequestHeader
from barnabas.server import api_table, dispatch, maintenance
from barnabas.server.apis.metadata import AllTopics
from barnabas.server.apply_instructions import apply_instructions
from barnabas.server.authentication.principals import PrincipalNaming
from barnabas.server.authentication.sasl_listeners import SaslListeners
from barnabas.server.authorization.access_control import AccessControl
from barnabas.server.authorization.audit import AuditLog, audit_of
from barnabas.server.cleaning.cleaner import LogCleaner
from barnabas.server.cluster import cluster_session
from barnabas.server.cluster.forwarding import Forwarder
from barnabas.server.cluster.liveness_prober import LivenessProber
from barnabas.server.cluster.liveness_responder import LivenessResponder
from barnabas.server.cluster.quorum import Quorum
from barnabas.server.connection import Connection
from barnabas.server.coordinators import Coordinators
from barnabas.server.declarations import DeclarationFollowers
from barnabas.server.descriptors import most_connections, most_held_files, most_open_segments
from barnabas.server.environment import Environment
from barnabas.server.fetching.read_ahead import Readers
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.http import HttpEndpoint
from barnabas.server.listeners import ConnectionLimits, Listeners, advertise, is_everywhere
from barnabas.server.logs.delayed_removal import DelayedRemoval
from barnabas.server.logs.group_commit import FLUSH_THREADS, GroupCommit
from barnabas.server.logs.log_dir_moves import LogDirMoves
from barnabas.server.logs.log_start_offsets import LogStartOffsets
from barnabas.server.logs.open_close import close_logs, open_logs
from barnabas.server.logs.replica_manager import ReplicaManager
from barnabas.server.logs.storage_faults import StorageFaults
from barnabas.server.mirroring.mirrors import LOOK_MS, Mirrors
from barnabas.server.old_requests import OldRequests
from barnabas.server.operator_pages import pages_of
from barnabas.server.periodic_jobs import PeriodicJobs
from barnabas.server.pinned_regions import PinnedFiles
from barnabas.server.plugins import Plugins
from barnabas.server.producing.request_template import TemplateBudget
from barnabas.server.quotas.client_quotas import ClientQuotas
from barnabas.server.quotas.connection_rates import ConnectionRates
from barnabas.server.quotas.group_members import GroupMembers
from barnabas.server.receiver import Receiver
from barnabas.server.replication.fetcher_manager import FetcherManager
from barnabas.server.replication.isr_changes import IsrChanges
from barnabas.server.replication.throttles import Throttles
from barnabas.server.requests import RequestContext
from barnabas.server.schema_validation.validation import SchemaValidation
from barnabas.server.services import Services
from barnabas.server.tls.listeners import BrokerTls
from barnabas.server.transactions.add_partitions_to_txn import AddPartitionsToTxn
from barnabas.server.write_waiters import WriteWaiters
from barnabas.storage.directory import first_partition, read_cluster_id
from barnabas.storage.manager import LogManager
from barnabas.storage.open_files import OpenFiles

logger = logging.getLogger(__name__)
ELSEWHERE = (
    "is the first of log.dirs another folder, or has the broker joined a cluster? (`barnabas broker adopt` takes over a folder of Apache "
    "Kafka; to begin anew, move the partitions away)"
)


def encode_cluster_id(random_id: UUID) -> str:
    """128 random bits as text, in Kafka's form of 22 characters."""
    return urlsafe_b64encode(random_id.bytes).decode().rstrip("=")


async def _close(part: AuditLog | HttpEndpoint | Forwarder | LivenessProber | Quorum | None) -> None:
    """Close a part that not every broker has."""
    if part is not None:
        await part.close()


class Opened(Flag):
    """The parts that a start has opened. A stop closes these parts and no others."""

    CONTROLLER = auto()
    LOGS = auto()
    COORDINATORS = auto()


class Broker:
    """One broker in one event loop.

    Args:
        config: the settings from the user.
        loop: runs all parts of the broker.
        environment: the machine that the broker runs on.
    """

    def __init__(self, config: BrokerConfig, loop: asyncio.AbstractEventLoop, environment: Environment | None = None) -> None:
        around = self.environment = environment or Environment()
        self.loop, self.clock, self.files, self.new_id = loop, around.clock, around.files, around.new_id
        self.config = config
        services = self.services = Services(
            config, loop, clock=self.clock, files=self.files, make_executor=around.make_executor, new_id=self.new_id
        )
        self.metrics, self.partitions = services.metrics, services.partitions
        self.io_threads, self.reading_threads = services.io_threads, services.reading_threads
        self.logs: LogManager
        self.controller: StandaloneController | Member
        self.coordinators: Coordinators
        self.member: Member | None = None  # set if this broker is part of a cluster
        self.failure: asyncio.Future[LogDirFailed] = loop.create_future()  # the fault for which the broker must stop
        self.endpoints: list[Endpoint] = []
        self.connections: dict[Connection, None] = {}
        self.internal_topics = COORDINATED_TOPICS  # clients cannot write to them or delete their records
        self.served_apis: frozenset[int] = api_table.SERVED | (
            api_table.BETWEEN_BROKERS if config.zookeeper_connect else frozenset()
        )
        self._opened = Opened(0)
        self._registered = False
        self._limits = ConnectionLimits(config, most_connections())
        self._periodic_jobs = PeriodicJobs(loop)
        self._make_connection_parts()
        self._make_log_parts()
        self._dispatcher = dispatch.RequestDispatcher(self)
        self.dispatch = self._dispatcher.dispatch  # an attribute, not a method: saves one call for each request
        self._listeners = Listeners(services, self.tls, self.receiver, self)

    def _make_connection_parts(self) -> None:
        """Make the parts that serve connections and know their principals."""
        config, services, around = self.config, self.services, self.environment
        self.pinned_files = PinnedFiles(self.files, most_held_files())
        self.write_waiters = WriteWaiters(self.loop)
        self.template_budget = TemplateBudget()
        self.receiver = Receiver(config.socket_request_max_bytes, config.queued_max_request_bytes)
        self.fetch_sessions = FetchSessionCache(
            config.max_incremental_fetch_session_cache_slots,
            around.new_session_id,
            config.min_incremental_fetch_session_eviction_ms,
        )
        self.readers = Readers()
        self.all_topics = AllTopics()
        self.old_requests = OldRequests()
        self.http: HttpEndpoint | None = None
        self.plugins = Plugins(config, lambda: around.make_executor(1, "barnabas-policies"))
        protocols = {endpoint.listener: endpoint.protocol for endpoint in config.listener_endpoints}
        self.naming = PrincipalNaming(self.plugins.principal_builders, protocols)
        self.tls = services.tls = BrokerTls(self.metrics, self.naming)
        self.declarations = DeclarationFollowers(lambda: services.metadata)
        self.authorizer = AccessControl.of(config)  # None: every request is allowed
        self.audit: AuditLog | None = None
        self.sasl_listeners = SaslListeners(services, self.naming)
        self.client_quotas: ClientQuotas | None = None  # None while no quotas are set
        self.quotas = ClientQuotas(
            services,
            connections=self.connections.keys(),
            declarations=self.declarations,
            members=GroupMembers(services, lambda: self.quotas.table.groups, lambda: self.coordinators),
            callback=self.plugins.quota_callback,
            use=self._use_quotas,
        )
        self.connection_rates = ConnectionRates(services, self.quotas)

    def _make_log_parts(self) -> None:
        """Make the parts that store logs, and the parts that keep them equal to the logs of other brokers."""
        services, around = self.services, self.environment
        self.faults = services.faults = StorageFaults(services, self._stop_for, self._unload_coordinator)
        self.group_commit = GroupCommit(
            self.loop, self.metrics, self.faults.report, around.make_executor(FLUSH_THREADS, "barnabas-flush")
        )
        self.log_start_offsets = LogStartOffsets(services)
        self.removal = DelayedRemoval(services)
        self.cleaner = LogCleaner(services, around.make_cleaner(self.loop, self.io_threads))
        self.log_dir_moves = self.faults.log_dir_moves = LogDirMoves(services, self.cleaner, self.removal)
        self.isr = IsrChanges(services)
        self.throttles = Throttles(services)
        self.fetcher_manager = FetcherManager(services, self.throttles, self.log_start_offsets)
        self.schema_validation = SchemaValidation(services)
        self.mirrors = Mirrors(services, self.schema_validation.fit, lambda: self.coordinators, self.log_start_offsets)
        self.replica_manager = ReplicaManager(
            services,
            cleaner=self.cleaner,
            log_dir_moves=self.log_dir_moves,
            log_start_offsets=self.log_start_offsets,
            group_commit=self.group_commit,
            isr=self.isr,
            fetchers=self.fetcher_manager,
            fit=self.mirrors.fit,
            load_late=lambda wanted: self.coordinators.load_late(wanted),
        )
        # Only in a cluster
        self.forwarder: Forwarder | None = None
        self.quorum: Quorum | None = None
        self.liveness_prober: LivenessProber | None = None  # watches the other brokers
        self.liveness_responder: LivenessResponder | None = None  # answers the probes of the other brokers

    def _use_quotas(self, quotas: ClientQuotas | None) -> None:
        self.client_quotas = quotas

    @property
    def ready(self) -> bool:
        return self.services.is_ready

    @property
    def metadata(self) -> MetadataImage:
        return self.controller.image

    # --- start and stop

    async def start(self, metrics_address: tuple[str, int] | None = None) -> None:
        """Open the data folder and accept connections.

        Raises:
            StorageError, StoreUnavailable: the data folder is unusable, or another broker uses it.
            OSError: an address is not available.
        """
        started_ms = self.clock.monotonic_ms()
        await self._open_metadata()
        self._follow_acls()
        member = self.member
        # settings that were changed at run time override those that the broker starts with
        self._take_config(self.controller.config)
        self.sasl_listeners.update_config(self.config)
        self._open_tls()
        self.quotas.start()
        await open_logs(self.services)
        clean = all(directory.was_clean for directory in self.logs.directories)
        if metrics_address is not None:
            self.http = HttpEndpoint(pages_of(self))
            await self.http.start(*metrics_address)
        await self._bind()
        if isinstance(self.controller, StandaloneController):
            self._register_alone(self.controller, bump_leader_epochs=not clean)
        self.replica_manager.host_all()
        self.log_dir_moves.resume()
        # Data that a crash left only in memory must be on the disk before clients see it, and before groups are read.
        await self.group_commit.wait_idle()
        self.coordinators = Coordinators(self.services, self.pinned_files)
        self.groups = self.coordinators.groups
        self.transactions = self.coordinators.transactions
        self.add_partitions_to_txn = AddPartitionsToTxn(self.services, self.coordinators)
        self._opened |= Opened.COORDINATORS
        if member is None:
            await self.coordinators.start()
        await self.sasl_listeners.providers.start()
        maintenance.schedule(self.services, self, self._periodic_jobs)
        self._periodic_jobs.every(LOOK_MS, self.mirrors.look, "mirrors")
        self.cleaner.start()
        await self._listeners.serve()
        if member is not None:
            self.liveness_responder = self.environment.make_liveness_responder(self.loop)
            await cluster_session.join(self.services, member, self.endpoints, partial(apply_instructions, self))
            self.liveness_prober = LivenessProber(self.services, member)
            cluster_session.schedule(self.config, member, self._periodic_jobs)
            self._registered = True
            self.declarations.tell(Kind)  # the followers have not heard of changes from before the join
        self.services.is_ready = True
        took_ms = self.clock.monotonic_ms() - started_ms
        logger.info(
            "event=broker-started broker=%d partitions=%d took_ms=%.0f", self.config.broker_id, len(self.partitions), took_ms
        )

    def _open_tls(self) -> None:
        """Open TLS with the current settings. If they are unusable, open it with the settings of the start, so that clients can connect
        and change them.
        """
        try:
            self.tls.open(self.config)
        except ConfigError as error:
            if self.config.texts == self.controller.static.texts:
                raise
            logger.error("event=tls-settings-not-taken note='those of the start stand in' reason=%r", str(error))
            self.tls.open(self.controller.static)

    async def _open_metadata(self) -> None:
        """Lock the data folder and open the metadata: the broker's own store, or the store of the cluster."""
        config, files, new_id = self.config, self.files, self.new_id
        directories = [Path(d) for d in config.log_dirs]
        # a single broker has its cluster id in its first folder
        named_in = directories if config.zookeeper_connect else directories[:1]
        cluster_id = read_cluster_id(named_in, files) or encode_cluster_id(new_id())
        if config.zookeeper_connect:
            cluster_id = (await self._open_member(cluster_id)).image.cluster_id
        # Lock the folder before anything in it is opened: a second broker must not touch the first one's metadata.
        open_files = OpenFiles(most_open_segments(), self.loop.call_soon_threadsafe, self.pinned_files)
        self.pinned_files.on_more = open_files.check
        self.logs = self.services.logs = LogManager(
            directories,
            files=files,
            clock=self.clock,
            broker_id=config.broker_id,
            cluster_id=cluster_id,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            new_id=new_id,
            open_files=open_files,
            boot_id=None if self.member is None else self.environment.boot_id(),
            first_has_metadata=self.member is None,
        )
        self._opened |= Opened.LOGS
        if self.member is None:
            store = self.environment.open_store(directories[0])
            if not store.list("/") and (found := first_partition(directories, files)) is not None:
                store.close()
                raise StoreUnavailable(f"there is none in {directories[0]}, and {found} holds a partition: {ELSEWHERE}")
            thread = self.environment.make_executor(1, "barnabas-metadata")
            self._take_controller(StandaloneController(store, config, new_id=new_id, cluster_id=cluster_id, thread=thread))

    async def _open_member(self, cluster_id: str) -> Member:
        """Make this broker's membership in its cluster; the cluster gets the id `cluster_id` if it has none yet."""
        services = self.services
        member = await cluster_session.make_member(services, self.environment.open_cluster_store)
        self.member = services.member = member
        self._take_controller(member)
        self.quorum = Quorum(services)
        self.forwarder = Forwarder(services, member, self.quorum)
        await member.open(cluster_id, timeout_ms=self.config.initial_broker_registration_timeout_ms)
        return member

    def _take_controller(self, controller: StandaloneController | Member) -> None:
        """Use `controller` for topics and settings. It decides itself, or asks the broker that is the controller."""
        self.controller = self.services.controller = controller
        controller.policies = self.plugins.policies
        self._opened |= Opened.CONTROLLER
        controller.warn_of_minimum()

    def _follow_acls(self) -> None:
        if self.authorizer is not None:
            self.audit = audit_of(self.services, self.authorizer)
            self.declarations.follow(Kind.ACL, self.authorizer.take_acls)

    def _register_alone(self, controller: StandaloneController, *, bump_leader_epochs: bool) -> None:
        config = self.config
        registration = BrokerRegistration(
            config.broker_id,
            tuple(self.endpoints),
            config.broker_rack,
            log_dir_paths=absolute(config.log_dirs),
            cordoned=config.cordoned_log_dirs,
        )
        controller.start(registration, partial(apply_instructions, self), bump_leader_epochs=bump_leader_epochs)
        self._registered = True

    async def _bind(self) -> None:
        """Bind every address, so that the broker can tell clients the ports. It does not accept connections yet."""
        advertised = {endpoint.listener: endpoint for endpoint in self.config.advertised_endpoints}
        hostname = socket.getfqdn() if any(is_everywhere(e.host) for e in advertised.values()) else ""
        for endpoint in self.config.listener_endpoints:
            await self._listeners.open(endpoint)
            bound = self._listeners.bound[endpoint.listener]
            self.endpoints.append(advertise(advertised.get(endpoint.listener, endpoint), bound, hostname))

    async def stop(self) -> None:
        """Stop all parts that the start has opened, and mark the data folder as clean."""
        await _close(self.liveness_prober)
        await cluster_session.leave(self.services)
        self.services.is_ready = False
        self.services.is_stopping = True
        await self._listeners.close()
        for connection in list(self.connections):
            connection.close()
        if self.liveness_responder is not None:
            self.liveness_responder.close()
        await self._listeners.wait_closed()
        await self._dispatcher.close()
        self.write_waiters.close()
        await self.sasl_listeners.providers.close()
        await self._periodic_jobs.close()
        await self.mirrors.close()
        await self.fetcher_manager.close()
        await self.isr.close()
        await self.cleaner.close()
        await _close(self.audit)
        await _close(self.http)
        await self.quotas.members.close()
        if Opened.COORDINATORS in self._opened:
            await self.add_partitions_to_txn.close()
            await self.coordinators.close()
        await self.schema_validation.close()
        await _close(self.forwarder)
        await _close(self.quorum)
        if Opened.CONTROLLER in self._opened:
            await self.controller.close()
        for partition in self.partitions:
            partition.close()
        await self.replica_manager.close()
        await self.log_dir_moves.close()
        await self.group_commit.close()
        if Opened.LOGS in self._opened:
            await self.log_start_offsets.close()
            await self.loop.run_in_executor(self.io_threads, self.logs.give_up_room)
            if self._registered:
                await self.faults.guard(maintenance.high_watermarks_writer(self.services))
            # A failed start must not look like a clean stop: the next start has to begin new leader epochs.
            if self._registered:
                await close_logs(self.services)
            end = self.logs.close if self._registered else self.logs.abandon
            await self.loop.run_in_executor(self.io_threads, end)
            try:
                await self.removal.close()
            except StorageError as error:
                logger.warning("event=removed-segments-stay note='stay until the next start' error=%r", str(error))
        await self.loop.run_in_executor(None, self.plugins.close)
        await self.loop.run_in_executor(None, self.io_threads.shutdown)
        await self.loop.run_in_executor(None, self.reading_threads.shutdown)

    # --- Dispatcher

    async def serve(self, context: RequestContext, header: RequestHeader, frame: memoryview) -> Message:
        return await self._dispatcher.serve(context, header, frame)

    def connection_opened(self, connection: Connection) -> str | None:
        self.connections[connection] = None
        self.metrics.connections_opened += 1
        refused = self._limits.open(connection.peer_host, connection.listener, len(self.connections))
        if self.services.is_stopping:  # accepted just before the listeners closed
            refused = "the broker stops"
        if refused is None:
            refused = self.connection_rates.open(connection)
        self.metrics.connections_refused += refused is not None
        if refused is None:
            refused = self.naming.of_plaintext(connection)
        if refused is None:
            self.sasl_listeners.open(connection)
        return refused

    def connection_closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self._limits.close(connection.peer_host, connection.listener)
        self.quotas.close(connection)

    # --- for handlers

    def update_config(self, config: BrokerConfig) -> None:
        """Take over changed dynamic settings."""
        self._take_config(config)
        self.cleaner.update_config()
        self.sasl_listeners.update_config(config)
        self.connection_rates.update_config(config)
        self.tls.update(config)
        self.throttles.update_config()

    def _take_config(self, config: BrokerConfig) -> None:
        self.config = self.services.config = config
        try:
            self._limits.update_config(config)
        except ConfigError as error:
            logger.error("event=connection-limits-not-taken note='the old ones stay' reason=%r", str(error))
        self.logs.cordon(cordoned_among(config.cordoned_log_dirs, config.log_dirs))

    async def find_coordinators(
        self, context: RequestContext, names: Sequence[str], *, of_transactions: bool
    ) -> Sequence[tuple[int, str, int] | None]:
        """The id, host and port of the coordinators of groups or transactional ids, on the listener of the request."""
        return await self.coordinators.find(context, names, TRANSACTIONS_TOPIC if of_transactions else OFFSETS_TOPIC)

    def _unload_coordinator(self, topic: str, index: int) -> None:
        """Unload the coordinator of a partition whose disk failed; its clients then look for another coordinator."""
        if Opened.COORDINATORS in self._opened:
            self.coordinators.unload(topic, index)

    def _stop_for(self, error: LogDirFailed) -> None:
        if not self.failure.done():
            self.failure.set_result(error)
