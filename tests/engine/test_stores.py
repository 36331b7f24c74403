"""The topics of jobs: what does not fit them, and what a stranger writes into them."""

from __future__ import annotations

import msgspec
import pytest

from barnabas import limits
from barnabas.client.keyed_topic import KeyedTopicError
from barnabas.engine import jobs, operations
from barnabas.engine.jobs import JOBS, Job, JobProgress, encode
from barnabas.engine.operations import JobError, JobExists, UnknownJob
from barnabas.engine.report import lags, reports, shown
from barnabas.protocol.records.batch import build_batch
from tests.engine.cluster import Cluster, pipeline, view
from tests.engine.driver.appending import JOINED, TARGET
from tests.engine.driver.appending import work as inserting


def test_the_number_and_the_size_of_jobs_have_limits(cluster: Cluster) -> None:
    with pytest.raises(KeyedTopicError, match=f"allowed are {limits.MAX_JOB_BYTES}"):
        cluster.declare(view("a", "x" * limits.MAX_JOB_BYTES))
    cluster.declare(*(pipeline(f"p{number}", "x") for number in range(limits.MAX_JOBS)))
    with pytest.raises(KeyedTopicError, match=f"at most {limits.MAX_JOBS} records"):
        operations.create(cluster.jobs, cluster.client, pipeline("more", "x"))


def test_what_people_do_with_jobs(cluster: Cluster) -> None:
    jobs, client = cluster.jobs, cluster.client
    made = operations.create(jobs, client, pipeline("p", "x", generation=9, restarts=9))
    assert (made.generation, made.restarts, made.created_ms > 0) == (0, 0, True)
    with pytest.raises(JobExists):
        operations.create(jobs, client, pipeline("p", "y"))
    for wrong in ("", "  ", "x" * (limits.MAX_JOB_NAME + 1), "a\nb"):
        with pytest.raises(JobError, match="printable"):
            operations.create(jobs, client, pipeline(wrong, "x"))
    assert operations.pause(jobs, client, "p").desired == "paused"
    version = jobs.version
    assert operations.pause(jobs, client, "p").desired == "paused"
    assert jobs.version == version
    assert operations.restart(jobs, client, "p").restarts == 1
    assert operations.restart(jobs, client, "p", rebuild=True) == jobs.get("p")
    found = jobs.get("p")
    assert found is not None
    assert (found.desired, found.restarts, found.generation) == ("running", 2, 1)
    for act in (operations.pause, operations.resume, operations.restart, operations.delete):
        with pytest.raises(UnknownJob, match="there is no job x"):
            act(jobs, client, "x")
    created = operations.create(jobs, client, view("v"))
    assert created.generation == created.created_ms
    with pytest.raises(JobError, match="DROP MATERIALIZED VIEW"):
        operations.delete(jobs, client, "v")
    operations.delete(jobs, client, "p")
    assert set(jobs.records) == {"v"}


def test_what_people_do_with_inserts(cluster: Cluster) -> None:
    jobs, client = cluster.jobs, cluster.client
    keyed = msgspec.structs.replace(TARGET, is_keyed=True)
    made = {
        "adding": inserting(), "upserting": inserting(JOINED, keyed), "s": msgspec.structs.replace(inserting(), creates="s")
    }  # fmt: skip
    for name, work in made.items():
        created = operations.create(jobs, client, Job(name, work))
        assert created.generation == created.created_ms
    with pytest.raises(JobError, match="write all of them a second time"):
        operations.restart(jobs, client, "adding", rebuild=True)
    assert operations.restart(jobs, client, "adding").restarts == 1
    before = jobs.get("upserting")
    assert before is not None
    assert operations.restart(jobs, client, "upserting", rebuild=True).generation == before.generation + 1
    with pytest.raises(JobError, match="DROP STREAM"):
        operations.delete(jobs, client, "s")
    operations.delete(jobs, client, "adding")
    told = [shown(each) for each in reports(client, jobs.records, {}, {})]
    assert [(each["name"], each["kind"], each["topic"], each["reads"]) for each in told] == [
        ("s", "stream", "out", ["s", "t"]), ("upserting", "insert", "out", ["s", "t"]),
    ]  # fmt: skip


def test_records_of_strangers_stop_nothing(cluster: Cluster) -> None:
    cluster.declare(view("good"))
    unknown_field = msgspec.json.decode(encode(view("newer"))) | {"priority": 3}
    records: list[tuple[bytes | None, bytes | None]] = [
        (b"text", b"no json"), (b"kind", b'{"name": "kind", "work": {"type": "sorcery"}}'), (b"\xff\xfe", b"{}"),
        (b"newer", msgspec.json.encode(unknown_field)),
    ]  # fmt: skip
    cluster.client.produce(JOBS, 0, build_batch(records, timestamp_ms=1))
    assert set(cluster.jobs.follow()) == {"good", "newer"}


def test_a_topic_that_is_gone_hides_the_lag_of_its_job_alone(cluster: Cluster) -> None:
    cluster.declare(view("there"), view("gone"), pipeline("told", "x"), view("older", generation=2))
    ends = cluster.client.list_offsets({(JOBS, 0): -1})[JOBS, 0].offset
    progress = {
        "there": JobProgress("there", 0, 1, {JOBS: {"0": ends - 2, "x": 1}}), "gone": JobProgress("gone", 0, 1, {"none": {"0": 1}}),
        "told": JobProgress("told", 0, 1, {}, lag=7), "older": JobProgress("older", 1, 1, {JOBS: {"0": 0}}),
    }  # fmt: skip
    found = {each.job.name: each for each in reports(cluster.client, cluster.jobs.records, {}, progress)}
    assert {name: each.lag for name, each in found.items()} == {"there": 2, "gone": None, "told": 7, "older": None}
    assert found["older"].progress is None
    assert shown(found["told"])["lag"] == 7
    assert lags(cluster.client, {}) == {}


def test_records_are_decoded_by_decoders_that_are_there_at_import() -> None:
    """Two threads that decode a type for the first time at once may end the process: msgspec builds what it knows of the type then."""
    assert set(jobs._DECODERS) == {jobs.Job, jobs.JobState, jobs.JobProgress, jobs.Assignment}
    with pytest.raises(jobs.BadRecord):
        jobs.decode(b"{}", jobs.Job)
