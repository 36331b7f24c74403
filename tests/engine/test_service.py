"""The engine as a service: the HTTP interface, metrics, the election."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
from confluent_kafka import Producer

from barnabas.engine.membership import RULES, Member, active_engine
from tests.engine.cluster import Cluster, view
from tests.engine.processes import serving
from tests.waiting import wait_until


def write(cluster: Cluster, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for number in range(count):
        producer.produce(topic, b'{"a": %d}' % number, partition=0)
    assert producer.flush(60) == 0


def test_jobs_over_http(cluster: Cluster) -> None:
    write(cluster, "v.in", 5)
    with serving(cluster) as engine:
        assert engine.request("GET", "/jobs") == (200, [])
        assert engine.request("GET", "/jobs/v")[0] == 404
        cluster.declare(view("v"))
        cluster.wait_for("v", "running")
        wait_until(lambda: engine.request("GET", "/jobs/v")[1]["progress"])
        status, found = engine.request("GET", "/jobs/v")
        assert (status, found["kind"], found["state"], found["lag"], found["sql"]) == (200, "view", "running", 4, "select 1")
        assert found["progress"]["total_in"] == 30
        status, text = engine.request("GET", "/jobs/v/logs?lines=1")
        assert (status, text) == (200, "v is running\n")
        assert engine.request("POST", "/jobs/v/pause") == (
            200,
            {"name": "v", "desired": "paused", "generation": 0, "restarts": 0},
        )
        cluster.wait_for("v", "paused")
        assert engine.request("POST", "/jobs/v/resume")[0] == 200
        cluster.wait_for("v", "running")
        status, found = engine.request("POST", "/jobs/v/restart?rebuild=true")
        assert (found["generation"], found["restarts"]) == (1, 1)
        wait_until(lambda: (state := cluster.state("v")) and (state.generation, state.state) == (1, "running"))
        wait_until(lambda: (progress := cluster.progress.follow().get("v")) and progress.generation == 1)
        status, found = engine.request("DELETE", "/jobs/v")
        assert (status, found["message"]) == (400, "v is a view; drop it by SQL: DROP MATERIALIZED VIEW")
        page = engine.request("GET", "/metrics")[1]
        for line in (
            'barnabas_job_state{job="v",state="running"} 1', 'barnabas_job_state{job="v",state="failed"} 0',
            'barnabas_job_lag_records{job="v"} 4.0', 'barnabas_job_rows_in_total{job="v"} 30.0',
            'barnabas_job_batch_seconds{job="v"} 0.0125',
            'barnabas_job_failures{job="v"} 0.0', "barnabas_engine_driver_restarts_total 0",
        ):  # fmt: skip
            assert f"{line}\n" in page
        assert 'barnabas_http_request_seconds_count{service="engine",method="POST"' in page


def test_pipelines_over_http(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "p.py").write_text("print('done')")
    with serving(cluster, engine_pipelines_dir=str(tmp_path / "ours")) as engine:
        body = {"name": "p", "target": "p.py"}
        assert engine.request("POST", "/jobs", body) == (201, {"name": "p"})
        cluster.wait_for("p", "completed")
        assert engine.request("POST", "/jobs", body)[0] == 409
        for wrong, reason in (
            ({"name": "x", "target": "missing.py"}, "does not exist"),
            ({"name": "x", "target": "../../x.py"}, "is not in"),
            ({"name": " ", "target": "p.py"}, "printable characters"),
            ({"name": "x" * 250, "target": "p.py"}, "1 to 249"),
            ({"name": "x", "target": "p.py", "conf": {"spark.driver.extraJavaOptions": "-x"}}, "cannot have the setting"),
            ({"name": "x", "target": "p.py", "every_s": 5}, "not for scripts"),
            ({"name": "x"}, "the body is no pipeline"),
            ([1], "the body is no pipeline"),
        ):
            status, found = engine.request("POST", "/jobs", wrong)
            assert (status, reason in found["message"]) == (400, True), found
        assert engine.request("POST", "/jobs", headers={"content-type": "text/plain"})[0] == 415
        assert engine.request("POST", "/jobs/p/restart?rebuild=perhaps")[0] == 400
        assert engine.request("GET", "/jobs/p/logs?lines=10001")[0] == 400
        assert engine.request("GET", "/jobs/p/logs") == (200, "done\n")
        assert engine.request("POST", "/jobs/p/pause", headers={"origin": "http://evil.example"})[0] == 403
        assert engine.request("POST", "/jobs/p/pause", headers={"origin": engine.url})[0] == 200
        assert engine.request("DELETE", "/jobs/p") == (200, {"name": "p"})
        assert engine.request("DELETE", "/jobs/p")[0] == 404
        wait_until(lambda: cluster.states.follow() == {})


def test_the_active_engine_stays_active() -> None:
    def chosen(*members: Member) -> object:
        return msgspec.json.decode(RULES.choose({each.id: msgspec.json.encode(each) for each in members}), type=Member)

    first, second, active = Member("http://a", "2"), Member("http://a", "1"), Member("http://b", "3", is_active=True)
    assert chosen(first, second) == second
    assert chosen(first, active, second) == active
    assert RULES.choose({"x": b"no json"}) == b""
    assert RULES.choose({}) == b""


def test_one_engine_of_a_cluster_works_and_the_next_takes_over(cluster: Cluster, tmp_path: Path) -> None:
    other = Cluster.__new__(Cluster)
    other.__dict__.update({**cluster.__dict__, "folder": tmp_path / "other"})
    with serving(cluster) as first:
        wait_until(lambda: active_engine(cluster.client))
        cluster.declare(view("v"))
        cluster.wait_for("v", "running")
        with serving(other) as second:
            wait_until(lambda: second.request("GET", "/jobs/v")[1]["state"] == "running")
            driver = cluster.driver
            first.process.send_signal(signal.SIGKILL)
            wait_until(lambda: other.driver is not None)
            found = active_engine(cluster.client)
            assert found is not None
            assert found.url == second.url
            assert driver is not None
            assert cluster.driver is None
            wait_until(lambda: other.is_in("v", "running"))
