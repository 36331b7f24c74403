"""`barnabas connect offsets`: show, set and reset the offsets of a connector."""

from __future__ import annotations

import json
from typing import Any

import click

from barnabas.cli.connect.rest import Rest, rest_options
from barnabas.cli.errors import BadInput
from barnabas.cli.output import Output, output_option
from barnabas.digits import INT32, INT64, is_number


@click.command()
@click.argument("name")
@click.option("--set", "changes", multiple=True, metavar="PLACE=OFFSET", help="TOPIC:PARTITION=NUMBER for a sink, two JSON objects for "
              'a source, as in {"filename":"/a"}={"position":0}; null removes one; repeatable.')  # fmt: skip
@click.option("--reset", "is_reset", is_flag=True, help="Remove all.")
@rest_options
@output_option
def offsets(rest: Rest, output: Output, name: str, changes: tuple[str, ...], is_reset: bool) -> None:
    """Show the offsets of a connector, or change those of a stopped one."""
    if changes and is_reset:
        raise BadInput("--set excludes --reset")
    if is_reset:
        output.done(f"reset the offsets of {name}", rest.ask("DELETE", "connectors", name, "offsets"))
        return
    if changes:
        body = {"offsets": [parse_change(each) for each in changes]}
        output.done(f"changed offsets of {name}", rest.ask("PATCH", "connectors", name, "offsets", body=body))
        return
    found = rest.get("connectors", name, "offsets")["offsets"]
    if output.as_json:
        output.json(found)
        return
    rows = [{key: _shown(each[key]) for key in ("partition", "offset")} for each in found]
    output.table(rows, {"partition": "PARTITION", "offset": "OFFSET"}, empty=f"{name} has no offsets")


def _shown(data: Any) -> str:
    if isinstance(data, dict) and set(data) == {"kafka_topic", "kafka_partition"}:
        return f"{data['kafka_topic']}:{data['kafka_partition']}"
    if isinstance(data, dict) and set(data) == {"kafka_offset"}:
        return str(data["kafka_offset"])
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def parse_change(text: str) -> dict[str, Any]:
    """One `--set`. Raises BadInput."""
    if not text.startswith("{"):
        place, _, offset = text.rpartition("=")
        topic, _, partition = place.rpartition(":")
        if not topic or not is_number(partition, INT32) or not (offset == "null" or is_number(offset, INT64)):
            raise BadInput(f"--set {text!r} is not TOPIC:PARTITION=NUMBER")
        value = None if offset == "null" else {"kafka_offset": int(offset)}
        return {"partition": {"kafka_topic": topic, "kafka_partition": int(partition)}, "offset": value}
    try:
        partition_of_source, end = json.JSONDecoder().raw_decode(text)
        if text[end : end + 1] != "=":
            raise ValueError
        offset_of_source = json.loads(text[end + 1 :])
    except ValueError:
        raise BadInput(f"--set {text!r} is not two JSON objects with = between them") from None
    if not isinstance(offset_of_source, dict | None):
        raise BadInput(f"--set {text!r}: the offset is a JSON object or null")
    return {"partition": partition_of_source, "offset": offset_of_source}
