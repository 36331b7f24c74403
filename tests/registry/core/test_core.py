"""Identities, references, names and merging: what the interface's tables do not reach."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import limits
from barnabas.registry.core import names, records
from barnabas.registry.core.commands import Register, SetMode
from barnabas.registry.core.entities import Draft, merge_metadata, merge_rule_sets
from barnabas.registry.core.lookup import look_up
from barnabas.registry.core.registry import Registry
from barnabas.registry.formats.interface import Reference, SchemaFormat
from barnabas.registry.formats.table import format_of
from barnabas.web.routing import HttpError
from tests.registry.core.fake_format import AVRO, fake_format

RECORD = '{"type":"record","name":"myrecord","fields":[{"type":"string","default":null,"name":"f"}]}'
RULES = {"migrationRules": [{"kind": "TRANSFORM", "mode": "WRITEREAD"}]}


def write(registry: Registry, command: Any) -> Any:
    """Handle a command and replay its records."""
    outcome = registry.handle(command)
    for record in outcome.records:
        registry.replay(*records.encode(record), 1)
    return outcome.answer


@pytest.mark.parametrize(
    ("draft", "signed"),
    [
        (Draft(RECORD), [29, 32, -53, -71, -27, -29, 94, -105, 84, -25, -38, 23, 11, 110, 93, -37]),
        (
            Draft(RECORD, metadata={}, rule_set=RULES),
            [22, -15, -20, -91, -21, -7, 34, -77, -38, -128, 33, 47, -113, -89, 52, 46],
        ),
    ],
)
def test_identities_are_those_of_confluents_registry(draft: Draft, signed: list[int]) -> None:
    assert draft.identity == bytes(each % 256 for each in signed)


@pytest.mark.parametrize(
    "other", [{"references": (Reference("r", "s", 1),)}, {"metadata": {}}, {"rule_set": {}}, {"schema": "{}"}]
)
def test_every_part_counts_for_the_identity(other: dict[str, Any]) -> None:
    assert Draft(**{"schema": RECORD, **other}).identity != Draft(RECORD).identity


@pytest.mark.parametrize(
    ("text", "name", "qualified"),
    [
        ("s", (".", "s"), "s"),
        (":.:s", (".", "s"), "s"),
        (":.c:s", (".c", "s"), ":.c:s"),
        (":.c:", (".c", ""), ":.c:"),
        (":.c", (".c", ""), ":.c:"),
        (":.c:a:b", (".c", "a:b"), ":.c:a:b"),
        (":*:s", ("*", "s"), ":*:s"),
        ("a:.b:c", (".", "a:.b:c"), "a:.b:c"),
    ],
)
def test_names(text: str, name: tuple[str, str], qualified: str) -> None:
    assert names.parse(text) == name
    assert names.normalize(text) == qualified
    assert names.context_of(text) == name[0]


@pytest.mark.parametrize(("text", "prefix"), [("c", ":.c:"), (".c", ":.c:"), (":.c:", ":.c:"), (".", ""), ("", "")])
def test_contexts_of_a_path(text: str, prefix: str) -> None:
    assert names.context_prefix(text) == prefix


def test_references_come_in_the_order_in_which_they_are_needed() -> None:
    registry = Registry(fake_format)
    for number in range(3):
        references = (Reference(f"r{number - 1}", f"s{number - 1}", 1),) if number else ()
        write(registry, Register(f"s{number}", Draft(f'{{"a{number}":"int"}}', references=references)))
    write(registry, Register("top", Draft('{"top":"int"}', references=(Reference("r2", "s2", 1), Reference("r0", "s0", 1)))))
    assert list(AVRO.parsed[-1][1]) == ["r0", "r1", "r2"]
    assert registry.state.users("s0", 1) == [2, 4]


def test_a_reference_stays_in_its_context() -> None:
    registry = Registry(fake_format)
    write(registry, Register(":.c:base", Draft('{"a":"int"}')))
    write(registry, Register(":.c:s", Draft('{"b":"int"}', references=(Reference("r", "base", 1),))))
    with pytest.raises(HttpError, match="base"):
        registry.handle(Register("s", Draft('{"b":"int"}', references=(Reference("r", "base", 1),))))
    write(registry, Register("s", Draft('{"b":"int"}', references=(Reference("r", ":.c:base", 1),))))
    assert registry.state.users(":.c:base", 1) == [1, 2]


def chain(registry: Registry, length: int) -> tuple[Reference, ...]:
    """Schemas that refer to each other in a row, imported without a check."""
    references: tuple[Reference, ...] = ()
    for number in range(length):
        draft = Draft('{"a":"int"}', references=references)
        version = {"subject": f"c{number}", "version": 1, "id": number + 1, "schema": draft.schema}
        value = version | {"references": [each._asdict() for each in references]}
        registry.replay(*records.encode(records.Record(records.schema_key(f"c{number}", 1), value)), 1)
        references = (Reference(f"r{number}", f"c{number}", 1),)
    return references


def test_long_rows_of_references_end() -> None:
    registry = Registry(fake_format)
    assert write(registry, Register("s", Draft('{"z":"int"}', references=chain(registry, 900))))["version"] == 1
    registry = Registry(fake_format)
    references = chain(registry, limits.MAX_SCHEMA_REFERENCES + 1)
    with pytest.raises(HttpError, match="More than"):
        registry.handle(Register("s", Draft('{"z":"int"}', references=references)))


def test_cycles_of_references_end() -> None:
    registry = Registry(fake_format)
    for here, there in (("a", "b"), ("b", "a")):
        value = {
            "subject": here,
            "version": 1,
            "id": ord(here),
            "schema": "{}",
            "references": [{"name": there, "subject": there, "version": 1}],
        }
        registry.replay(*records.encode(records.Record(records.schema_key(here, 1), value)), 1)
    with pytest.raises(HttpError, match="lead back"):
        registry.handle(Register("s", Draft('{"z":"int"}', references=(Reference("a", "a", 1),))))


def test_a_large_schema_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(HttpError) as refused:
        Registry(fake_format).handle(Register("s", Draft(" " * limits.MAX_SCHEMA_CHARACTERS + '{"a":"int"}')))
    assert refused.value.code == 42209


def test_importing_removes_what_was_deleted() -> None:
    registry = Registry(fake_format)
    write(registry, Register("s", Draft('{"a":"int"}')))
    registry.replay(*records.encode(records.delete_subject_record("s", 1)), 1)
    assert registry.state.has("s", deleted=True)
    write(registry, SetMode("s", "import"))
    assert not registry.state.has("s", deleted=True)
    assert registry.state.mode("s") == "IMPORT"


def test_records_that_are_not_the_registrys_change_nothing() -> None:
    registry = Registry(fake_format)
    for key in (
        b'{"keytype":"OTHER","magic":9}',
        b'{"keytype":"NOOP","magic":0}',
        b'{"keytype":"SCHEMA","subject":"s","version":4,"magic":1}',
    ):
        registry.replay(key, None)
    assert not registry.state.subjects


def test_merging() -> None:
    old = {"tags": {"a": ["x"]}, "properties": {"p": "1", "q": "1"}}
    new = {"tags": {"a": ["y"]}, "properties": {"p": "2"}, "sensitive": ["p"]}
    assert merge_metadata(old, new) == {"tags": {"a": ["y"]}, "properties": {"p": "2", "q": "1"}, "sensitive": ["p"]}
    first, second, third = {"name": "1", "doc": "old"}, {"name": "2"}, {"name": "1", "doc": "new"}
    merged = merge_rule_sets({"domainRules": [first, second]}, {"domainRules": [third]})
    assert merged == {"domainRules": [second, third]}


def test_an_unknown_format() -> None:
    with pytest.raises(ValueError, match="Invalid schema type XML"):
        format_of("XML")


def test_a_registered_schema_is_found_without_parsing_it_again() -> None:
    parsed: list[str] = []

    def counting(schema_type: str) -> SchemaFormat:
        parsed.append(schema_type)
        return format_of(schema_type)

    registry = Registry(counting)
    spaced = Draft('{ "type" : "string" }')
    with_metadata = Draft(spaced.schema, metadata={"properties": {"a": "b"}})
    registered = write(registry, Register("s", spaced))

    def guid_of(subject: str, draft: Draft) -> str | None:
        found = look_up(registry.state, registry.parser, subject, draft, normalize=False, deleted=False)
        return None if found is None else found.guid

    parsed.clear()
    assert guid_of("s", spaced) == registered["guid"]
    assert parsed == []
    assert guid_of("another", spaced) is None
    assert guid_of("s", with_metadata) is None


def test_few_identities_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KEPT_IDENTITIES", 2)
    parser = Registry().parser
    drafts = [Draft(f'"{number}"') for number in range(3)]
    for draft in drafts:
        parser.keep_identity(draft, draft.identity)
    assert [parser.identity(draft) for draft in drafts] == [None, drafts[1].identity, drafts[2].identity]
