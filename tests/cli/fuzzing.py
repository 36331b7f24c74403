"""Odd values for every option and argument of every command, and the form that every ending must have."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import click

from barnabas.cli import main
from barnabas.cli.lazy import LazyGroup
from barnabas.cli.reference import walk
from tests.cli.conftest import Ended

LEAVES = [(name, command) for name, command in walk(main.cli, "barnabas") if not isinstance(command, LazyGroup)]
ODD = (
    "", " ", "\udcff", "a\udcffb", "x" * 40_000, "9" * 30, "9" * 5_000, "-1", "-" + "9" * 30, "-99999999999w", "0", "nan", "inf", "-inf",
    "1e400", "1e-400", "1.5", "0x10", "1_000", "²", "١٢", "\x01\x1b[31m", "a\nb", "\t", "\u2028", "ü", "😀", "0001-01-01",
    "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "@99999999999999999999", "P999999999999999999999W", '{"a": [1', "[[[",
    "${env:HOME}", "%k%", "%", "a=b=c", "=", "a=", ",", ":", "a:b:c", "t:-1", "t:99999999999", "..", "/dev/null/x",
    "zookeeper://", "zookeeper://a:b/c", "[::1", "host:²", "host:99999", "User:", "True", "null", "*", "(", "a{99999999999}",
    "topic", "200000",
)  # fmt: skip
# Values for the arguments that a case does not try.
FILLERS = {
    "name": "name", "names": "name", "topic": "fuzzed", "topics": "fuzzed", "pairs": "producer_byte_rate=1000000000", "kind": "topic",
    "shell": "bash", "members": "User:a", "broker_id": "1", "folder": "missing", "target": "missing", "paths": ".", "data_dirs": ".",
    "subject": "fuzzed", "file": "rows.csv", "files": "rows.csv", "letters": "0:1", "worker": "worker.properties",
}  # fmt: skip
REQUIRED = {
    "principals": ("--principal", "User:a"), "principal": ("--principal", "User:a"), "operation": ("--operation", "read"),
    "data_dir": ("--data-dir", "."), "data_dirs": ("--data-dir", "."),
    "metadata": ("--metadata", "zookeeper://127.0.0.1:1/x"), "folder": ("--out", "out"),
    "topics": ("--topic", "fuzzed"), "source": ("--source", "127.0.0.1:1"),
}  # fmt: skip
# The command refuses this setting last, so it does not start anything.
REFUSED = {
    "barnabas start": ("--config", "num.partitions=x"),
    "barnabas broker start": ("--config", "num.partitions=x", "--data-dir", "missing"),
    "barnabas cluster start": ("--config", "num.partitions"),
}
# Parameters that a command needs in addition to the required ones.
ALSO = {
    "barnabas acl add": ("--topic", "fuzzed"), "barnabas acl remove": ("--topic", "fuzzed"), "barnabas acl test": ("--cluster",),
    "barnabas role create": ("--topic", "fuzzed"), "barnabas topic alter": ("--set", "retention.ms=1"),
    "barnabas bench": ("--records=1", "--skip-latency"), "barnabas config alter": ("--set", "retention.ms=1"),
    "barnabas quota set": ("--default", "user"),
    "barnabas group reset-offsets": ("--to-earliest", "--topic", "fuzzed"),
    "barnabas registry start": ("-X", "kafkastore.init.timeout.ms=300", "--listener=http://127.0.0.1:0"),
    "barnabas services start": (
        "-X", "kafkastore.init.timeout.ms=300", "--postgres-listener=127.0.0.1:0",
        *(f"--{name}-listener=http://127.0.0.1:0" for name in ("registry", "sql", "engine", "connect")),
    ),
    "barnabas sql start": ("-X", "kafkastore.init.timeout.ms=300", "--postgres=127.0.0.1:0", "--listener=http://127.0.0.1:0"),
    "barnabas dlq purge": ("--yes",),
    "barnabas connect start": ("-X", "kafkastore.init.timeout.ms=300", "--listener=http://127.0.0.1:0"),
    "barnabas connect standalone": ("-X", "kafkastore.init.timeout.ms=300", "--listener=http://127.0.0.1:0"),
    "barnabas engine start": ("-X", "kafkastore.init.timeout.ms=300", "--listener=http://127.0.0.1:0"),
    "barnabas mirror promote": ("--all",), "barnabas mirror failback": ("--all",),
    "barnabas quota remove": ("--default", "user"), "barnabas quota describe": ("--default", "user"),
}  # fmt: skip
# At a broker these run until they are stopped, if nothing is wrong.
SERVICES = frozenset(f"barnabas {name} start" for name in ("connect", "engine", "registry", "services", "sql"))
ANOTHER_FAULT = (  # errors that a command may find before the odd value
    "num.partitions", "spark-pipeline.yml", "nothing is overwritten", "exclude each other", "there is no user name", "there is a user name",
    "is neither a data folder", "there already", "an authority already", "unexpected extra argument",
    "go together", "cannot be inferred", "give a transactional id", "SUBJECT or --id", "give FILE or --from",
    "does not exist", "there is no topic", "there is no job", "There is no mirror link", "there is no mirror link",
    "name topics, or give --all", "another program has this port",
)  # fmt: skip


class Case(NamedTuple):
    """One command line and what is odd about it."""

    arguments: tuple[str, ...]
    names: tuple[str, ...]  # the error line must have one of these
    value: str

    def __repr__(self) -> str:
        return f"{' '.join(each[:40] for each in self.arguments)!r} with {self.value[:40]!r}"


def cases(seed: int, share: float, left_out: AbstractSet[str] = frozenset()) -> Iterator[Case]:
    """`share` of all combinations of a parameter and an odd value, in an order that the seed says, without the commands `left_out`."""
    every = [(name, command, parameter, value) for name, command in LEAVES for parameter in command.params for value in ODD]
    every = [each for each in every if not getattr(each[2], "is_flag", False)]
    chooser = random.Random(seed)
    chooser.shuffle(every)
    for name, command, parameter, value in every[: int(len(every) * share)]:
        if name in left_out:
            continue
        yield case_of(name, command, parameter, value)


def cases_of(name: str, seed: int, count: int) -> Iterator[Case]:
    """Some cases of one command, which the seed chooses."""
    (command,) = (command for each, command in LEAVES if each == name)
    parameters = [each for each in command.params if not getattr(each, "is_flag", False)]
    chooser = random.Random(f"{name} {seed}")
    for _ in range(count):
        yield case_of(name, command, chooser.choice(parameters), chooser.choice(ODD))


def case_of(name: str, command: click.Command, odd: click.Parameter | None = None, value: str = "") -> Case:
    """The command with what it requires, and one parameter of this value."""
    options: list[str] = [*REFUSED.get(name, ()), *ALSO.get(name, ())]
    arguments: list[str] = []
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            if parameter is odd:
                arguments.append(value)
            elif parameter.required:
                arguments.append(FILLERS[parameter.name or ""])
        elif parameter is odd:
            options.append(f"{parameter.opts[-1]}={value}" if parameter.opts[-1].startswith("--") else parameter.opts[-1] + value)
        elif parameter.required:
            options += REQUIRED[parameter.name or ""]
    if (odd is None or odd.name != "timeout") and any(
        each.opts == ["--timeout"] and each.name == "timeout" for each in command.params
    ):
        options.append("--timeout=0.3")
    return Case((*name.split()[1:], *options, "--", *arguments), _names(command, odd), value)


def _names(command: click.Command, odd: click.Parameter | None) -> tuple[str, ...]:
    """The names of the parameter that a line may use."""
    if not isinstance(odd, click.Argument):
        return () if odd is None else tuple(odd.opts)
    return (odd.make_metavar(click.Context(command)).strip("[]."),)


def complaints(case: Case, ended: Ended) -> list[str]:
    """The faults of an ending."""
    found = []
    lines = ended.err.splitlines()
    if ended.code not in {0, 1, 2}:
        found.append(f"exit code {ended.code}")
    if "Traceback" in ended.err or main.TRACEBACK_VARIABLE in ended.err:
        found.append("an error that no command foresaw")
    if ended.code == 2 and case.value.strip():
        if ended.err.count("\n") != 1:
            found.append(f"{len(lines)} lines")
        named = {*case.names, *re.findall(r"\w+", case.value), repr(case.value)[1:-1][:9], case.value[:9], *ANOTHER_FAULT}
        if not any(name in ended.err for name in named):
            found.append("the option is not named")
    return found
