"""All questions with all rights against one broker, and the recorded parts of the answers: error codes, names, and operations.

A table has the different answers to each question, and the answer that each right gets. Effects that a broker delays (the topic that a
Metadata request creates) are not compared.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.security.acls import Operation, PatternType, Permission, ResourceType
from tests.differential.plain import plain
from tests.differential.rights.place import Place
from tests.differential.rights.questions import Question, questions
from tests.differential.rights.rights import ALICE, bindings, rights
from tests.differential.wire import ConnectionEnded, Line

GOLDEN = Path(__file__).parent / "golden.json"
ANY = 1
MARKED = "User:marked"
WAIT_S = 30.0
SECURED = {"delegation.token.secret.key": "geheim"}  # for both brokers, in addition to the settings of the other scripts
KEPT = ("error", "operations", "name", "topic", "group_id", "transactional_id", "key", "user")
REFUSALS = {29, 30, 31, 53, 65}  # error codes whose messages are compared too
MADE_LATER = {0, 3, 5}  # error codes: the topic exists, does not exist yet, or has no leader yet
Table = dict[str, dict[str, Any]]
Connect = Callable[[], Line]


def walk(admin: Line, connect: Connect, node_id: int) -> Table:
    """Ask everything.

    Args:
        admin: the connection of somebody who may do everything.
        connect: makes a connection of alice's.
    """
    table: Table = {}
    line = connect()
    for number, (name, right) in enumerate(rights()):
        place = Place(f"right{number:02d}", node_id)
        place.prepare(admin)
        creations = bindings(place, right)
        if creations:
            ask(admin, CreateAclsRequest(creations=creations), 3)
        wait_for_acls(admin, ALICE, len(creations))
        settle(admin)
        for question in questions(place):
            if question.step.startswith("DescribeDelegationToken"):
                settle(admin)
            answer, line = _answer(question, line, connect, place)
            _note(table, question.step, name, answer)
        _forget(admin, ALICE)
    line.close()
    return table


def ask(line: Line, request: Any, version: int) -> Any:
    line.send(request, version, by_kio=False)
    return line.receive()


def _answer(question: Question, line: Line, connect: Connect, place: Place) -> tuple[Any, Line]:
    """The recorded part of the answer, and a connection for the next question."""
    try:
        answer = ask(line, question.request, question.version)
    except ConnectionEnded:
        line.close()
        return "<connection closed>", connect()
    if "that creates" in question.step:
        for topic in answer.topics:
            topic.error_code = 0 if topic.error_code in MADE_LATER else topic.error_code
            topic.partitions = []
    return reduced(plain(answer, question.version), place), line


def reduced(value: Any, place: Place, field: str = "") -> Any:
    """Of an answer what rights decide: None for the rest. Lists are put in order, for theirs is nobody's promise."""
    if isinstance(value, dict):
        if value.get("error_code", 0) not in REFUSALS:
            value = {name: each for name, each in value.items() if name != "error_message"}
        found = {name: reduced(each, place, name) for name, each in value.items()}
        return {name: each for name, each in found.items() if each is not None}
    if isinstance(value, list):
        parts = [reduced(each, place, field) for each in value if isinstance(each, dict)]
        return sorted((part for part in parts if _is_ours(part, place)), key=json.dumps)
    if not any(word in field for word in KEPT) or field in ("client_id", "hostname"):
        return None
    return place.word(value) if isinstance(value, str) else value


def _is_ours(part: dict[str, Any], place: Place) -> bool:
    """Whether a part of a list is about this right's place: a broker has topics and groups of others."""
    names = [each for key, each in part.items() if isinstance(each, str) and key in ("name", "group_id", "transactional_id")]
    return bool(part) and not any(name.startswith(("right", "__", "warm-up")) for name in names)


def _note(table: Table, step: str, right: str, answer: Any) -> None:
    row = table.setdefault(step, {"answers": [], "rights": {}})
    if answer not in row["answers"]:
        row["answers"].append(answer)
    row["rights"][right] = row["answers"].index(answer)


def wait_for_acls(admin: Line, principal: str, count: int) -> None:
    """Until the broker knows somebody's bindings."""
    request = DescribeAclsRequest(resource_type_filter=ANY, pattern_type_filter=ANY, **_of(principal))
    deadline = time.monotonic() + WAIT_S
    while sum(len(resource.acls) for resource in ask(admin, request, 3).resources) != count:
        assert time.monotonic() < deadline, f"waited in vain for {count} bindings of {principal}"


def settle(admin: Line) -> None:
    """Wait until every part of the broker knows the earlier changes.

    Kafka's broker and controller learn of changes one after the other, and so do the parts of each. When a first mark is visible, this
    makes a second one. When the second one is visible, all parts know everything before the first.
    """
    for number in range(2):
        mark = AclCreation(
            resource_type=ResourceType.TOPIC,
            resource_name=f"mark-{number}",
            resource_pattern_type=PatternType.LITERAL,
            principal=MARKED,
            host="*",
            operation=Operation.READ,
            permission_type=Permission.ALLOW,
        )
        ask(admin, CreateAclsRequest(creations=[mark]), 3)
        wait_for_acls(admin, MARKED, number + 1)
    _forget(admin, MARKED)


def _forget(admin: Line, principal: str) -> None:
    wanted = DeleteAclsFilter(resource_type_filter=ANY, pattern_type_filter=ANY, **_of(principal))
    ask(admin, DeleteAclsRequest(filters=[wanted]), 3)
    wait_for_acls(admin, principal, 0)


def _of(principal: str) -> dict[str, Any]:
    """The part of a filter that matches all bindings of a principal, without the resources."""
    return {
        "resource_name_filter": None,
        "principal_filter": principal,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }


def as_text(table: Table) -> str:
    """The table, a line for each answer and one for the rights that get it."""
    blocks = []
    for step, row in table.items():
        lines = []
        for number, answer in enumerate(row["answers"]):
            names = [name for name, given in row["rights"].items() if given == number]
            lines.append(f"  [{json.dumps(names)},\n   {json.dumps(answer)}]")
        blocks.append(f" {json.dumps(step)}: [\n" + ",\n".join(lines) + "\n ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def flat(table: Table) -> dict[tuple[str, str], Any]:
    """Question and right -> answer."""
    return {(step, name): row["answers"][number] for step, row in table.items() for name, number in row["rights"].items()}


def load() -> dict[tuple[str, str], Any]:
    """Kafka's recorded answers."""
    content = json.loads(GOLDEN.read_text())
    return {(step, name): answer for step, rows in content.items() for names, answer in rows for name in names}
