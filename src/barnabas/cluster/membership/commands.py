"""The commands of the controller that handlers call: the core plans each command, and the owner of the store executes the plan.

`StandaloneController` is the owner on a standalone broker, `Member` on a broker of a cluster. `Member` executes commands only
while its broker is controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TypeVar
from uuid import UUID

from barnabas.cluster.controller.core import Controller
from barnabas.cluster.membership.policies import Policies
from barnabas.cluster.metadata.image import MetadataImage
from barnabas.cluster.planning.configs import MIN_IN_SYNC, ResourceChange
from barnabas.cluster.planning.deletion import DeleteOutcome, resolve_deletions
from barnabas.cluster.planning.instructions import Instruction
from barnabas.cluster.planning.partitions import InSyncRequest, MoveRequest, PartitionOutcome
from barnabas.cluster.planning.plan import Declaring, Plan
from barnabas.cluster.planning.topics import MorePartitions, NewTopic, TopicOutcome
from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import Layers
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)
R = TypeVar("R")
Q = TypeVar("Q")
Said = TypeVar("Said")
T = TypeVar("T", NewTopic, MorePartitions)
Command = Callable[[], tuple[R, Plan]]
Apply = Callable[[Sequence[Instruction]], Awaitable[None]]

MAX_ATTEMPTS = 5  # of a command that the store refuses, before the command fails
TOO_OFTEN = "the metadata changed too often meanwhile"  # the error after all attempts


class ChangesTooMuch(KafkaError):
    """A command is too large for one commit of the store; nothing was done."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.INVALID_REQUEST, "The request changes too much at once; ask for less at a time.")


class NotController(KafkaError):
    """This broker is not controller; nothing was done."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER)
        refusals = REFUSALS.get()
        if refusals is not None:
            refusals.append(self)


REFUSALS: ContextVar[list[NotController] | None] = ContextVar(
    "REFUSALS", default=None
)  # collects the refusals of one request, which is then forwarded to the controller


class Commands:
    """The interface for handlers; `broker.controller` implements it."""

    def __init__(self, core: Controller) -> None:
        self._core = core
        self.policies: Policies | None = None  # the users' policy classes
        self._producer_ids = range(0)
        self._producer_id_turn = asyncio.Lock()

    async def _run(self, command: Command[R]) -> R:
        """Execute a command to its end, after the commands that already wait; raises NotController."""
        raise NotImplementedError

    async def _plan_only(self, command: Command[R]) -> R:
        """The answer of a command without executing it; raises NotController."""
        return command()[0]

    @property
    def is_controller(self) -> bool:
        """Whether this broker executes commands."""
        return True

    @property
    def image(self) -> MetadataImage:
        return self._core.image

    @property
    def config(self) -> BrokerConfig:
        """The configuration with the dynamic settings applied."""
        return self._core.config

    @property
    def static(self) -> BrokerConfig:
        """This broker's configuration as given at start."""
        return self._core.static

    @property
    def controller_epoch(self) -> int:
        """The controller epoch; 0 without a controller, or if it is unknown."""
        return self._core.controller_epoch

    async def position(self) -> int:
        """The revision of the store that this broker's metadata has, after reading all reported changes.

        Raises:
            StoreUnavailable: the revision is unknown.
        """
        raise NotImplementedError

    def warn_of_minimum(self) -> None:
        """Warn if min.insync.replicas in the file differs from the value for all brokers, which overrides the file."""
        given, counts = self.static.given.get(MIN_IN_SYNC), self.layers.of_all_brokers.get(MIN_IN_SYNC)
        if given is not None and counts is not None and given != counts:
            note = "barnabas config alter broker default --set changes it"
            logger.warning("event=setting-without-effect key=%s in_file=%r counts=%r note=%r", MIN_IN_SYNC, given, counts, note)

    @property
    def layers(self) -> Layers:
        return self._core.layers()

    def topic_config(self, name: str) -> TopicConfig:
        return self._core.topic_config(name)

    async def create_topics(self, requests: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicOutcome]:
        """Create topics; returns one outcome for each name."""
        if self.policies is not None:
            return await self._create_as_policies_want(self.policies, requests, validate_only=validate_only)
        if validate_only:
            return await self._plan_only(lambda: self._core.create_topics(requests))
        return await self._topics_in_parts(self._core.create_topics, requests)

    async def _create_as_policies_want(
        self, policies: Policies, requests: Sequence[NewTopic], *, validate_only: bool
    ) -> list[TopicOutcome]:
        async with policies.turn:
            planned = await self._plan_only(lambda: self._core.create_topics(requests))
            refused = await policies.refused_topics(requests, planned)
            rest = [request for request in requests if request.name not in refused]
            made = planned if validate_only or not rest else await self._topics_in_parts(self._core.create_topics, rest)
        outcomes = {outcome.name: outcome for outcome in made} | refused
        return [outcomes[outcome.name] for outcome in planned]

    async def auto_create(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Create the missing topics, with the broker's defaults or with the settings of internal topics.

        Returns None for each topic that exists afterwards. Concurrent calls all succeed. The caller checks
        auto.create.topics.enable.
        """
        wanted = tuple(names)
        if self.policies is None:
            return await self._run(lambda: self._core.auto_create(wanted))
        told: dict[str, KafkaError | None] = dict.fromkeys(wanted)
        for outcome in await self.create_topics(self._core.missing_topics(wanted)):
            is_there = outcome.error is not None and outcome.error.code == ErrorCode.TOPIC_ALREADY_EXISTS
            told[outcome.name] = None if is_there else outcome.error
        return told

    def is_being_made(self, name: str) -> bool:
        """Whether the creation of a missing topic is running already; if so, another request need not start it."""
        return False

    async def delete_topics(self, requests: Sequence[tuple[str | None, UUID]]) -> list[DeleteOutcome]:
        """Delete topics; each is given by its name and the zero id, or by None and its id."""
        try:
            return await self._run(lambda: self._core.delete_topics(requests))
        except ChangesTooMuch:
            meant = resolve_deletions(self.image, requests)
        refused = [outcome for outcome in meant if outcome.error is not None]
        names = {outcome.topic_id: outcome.name for outcome in meant if outcome.error is None}
        return refused + await self._halves(
            self._core.delete_topics,
            [(None, topic_id) for topic_id in names],
            lambda each, error: DeleteOutcome(names[each[1]], each[1], error),
        )

    async def create_partitions(self, requests: Sequence[MorePartitions], *, validate_only: bool = False) -> list[TopicOutcome]:
        """Add partitions to topics; returns one outcome for each name."""
        if validate_only:
            return await self._plan_only(lambda: self._core.create_partitions(requests))
        return await self._topics_in_parts(self._core.create_partitions, requests)

    async def _topics_in_parts(
        self, command: Callable[[Sequence[T]], tuple[list[TopicOutcome], Plan]], requests: Sequence[T]
    ) -> list[TopicOutcome]:
        try:
            return await self._run(lambda: command(requests))
        except ChangesTooMuch:
            times = Counter(request.name for request in requests)
        twice = [request for request in requests if times[request.name] > 1]
        refused = await self._plan_only(lambda: command(twice)) if twice else []
        once = [request for request in requests if times[request.name] == 1]
        return refused + await self._halves(command, once, lambda each, error: TopicOutcome(each.name, error))

    async def _halves(
        self,
        command: Callable[[Sequence[Q]], tuple[list[Said], Plan]],
        requests: Sequence[Q],
        refuse: Callable[[Q, KafkaError], Said],
    ) -> list[Said]:
        """Split independent requests that are too large for one commit into halves, as often as needed.

        Raises:
            KafkaError: the error of the first commit; errors of later commits are in the outcomes of their requests.
        """
        if len(requests) == 1:
            return [refuse(requests[0], ChangesTooMuch())]
        outcomes: list[Said] = []
        for half in (requests[: len(requests) // 2], requests[len(requests) // 2 :]):
            try:
                try:
                    outcomes += await self._run(partial(command, half))
                except ChangesTooMuch:
                    outcomes += await self._halves(command, half, refuse)
            except KafkaError as error:
                if not outcomes:
                    raise
                outcomes += [refuse(each, error) for each in half]
        return outcomes

    async def alter_configs(self, requests: Sequence[ResourceChange], *, validate_only: bool = False) -> list[KafkaError | None]:
        """Change settings; returns one outcome for each request, None for success."""
        if self.policies is not None:
            return await self._alter_as_policies_want(self.policies, requests, validate_only=validate_only)
        if validate_only:
            return await self._plan_only(lambda: self._core.alter_configs(requests))
        return await self._run(lambda: self._core.alter_configs(requests))

    async def _alter_as_policies_want(
        self, policies: Policies, requests: Sequence[ResourceChange], *, validate_only: bool
    ) -> list[KafkaError | None]:
        async with policies.turn:
            image, planned = await self._plan_only(lambda: ((self.image, self._core.alter_configs(requests)[0]), Plan()))
            outcomes = await policies.refused_changes(image, requests, planned)
            places = [place for place, error in enumerate(outcomes) if error is None]
            if places and not validate_only:
                wanted = [requests[place] for place in places]
                done = await self._run(lambda: self._core.alter_configs(wanted))
                for place, error in zip(places, done, strict=True):
                    outcomes[place] = error
        return outcomes

    async def declare(self, declaring: Declaring[R], *, validate_only: bool = False) -> R:
        """Commit the declarations of `declaring` and return its answer; raises the exceptions of `declaring`, and KafkaError."""
        if validate_only:
            return await self._plan_only(lambda: self._core.declare(declaring))
        return await self._run(lambda: self._core.declare(declaring))

    async def elect_leaders(self, kind: int, partitions: Sequence[tuple[str, int]] | None) -> list[PartitionOutcome]:
        """Elect leaders of `partitions`; None means all partitions, and the result has only those that needed an election."""
        return await self._run(lambda: self._core.elect_leaders(kind, partitions))

    async def reassign(self, requests: Sequence[MoveRequest], *, may_change_factor: bool = True) -> list[PartitionOutcome]:
        """Start and cancel moves of partitions."""
        return await self._run(lambda: self._core.reassign(requests, may_change_factor=may_change_factor))

    async def alter_partitions(self, leader: int, broker_epoch: int, requests: Sequence[InSyncRequest]) -> list[PartitionOutcome]:
        """Change in-sync replicas at the request of a leader; raises KafkaError(STALE_BROKER_EPOCH)."""
        return await self._run(lambda: self._core.alter_partitions(leader, broker_epoch, requests))

    async def unregister(self, broker_id: int) -> None:
        """Forget a broker that was removed for good; raises KafkaError."""
        await self._run(lambda: (None, self._core.unregister(broker_id)))

    async def take_producer_ids(self) -> range:
        """A block of unused producer ids."""
        return await self._run(self._core.take_producer_ids)

    async def next_producer_id(self) -> int:
        """A producer id that is unique across restarts and brokers."""
        async with self._producer_id_turn:
            in_copies = self._core.image.producer_id_end
            self._producer_ids = range(max(self._producer_ids.start, in_copies), self._producer_ids.stop)
            if not self._producer_ids:
                self._producer_ids = await self.take_producer_ids()
            first, self._producer_ids = self._producer_ids[0], self._producer_ids[1:]
            return first
