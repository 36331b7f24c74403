"""The loop of a runner: jobs of an engine that does not reach its cluster end, and start again with the next answer."""

from __future__ import annotations

import threading
from pathlib import Path

from barnabas.client.config import ClientConfig
from barnabas.engine.job_loop import JobLoop
from barnabas.engine.jobs import Job, State
from barnabas.engine.membership import Member
from barnabas.testing import Broker
from tests.engine.cluster import Cluster, view
from tests.engine.test_running_job import FakeWork
from tests.waiting import wait_until

LIMITS = {"default.api.timeout.ms": "500", "request.timeout.ms": "500"}
ENGINE = Member("http://127.0.0.1:1", "me", worker_id="127.0.0.1:1")


def test_jobs_end_while_the_cluster_does_not_answer(tmp_path: Path) -> None:
    made: list[FakeWork] = []

    def make(_: Job) -> FakeWork:
        made.append(FakeWork())
        return made[-1]

    stopping = threading.Event()
    with Broker() as broker:
        cluster = Cluster(broker, tmp_path)
        cluster.declare(view("a"))
        config = ClientConfig.from_options({"bootstrap.servers": cluster.bootstrap, **LIMITS})
        loop = JobLoop(config, make, lambda jobs: jobs, member=ENGINE, patience_s=0.5)
        thread = threading.Thread(target=loop.run, args=(stopping,))
        thread.start()
        try:
            state = cluster.wait_for("a", "running")
            assert (state.worker, state.url, state.worker_id) == ("me", "http://127.0.0.1:1", "127.0.0.1:1")
            broker.kill()
            wait_until(lambda: made[0].stopped, "the job goes on")
            assert len(made) == 1
            broker.start()
            wait_until(lambda: len(made) == 2, "the job does not start again")
            cluster.wait_for("a", "running")
        finally:
            stopping.set()
            thread.join()
        ended = cluster.state("a")
        assert ended is not None
        assert (ended.worker, ended.state) == (None, State.STARTING)
        assert made[1].stopped
        cluster.close()
