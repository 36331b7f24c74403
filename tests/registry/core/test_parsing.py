"""The parsed schemas that are kept: how many, and how long their texts may be."""

from __future__ import annotations

import pytest

from barnabas import limits
from barnabas.registry.core.entities import Draft
from barnabas.registry.core.parsing import Parser
from barnabas.registry.core.state import State
from barnabas.registry.formats.interface import ParsedSchema
from barnabas.registry.formats.table import format_of


def avro(name: str, length: int) -> Draft:
    text = f'{{"type":"record","name":"{name}","doc":"","fields":[]}}'
    return Draft(text.replace('"doc":""', f'"doc":"{"x" * (length - len(text))}"'), "AVRO", (), None, None)


def parsed(parser: Parser, draft: Draft) -> ParsedSchema:
    return parser.parse("s", draft)


def test_a_long_schema_is_parsed_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KEPT_CHARACTERS", 500)
    parser = Parser(State(), format_of)
    kept, longer = avro("a", 500), avro("b", 501)
    assert parsed(parser, kept) is parsed(parser, kept)
    assert parsed(parser, longer) is not parsed(parser, longer)


def test_the_texts_of_all_kept_schemas_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PARSED_CHARACTERS", 1_000)
    parser = Parser(State(), format_of)
    drafts = [avro(name, 400) for name in "abc"]
    first, second, third = (parsed(parser, draft) for draft in drafts)
    assert parsed(parser, drafts[2]) is third
    assert parsed(parser, drafts[1]) is second
    assert parsed(parser, drafts[0]) is not first, "the one that was used least recently is forgotten"
