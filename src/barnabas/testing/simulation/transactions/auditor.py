"""The auditor of runs with transactions: it reads all records, at the end or while no other client may connect."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.client.asynchronous import AsyncClient
from barnabas.client.errors import ClientError
from barnabas.client.operations import refresh
from barnabas.client.plans import Call, Plan
from barnabas.errors import BarnabasError, ErrorCode, KafkaError
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.testing.simulation.auditor import AUDITOR
from barnabas.testing.simulation.clients import LATEST, client_config
from barnabas.testing.simulation.history import TopicPartition, Violation
from barnabas.testing.simulation.transactions.client_processes import ClientProcesses, reading_config
from barnabas.testing.simulation.transactions.group_offsets import committed_offset
from barnabas.testing.simulation.transactions.ledger import Seen
from barnabas.testing.simulation.transactions.reader import Reader
from barnabas.testing.simulation.transactions.verdict import Verdict
from barnabas.testing.simulation.transactions.workers import GROUP

if TYPE_CHECKING:
    from barnabas.testing.simulation.loop import World

LOOKS_S = 1.0
SLACK_S = 40.0  # for the markers after the longest transaction timeout
ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


class TransactionAuditor:
    """One audit.

    Args:
        addresses: the addresses of the brokers.
    """

    def __init__(self, world: World, addresses: str, client_processes: ClientProcesses) -> None:
        self._world = world
        self._client_processes = client_processes
        self._any = AsyncClient(client_config(addresses, AUDITOR))
        self._committed = AsyncClient(reading_config(addresses, AUDITOR, patience_ms=60_000))

    async def look(self) -> dict[TopicPartition, list[Seen]]:
        """Read all records; returns the committed ones."""
        found = {}
        for place in self._client_processes.clients.places:
            end = await self._end(self._any, place)
            self._world.note(f"audit {place[0]}-{place[1]} to {end}")
            self._client_processes.ledger.ends_at(place, end)
            await Reader(self._any, self._client_processes.ledger, place).read_to(end)
            stable = await self._end(self._committed, place)
            found[place] = await Reader(self._committed, self._client_processes.ledger, place).read_to(stable)
        return found

    async def decide(self) -> None:
        """After all clients are done: wait until every transaction has ended, then check the verdict."""
        while self._client_processes.late_requests.under_way:  # noqa: ASYNC110 - polling is cheap in virtual time
            await asyncio.sleep(LOOKS_S)
        await self._wait_ends()
        contents = await self.look()
        offsets = {
            client.source: await self._offset(client.source)
            for client in self._client_processes.clients.clients
            if client.source is not None
        }
        verdict = Verdict(self._client_processes.ledger, contents, offsets)
        verdict.check()
        for reader in self._client_processes.readers:
            verdict.check_reader(reader.place, reader.seen, reader.position)

    async def close(self) -> None:
        await self._any.close()
        await self._committed.close()

    async def _wait_ends(self) -> None:
        """Check that no transaction hangs: a transaction without an end times out, and then it does not block readers any
        more."""
        timeouts = [how.timeout_ms for client in self._client_processes.clients.clients for how in client.instances]
        limit_s = self._world.now_s + max(timeouts) / 1000 + SLACK_S
        while held := [*await self._open(), *await self._held_back()]:
            if self._world.now_s > limit_s:
                raise Violation(f"hanging transaction: {', '.join(held)}")
            await asyncio.sleep(LOOKS_S)

    async def _open(self) -> list[str]:
        """The transactional ids with an open transaction."""

        def ask() -> Plan[list[str]]:
            client = self._any
            yield from refresh(client.config, client.cluster, [])
            answers = yield [Call(ListTransactionsRequest(), node_id) for node_id in client.cluster.brokers]
            found = []
            for answer in answers:
                if isinstance(answer, ClientError):
                    raise answer
                if answer.error_code:
                    raise KafkaError(ErrorCode(answer.error_code))
                found += [each.transactional_id for each in answer.transaction_states if each.transaction_state not in ENDED]
            return found

        try:
            return await self._any.run(ask())
        except BarnabasError as error:
            return [f"what is open is not known ({error})"]

    async def _held_back(self) -> list[str]:
        """The partitions with records after the last stable offset."""
        found = []
        for place in self._client_processes.clients.places:
            end, stable = await self._end(self._any, place), await self._end(self._committed, place)
            if stable < end:
                found.append(f"{place[0]}-{place[1]} is held back at {stable} of {end}")
        return found

    async def _end(self, client: AsyncClient, place: TopicPartition) -> int:
        return (await client.list_offsets({place: LATEST}))[place].offset

    async def _offset(self, place: TopicPartition) -> int:
        """The committed offset of the copiers' group. No transaction is open, so the offset must not be pending."""
        while True:
            try:
                return await committed_offset(self._any, GROUP, place, stable=True)
            except KafkaError as error:
                if not error.code.retriable:
                    raise Violation(f"the offset of {place[0]}-{place[1]} is not told: {error.code.name}") from error
            except ClientError:
                pass
            await asyncio.sleep(LOOKS_S)


def count(client_processes: ClientProcesses, counts: dict[str, int]) -> None:
    """The counts of the clients' actions, for the summary of many runs."""
    for transaction in client_processes.ledger.transactions:
        name = f"{transaction.outcome.value}_transactions"
        counts[name] = counts.get(name, 0) + 1
    counts["records"] = sum(len(partition.values) for partition in client_processes.ledger.partitions.values())
    counts["echoes"] = client_processes.late_requests.delivered
