"""A short form of `make torture`, and that its checker sees what it is there to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.testing import Broker
from tests.torture.__main__ import main
from tests.torture.check import Broken, Checker
from tests.torture.compacted import Expectation
from tests.torture.doctor import beyond_a_start, left_by_a_stop
from tests.torture.ledger import Fleeting, Lane, Ledger, TopicState
from tests.torture.load import GROUP, Load
from tests.torture.moments import Moment
from tests.torture.rounds import DISKS, Plan, create_topics, torture
from tests.torture.topics import BROKER_SETTINGS, TOPICS, TRIMMED
from tests.torture.values import Origin, is_tombstone, key_of, origin_of, value_of


@pytest.mark.timeout(300)  # kills and starts are slow on a busy machine
def test_kills_lose_nothing() -> None:
    plan = Plan(rounds=2, seed=7, seconds=0.3, patience_s=0.3, moments=(Moment.ANY, Moment.STOPPED))
    rounds = list(torture(plan))
    assert [each.number for each in rounds] == [1, 2]
    assert {each.moment for each in rounds} == set(plan.moments)
    assert all(each.acknowledged and each.read for each in rounds)


def test_a_value_with_a_wrong_byte_is_nobodys() -> None:
    origin = Origin("producer/1", 2, 345)
    value = value_of(origin)
    assert origin_of(value) == origin
    for at in range(len(value)):
        assert origin_of(value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]) is None
    assert origin_of(value[:-1]) is None


def test_a_compacted_partition_is_held_to_the_oracle() -> None:
    lanes = {"p/0": Lane(sent=300, acknowledged={number: 2 * number for number in range(300)})}
    expectation = Expectation()
    expectation.take(lanes)
    sent = set(lanes["p/0"].acknowledged.values())
    last = {key_of(Origin("p/0", 0, number)): number for number in range(200)}
    tombstones = {2 * number for number in last.values() if is_tombstone(Origin("p/0", 0, number))}
    right = {2 * number for number in last.values()} | {offset for offset in sent if offset >= 400}
    assert tombstones
    assert expectation.fault(sent, 0) == ""
    assert "are there" in expectation.fault(sent, 400)
    assert "are gone" in expectation.fault(right - {max(right - tombstones)}, 400)
    assert "are gone" in expectation.fault(right - {min(right - tombstones)}, 400)
    assert expectation.fault(right - tombstones, 400) == ""
    assert "before" in expectation.fault(right, 300)
    assert "are there" in expectation.fault(right, 400), "a tombstone that was gone is back"


def test_damage_is_beyond_what_a_start_mends(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", log_dirs=2) as broker:
        create_topics(broker, TOPICS)
    assert left_by_a_stop(broker.data_dirs) == []
    (folder,) = (path for disk in broker.data_dirs for path in disk.glob("synced-0"))
    (folder / "00000000000000000000.index").write_bytes(b"12345678")
    assert [finding.path.parent for finding in left_by_a_stop(broker.data_dirs)] == [folder]
    for disk in broker.data_dirs:
        (disk / ".kafka_cleanshutdown").unlink()
    assert beyond_a_start(broker.data_dirs) == []
    (folder / "00000000000000000000.log").rename(folder / "00000000000000000007.log")
    (folder / "00000000000000000003.log").write_bytes(b"what nobody wrote")
    assert beyond_a_start(broker.data_dirs) != []


def test_a_kind_of_round_that_there_is_not_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--kinds", "roll,never"])
    assert ended.value.code == 2
    assert "there is no kind of round 'never'; there are any, roll, " in capsys.readouterr().err


@contextmanager
def loaded() -> Iterator[tuple[Checker, Ledger]]:
    """A broker that took some load, all of it answered, and a checker that is content."""
    ledger = Ledger()
    with Broker(BROKER_SETTINGS, log_dirs=DISKS) as broker:
        create_topics(broker, TOPICS)
        checker = Checker(broker.bootstrap_servers, TOPICS, ledger, broker.data_dirs)
        with Load(broker, TOPICS, ledger, seed=3) as load:
            while ledger.acknowledged < 2_000 or not ledger.trims or not ledger.commits[GROUP][0]:
                load.check()
            with load.paused():
                checker.settle_topics()
                checker.all_records_again()
                yield checker, ledger
        checker.close()


def _lose_a_record(ledger: Ledger, topic: str) -> None:
    """As if more had been acknowledged than there is, and not tombstones alone, which may be gone."""
    (producer, partition), lane = next(iter(ledger.of_topic(topic).items()))
    assert ledger.lanes[topic, producer, partition] is lane
    is_enough = False
    while not is_enough:
        is_enough = not is_tombstone(Origin(producer, partition, lane.sent))
        lane.acknowledged[lane.sent] = -1
        lane.sent += 1


def _move_a_record(ledger: Ledger, topic: str) -> None:
    lane = next(iter(ledger.of_topic(topic).values()))
    lane.acknowledged[lane.sent - 1] += 1_000_000


def _never_send_a_record(ledger: Ledger, topic: str) -> None:
    """As if the last record in the log were nobody's."""
    lane = next(iter(ledger.of_topic(topic).values()))
    lane.sent -= 1
    del lane.acknowledged[lane.sent]


@pytest.mark.timeout(300)
def test_the_checker_sees_what_is_wrong() -> None:
    with loaded() as (checker, ledger):
        for topic in TOPICS:
            for harm in (_lose_a_record, _move_a_record, _never_send_a_record):
                lanes = {key: (lane.sent, dict(lane.acknowledged)) for key, lane in ledger.lanes.items()}
                harm(ledger, topic.name)
                with pytest.raises(Broken, match=topic.name):
                    checker.all_records_again(topic.name)
                for key, (sent, acknowledged) in lanes.items():
                    ledger.lanes[key].sent, ledger.lanes[key].acknowledged = sent, acknowledged
        checker.all_records_again()
        checker.after_start()

        def commit_more() -> None:
            acknowledged, tried = ledger.commits[GROUP]
            ledger.commits[GROUP] = acknowledged + 1, tried + 1

        def trim_more() -> None:
            partition, (start, tried) = next(iter(ledger.trims.items()))
            ledger.trims[partition] = start + 1, tried + 1
            assert partition < next(topic.partitions for topic in TOPICS if topic.name == TRIMMED)

        def create_more() -> None:
            ledger.fleeting["fleeting-never"] = Fleeting(TopicState.CREATED, 1, 0, 1)

        def delete_more() -> None:
            ledger.fleeting["synced"] = Fleeting(TopicState.DELETED)

        harms: list[Callable[[], None]] = [commit_more, trim_more, create_more, delete_more]
        for each in harms:
            commits, trims, fleeting = dict(ledger.commits), dict(ledger.trims), dict(ledger.fleeting)
            each()
            with pytest.raises(Broken):
                checker.after_start()
            ledger.commits, ledger.trims, ledger.fleeting = commits, trims, fleeting
        checker.after_start()
