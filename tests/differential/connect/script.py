"""The requests. Nothing depends on records: offsets are set by requests, and no task finds anything to do."""

from __future__ import annotations

from typing import Any

from tests.differential.connect.talk import Talk
from tests.differential.connect.wrong import requests

SOURCE = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": "/no/such/input", "topic": "from-file",
          "tasks.max": "1"}  # fmt: skip
SINK = {"connector.class": "FileStreamSink", "file": "/tmp/barnabas-differential", "topics": "to-file", "tasks.max": "2"}
FAILING = {**SINK, "file": "/no/such/folder/output", "tasks.max": "1"}
FAILS = "failing"  # the name of the connector whose task fails
TOPIC = "to-file"
PLACE = {"filename": "/no/such/input"}


def run(talk: Talk) -> None:
    """All requests, in their order."""
    nothing_there(talk)
    bodies(talk)
    configs(talk)
    for step, method, path, body in requests():
        talk.ask(step, method, path, body)
        talk.keep_errors(step)
    life_of_a_source(talk)
    offsets_of_a_source(talk)
    offsets_of_a_sink(talk)
    failures(talk)
    plugins(talk)
    loggers(talk)


def nothing_there(talk: Talk) -> None:
    talk.ask("root", "GET", "/")
    talk.ask("health", "GET", "/health")
    talk.ask("no-connectors", "GET", "/connectors")
    talk.ask("no-connectors-slash", "GET", "/connectors/")
    talk.ask("no-such-path", "GET", "/nope")
    talk.ask("no-such-method", "PUT", "/connectors")
    talk.ask("no-such-method-of-the-root", "DELETE", "/")
    talk.ask("no-such-method-of-one", "POST", "/connectors/none")
    one = "/connectors/none"
    for method, path in (
        ("GET", ""), ("DELETE", ""), ("GET", "/config"), ("GET", "/status"), ("GET", "/tasks"), ("GET", "/tasks-config"),
        ("GET", "/topics"), ("PUT", "/topics/reset"), ("GET", "/offsets"), ("DELETE", "/offsets"), ("PUT", "/pause"),
        ("PUT", "/resume"), ("PUT", "/stop"), ("POST", "/restart"), ("POST", "/restart?includeTasks=true"),
        ("GET", "/tasks/0/status"), ("POST", "/tasks/0/restart"), ("GET", "/tasks/x/status"),
    ):  # fmt: skip
        talk.ask(f"none {method} {path}", method, one + path)
    talk.ask("none patch", "PATCH", f"{one}/config", {"a": "b"})
    talk.ask("none offsets", "PATCH", f"{one}/offsets", {"offsets": [{"partition": PLACE, "offset": {"position": 1}}]})
    talk.ask("none no offsets", "PATCH", f"{one}/offsets", {"offsets": []})


def bodies(talk: Talk) -> None:
    for step, raw in (("broken", b"{"), ("empty", b""), ("list", b"[1]"), ("text", b'"x"')):
        talk.ask(f"create {step}", "POST", "/connectors", raw=raw)
    whole: dict[str, Any] = {"name": "x", "config": SOURCE}
    talk.ask("create without config", "POST", "/connectors", {"name": "x"})
    talk.ask("create without name", "POST", "/connectors", {"config": {}})
    talk.ask("create without class", "POST", "/connectors", {"name": "x", "config": {}})
    talk.ask("create with an unknown class", "POST", "/connectors", {"name": "x", "config": {"connector.class": "Nope"}})
    talk.ask("create with an empty class", "POST", "/connectors", {"name": "x", "config": {"connector.class": ""}})
    talk.ask("create with two names", "POST", "/connectors", {"name": "x", "config": {**SOURCE, "name": "y"}})
    talk.ask("create with a field too many", "POST", "/connectors", {**whole, "foo": 1})
    talk.ask("create with another state", "POST", "/connectors", {**whole, "initial_state": "foo"})
    talk.ask("create with another type", "POST", "/connectors", whole, kind="text/plain")
    talk.ask("create with an object in it", "POST", "/connectors", {"name": "x", "config": {**SOURCE, "a": {}}})
    talk.ask("put a list", "PUT", "/connectors/x/config", raw=b"[]")
    talk.ask("put nothing", "PUT", "/connectors/x/config", {})
    talk.ask("put an unknown class", "PUT", "/connectors/x/config", {"connector.class": "Nope"})
    talk.ask("put another name", "PUT", "/connectors/x/config", {**SOURCE, "name": "y"})


def configs(talk: Talk) -> None:
    for step, config in (
        ("no topic", {"connector.class": "FileStreamSource"}), ("no tasks", {**SOURCE, "tasks.max": "0"}),
        ("tasks in words", {**SOURCE, "tasks.max": "many"}), ("two errors", {"connector.class": "FileStreamSource", "tasks.max": "0"}),
        ("another tolerance", {**SOURCE, "errors.tolerance": "some"}), ("twice the alias", {**SOURCE, "transforms": "a,a"}),
        ("a batch in words", {**SOURCE, "batch.size": "x"}), ("no topics", {"connector.class": "FileStreamSink"}),
        ("topics and a pattern", {**SINK, "topics.regex": "x"}),
        ("its own dead letters", {**SINK, "errors.deadletterqueue.topic.name": TOPIC}),
        ("a converter that is not there", {**SOURCE, "key.converter": "Nope"}),
        ("a boolean that is none", {**SOURCE, "errors.log.enable": "maybe"}),
    ):  # fmt: skip
        talk.ask(f"create with {step}", "POST", "/connectors", {"name": "x", "config": config})
        kind = "FileStreamSink" if "Sink" in config["connector.class"] else "FileStreamSource"
        talk.ask(f"validate {step}", "PUT", f"/connector-plugins/{kind}/config/validate", {"name": "x", **config})
    talk.ask("create without any name", "POST", "/connectors", {"name": "", "config": SOURCE})
    validate = "/connector-plugins/FileStreamSource/config/validate"
    talk.ask("validate a good one", "PUT", validate, {"name": "x", **SOURCE})
    talk.ask("validate another class", "PUT", validate, {"name": "x", **SINK})
    talk.ask("validate without class", "PUT", validate, {"name": "x"})
    talk.ask("validate an unknown class", "PUT", "/connector-plugins/Nope/config/validate", {"connector.class": "FileStreamSink"})


def life_of_a_source(talk: Talk) -> None:
    one = "/connectors/source"
    talk.ask("create stopped", "POST", "/connectors", {"name": "source", "config": SOURCE, "initial_state": "STOPPED"})
    talk.ask("created info", "GET", one)
    talk.ask("created tasks", "GET", f"{one}/tasks")
    talk.ask("created offsets", "GET", f"{one}/offsets")
    talk.ask("create again", "POST", "/connectors", {"name": "source", "config": SOURCE})
    talk.ask("resume", "PUT", f"{one}/resume")
    talk.waits_for("source", "RUNNING", ["RUNNING"])
    for path in ("", "/status", "/tasks", "/config", "/topics", "/tasks/0/status", "/tasks/7/status"):
        talk.ask(f"running {path}", "GET", one + path)
    for query in ("expand=info", "expand=status", "expand=info&expand=status", "expand=nope"):
        talk.ask(f"list {query}", "GET", f"/connectors?{query}")
    talk.ask("put", "PUT", f"{one}/config", {**SOURCE, "topic": "other"})
    talk.ask("put with a number", "PUT", f"{one}/config", {**SOURCE, "batch.size": 10, "errors.log.enable": True})
    talk.ask("patch", "PATCH", f"{one}/config", {"topic": "from-file", "batch.size": "20"})
    talk.ask("patch away", "PATCH", f"{one}/config", {"batch.size": None})
    talk.ask("patch wrongly", "PATCH", f"{one}/config", {"tasks.max": "0"})
    talk.ask("patched", "GET", f"{one}/config")
    talk.waits_for("source", "RUNNING", ["RUNNING"])
    talk.ask("restart the task", "POST", f"{one}/tasks/0/restart")
    talk.ask("restart another task", "POST", f"{one}/tasks/7/restart")
    talk.waits_for("source", "RUNNING", ["RUNNING"])
    talk.ask("restart all", "POST", f"{one}/restart?includeTasks=true&onlyFailed=false")
    talk.waits_for("source", "RUNNING", ["RUNNING"])
    talk.ask("restart", "POST", f"{one}/restart")
    talk.waits_for("source", "RUNNING", ["RUNNING"])
    talk.ask("pause", "PUT", f"{one}/pause")
    talk.waits_for("source", "PAUSED", ["PAUSED"])
    talk.ask("paused", "GET", f"{one}/status")


def offsets_of_a_source(talk: Talk) -> None:
    one = "/connectors/source"
    item = {"partition": PLACE, "offset": {"position": 2}}
    talk.ask("alter while paused", "PATCH", f"{one}/offsets", {"offsets": [item]})
    talk.ask("reset while paused", "DELETE", f"{one}/offsets")
    talk.ask("stop", "PUT", f"{one}/stop")
    talk.waits_for("source", "STOPPED", [])
    for path in ("", "/status", "/tasks", "/offsets"):
        talk.ask(f"stopped {path}", "GET", one + path)
    talk.granted("PATCH", f"{one}/offsets", {"offsets": [item]})
    talk.ask("alter", "PATCH", f"{one}/offsets", {"offsets": [item]})
    talk.ask("altered", "GET", f"{one}/offsets")
    for step, wrong in (
        ("in words", {"partition": PLACE, "offset": {"position": "x"}}),
        ("below nothing", {"partition": PLACE, "offset": {"position": -1}}),
        ("of another place", {"partition": {"x": "y"}, "offset": {"position": 1}}), ("without place", {"offset": {"position": 1}}),
        ("without position", {"partition": PLACE, "offset": {"x": 1}}),
    ):  # fmt: skip
        talk.ask(f"alter {step}", "PATCH", f"{one}/offsets", {"offsets": [wrong]})
    talk.ask("alter no field", "PATCH", f"{one}/offsets", {"offset": []})
    talk.ask("alter to none", "PATCH", f"{one}/offsets", {"offsets": [{"partition": PLACE, "offset": None}]})
    talk.ask("altered to none", "GET", f"{one}/offsets")
    talk.ask("reset", "DELETE", f"{one}/offsets")
    talk.ask("reset topics", "PUT", f"{one}/topics/reset")
    talk.ask("delete", "DELETE", one)
    talk.ask("deleted", "GET", one)
    talk.ask("delete again", "DELETE", one)


def offsets_of_a_sink(talk: Talk) -> None:
    one = "/connectors/sink"
    talk.ask("put a sink", "PUT", f"{one}/config", SINK)
    talk.waits_for("sink", "RUNNING", ["RUNNING", "RUNNING"])
    talk.ask("sink", "GET", one)
    talk.ask("sink status", "GET", f"{one}/status")
    talk.ask("sink tasks", "GET", f"{one}/tasks")
    talk.ask("stop sink", "PUT", f"{one}/stop")
    talk.waits_for("sink", "STOPPED", [])
    item: dict[str, dict[str, Any]] = {
        "partition": {"kafka_topic": TOPIC, "kafka_partition": 0}, "offset": {"kafka_offset": 0},
    }  # fmt: skip
    talk.granted("PATCH", f"{one}/offsets", {"offsets": [item]})
    talk.ask("alter sink", "PATCH", f"{one}/offsets", {"offsets": [item]})
    talk.ask("altered sink", "GET", f"{one}/offsets")
    place, offset = item["partition"], item["offset"]
    for step, wrong in (
        ("without partition", {"partition": {"kafka_topic": TOPIC}, "offset": offset}),
        ("of a partition in words", {"partition": {**place, "kafka_partition": "x"}, "offset": offset}),
        ("in words", {"partition": place, "offset": {"kafka_offset": "x"}}), ("with another key", {"partition": place, "offset": {"x": 1}}),
        ("below nothing", {"partition": place, "offset": {"kafka_offset": -1}}), ("with no key", {"partition": place, "offset": {}}),
        ("of no place", {"partition": {}, "offset": offset}),
        ("of another topic", {"partition": {**place, "kafka_topic": "no-such"}, "offset": offset}),
        ("as text", {"partition": {"kafka_topic": TOPIC, "kafka_partition": "0"}, "offset": {"kafka_offset": "0"}}),
        ("to none", {"partition": place, "offset": None}),
    ):  # fmt: skip
        talk.ask(f"alter sink {step}", "PATCH", f"{one}/offsets", {"offsets": [wrong]})
    talk.ask("sink without offsets", "GET", f"{one}/offsets")
    talk.ask("reset sink", "DELETE", f"{one}/offsets")
    talk.ask("delete sink", "DELETE", one)


def failures(talk: Talk) -> None:
    one = f"/connectors/{FAILS}"
    talk.ask("create what fails", "POST", "/connectors", {"name": FAILS, "config": FAILING, "initial_state": "RUNNING"})
    talk.waits_for(FAILS, "RUNNING", ["FAILED"])
    talk.ask("failed", "GET", f"{one}/status")
    talk.ask("failed task", "GET", f"{one}/tasks/0/status")
    talk.ask("restart what failed", "POST", f"{one}/restart?includeTasks=true&onlyFailed=true")
    talk.ask("delete what fails", "DELETE", one)


def plugins(talk: Talk) -> None:
    talk.ask("plugin", "GET", "/connector-plugins/FileStreamSource/config")
    talk.ask("plugin by its name", "GET", "/connector-plugins/org.apache.kafka.connect.file.FileStreamSinkConnector/config")
    talk.ask("plugin that is not there", "GET", "/connector-plugins/Nope/config")
    talk.ask("plugin of another version", "GET", "/connector-plugins/FileStreamSink/config?version=0.0.9")


def loggers(talk: Talk) -> None:
    one = "/admin/loggers/a.logger"
    talk.ask("logger that is not there", "GET", one)
    talk.ask("level", "PUT", one, {"level": "DEBUG"})
    talk.ask("level in small letters", "PUT", one, {"level": "info"})
    talk.ask("logger", "GET", one)
    talk.ask("level that is none", "PUT", one, {"level": "x"})
    talk.ask("no level", "PUT", one, {})
    talk.ask("level of the cluster", "PUT", f"{one}?scope=cluster", {"level": "WARN"})
    talk.ask("level of the cluster that is none", "PUT", f"{one}?scope=cluster", {"level": "x"})
