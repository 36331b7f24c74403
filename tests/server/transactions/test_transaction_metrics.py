"""The metrics of transactions."""

from __future__ import annotations

from pathlib import Path

from barnabas.server.broker import Broker
from tests.server.in_process import running
from tests.server.scraped import render
from tests.server.transactions.test_two_phase_commit import end, init, owner_of, write
from tests.waiting import until

SETTINGS = {"transaction_two_phase_commit_enable": "true", "transaction_state_log_num_partitions": "1"}


def measured(broker: Broker) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in render(broker).decode().splitlines() if not line.startswith("#")]
    return {name.removeprefix("barnabas_"): float(value) for name, value in lines}


async def test_open_and_ended_transactions_are_measured(tmp_path: Path) -> None:
    async with running([tmp_path], **SETTINGS) as client:
        broker, line = client.broker, client.line
        assert await client.create() == 0
        writer = owner_of(await client.in_thread(lambda: init(line, "t")))
        assert await client.in_thread(lambda: write(line, "t", writer, b"open")) == 0
        before = measured(broker)
        assert before["transactional_ids"] == before["transactions_open"] == before["transactions_two_phase_open"] == 1
        assert before["transactions_oldest_open_seconds"] >= 0
        assert before['last_stable_offset_lag{partition="0",topic="t"}'] == 1
        held = f'oldest_open_transaction_seconds{{partition="0",producer_id="{writer[0]}",topic="t"}}'
        assert before[held] > 0
        assert (await client.in_thread(lambda: end(line, "t", writer, commit=True))).error_code == 0
        await until(lambda: measured(broker)["transactions_ending"] == 0)
        after = measured(broker)
        assert after["transactions_committed_total"] == before["transactions_committed_total"] + 1
        assert after["transactions_aborted_total"] == after["transactions_open"] == 0
        assert after['last_stable_offset_lag{partition="0",topic="t"}'] == 0
        assert held not in after


async def test_a_transaction_that_times_out_is_counted(tmp_path: Path) -> None:
    async with running([tmp_path], **SETTINGS) as client:
        assert await client.create() == 0
        line = client.line
        writer = owner_of(await client.in_thread(lambda: init(line, "t", two_phase=False, timeout_ms=100)))
        assert await client.in_thread(lambda: write(line, "t", writer, b"open")) == 0
        await until(lambda: measured(client.broker)["transactions_aborted_total"] == 1)
        assert measured(client.broker)["transactions_timed_out_total"] == 1
