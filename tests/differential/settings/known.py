"""The intended differences, with their reasons; `docs/compatibility.md` shows this table (a test compares them)."""

from __future__ import annotations

from pathlib import Path

OURS = "Settings of barnabas. In Kafka they do not exist, or belong to a plug-in of its distribution."
AT_START = "Listeners are opened at the start. They cannot be changed while the broker runs, and are shown so."
NEEDS_NO_FILE = (
    "Kafka does not start without these in its file, so the recorded node has them. barnabas starts without them, and shows what "
    "applies if no value is given."
)
KNOWN: dict[tuple[str, str], str] = {
    **dict.fromkeys((("broker", "listeners"), ("broker", "listener.security.protocol.map")), AT_START),
    **{
        ("broker", key): NEEDS_NO_FILE
        for key in ("advertised.listeners", "controller.listener.names", "controller.quorum.voters", "process.roles")
    },
    **{
        ("broker", key): OURS
        for key in (
            "allow.everyone.if.no.acl.found",
            "audit.log.data.sample.rate",
            "audit.log.file",
            "audit.log.topic.enable",
            "confluent.schema.registry.url",
            "ssl.principal.groups.attribute",
            "super.users",
        )
    },
}

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
BEGIN, END = "<!-- settings begin -->\n", "<!-- settings end -->\n"


def table() -> str:
    """The differences as a Markdown table, one row for each reason."""
    rows: dict[str, list[str]] = {}
    for (resource, key), reason in KNOWN.items():
        rows.setdefault(reason, []).append(f"{resource}: `{key}`")
    return "| which key | why |\n|---|---|\n" + "".join(f"| {', '.join(keys)} | {reason} |\n" for reason, keys in rows.items())


def page_with(text: str) -> str:
    """`text`, a page, with the table as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after
