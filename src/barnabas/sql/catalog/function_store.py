"""The topic of functions, `_barnabas_sql_functions`: a record's key is the signature of a function, its value the definition.

It is a topic of its own because its rights are: whoever may write it chooses the code that the servers run. The engine of views reads it
too, and runs the code of no other function.

An engine looks for news when a statement calls a function that it does not know, and otherwise at most every REFRESH_S if there are
functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from barnabas.client.blocking import BlockingClient
from barnabas.client.config import ClientConfig
from barnabas.client.errors import ConnectionFailed, PartitionError, TimedOut
from barnabas.client.interruption import Interrupted, Interruption
from barnabas.client.keyed_topic import Contended, KeyedTopicError
from barnabas.client.plans import Plan, call, retrying
from barnabas.error_codes import ErrorCode
from barnabas.errors import KafkaError
from barnabas.functions.definition import Function, Stored
from barnabas.functions.store import TOPIC, functions_of
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.sql.interface import SqlError
from barnabas.sql.running import Running
from barnabas.sql.states import LIMIT_EXCEEDED, SERIALIZATION_FAILURE, unknown_outcome
from barnabas.sql.turns import Turns

REFRESH_S = 0.5
ALTER = 1 << 7  # the bit of ALTER among the rights on the cluster
Functions = Mapping[str, Stored]
Decide = Callable[[Functions], Mapping[str, "Stored | None"]]


class FunctionStore:
    """The functions of a cluster, as this engine knows them. For several threads at once.

    Args:
        config: of the client that follows the topic.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._interruption = Interruption()
        own = replace(config, interruption=self._interruption)
        self._topic, self._client = functions_of(own), BlockingClient(own)
        self._turns = Turns()
        self._looked_at: float | None = None
        self._named: tuple[int, Mapping[str, tuple[Function, ...]]] = -1, {}

    @property
    def stored(self) -> Functions:
        """By signature, as of the last look; a snapshot that does not change."""
        return self._topic.records

    @property
    def version(self) -> int:
        return self._topic.version

    def close(self) -> None:
        """Release the connections; no session is left."""
        self._topic.close()
        self._client.close()

    def refresh(self, running: Running, *, max_age_s: float = REFRESH_S) -> None:
        """Read what was written, unless the last look is not older. Raises ClientError, KafkaError, SqlError."""
        if self._looked_at is not None and time.monotonic() - self._looked_at < max_age_s:
            return
        with self._turns.turn(running), running.using(self._interruption):
            try:
                if self.stored or self._client.topics_by_name([TOPIC]):  # a fetch of no topic asks all brokers
                    self._topic.follow()
            except (KafkaError, PartitionError) as error:
                if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # without the right to read it there are no functions
                    raise
            self._looked_at = time.monotonic()

    @property
    def is_fresh(self) -> bool:
        """Whether `look_once` would read nothing."""
        return self._looked_at is not None and (not self.stored or time.monotonic() - self._looked_at < REFRESH_S)

    def look_once(self, running: Running) -> None:
        """Read the functions, if that was never done or if there are some."""
        if self._looked_at is None or self.stored:
            self.refresh(running)

    def named(self, name: str) -> tuple[Function, ...]:
        """The functions of a name, whatever its case."""
        return self.by_name.get(name.lower(), ())

    @property
    def by_name(self) -> Mapping[str, tuple[Function, ...]]:
        """The functions by their names in lower case."""
        version, found = self._named
        if version != self.version:
            version, made = self.version, dict[str, tuple[Function, ...]]()
            for each in self.stored.values():
                name = each.function.name.lower()
                made[name] = (*made.get(name, ()), each.function)
            found = made
            self._named = version, found
        return found

    def change(self, client: BlockingClient, running: Running, decide: Decide) -> None:
        """Write what `decide` makes of the functions; None deletes one. Called again if another engine wrote in between.

        Raises:
            SqlError: by `decide`, a limit, or others write all the time.
            KafkaError, ClientError: the cluster refused it.
        """
        try:
            with self._turns.turn(running), running.using(self._interruption):
                self._topic.change(client, decide)
        except Contended as error:
            raise SqlError(SERIALIZATION_FAILURE, str(error), hint="try again") from error
        except KeyedTopicError as error:
            raise SqlError(LIMIT_EXCEEDED, str(error)) from error
        except (ConnectionFailed, TimedOut, Interrupted) as error:
            raise unknown_outcome(error, "the function was changed") from error


def may_alter_cluster(client: BlockingClient) -> bool:
    """Whether the caller has the right ALTER on the cluster; without access rights everybody has it. Raises ClientError, KafkaError."""

    def attempt() -> Plan[int]:
        response = yield from call(DescribeClusterRequest(include_cluster_authorized_operations=True))
        return int(response.cluster_authorized_operations)

    def plan() -> Plan[int]:
        return (yield from retrying(client.config, "the rights on the cluster", attempt))

    return bool(client.run(plan()) & ALTER)
