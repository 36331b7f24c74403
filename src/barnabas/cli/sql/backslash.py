"""The commands that begin with a backslash, as psql has them."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.errors import BadInput
from barnabas.cli.sql.help_texts import COMMANDS_TEXT, LACKING, help_of
from barnabas.cli.sql.pager import FileOutput
from barnabas.cli.sql.printers import FORMATS, Style, names
from barnabas.cli.sql.scanner import Command
from barnabas.cli.sql.variables import checked_name, filled

if TYPE_CHECKING:
    from barnabas.cli.sql.shell import Shell

MOST_NESTED = 16  # files that \i reads inside of each other


class _Action(NamedTuple):
    """The work of a command, and how many arguments it takes."""

    run: Callable[[Shell, list[str]], None]
    least: int = 0
    most: int = 1


def run_command(shell: Shell, command: Command) -> None:
    """Run one command. Raises Failed."""
    if command.name == "copy":
        _copy(shell, filled(command.rest, shell.options.variables))
        return
    action = _ACTIONS.get(command.name.removesuffix("+") if command.name not in _ACTIONS else command.name)
    if action is None:
        shell.complain(_lacking(command.name))
        return
    try:
        arguments = [filled(each, shell.options.variables) for each in shlex.split(command.rest)]
    except ValueError as error:
        shell.complain(f"\\{command.name}: {error}")
        return
    if not action.least <= len(arguments) <= action.most:
        shell.complain(f"\\{command.name}: wrong number of arguments", hint="\\? lists the commands")
    action.run(shell, arguments)


def _lacking(name: str) -> str:
    known = LACKING.get(name.removesuffix("+"))
    if known is not None:
        return f"\\{name} is not supported: {known}"
    return f"invalid command \\{name}; \\? lists the commands"


def _quit(shell: Shell, _: list[str]) -> None:
    shell.has_ended = True


def _describe(shell: Shell, arguments: list[str]) -> None:
    if arguments:
        shell.run_statement(f"DESCRIBE {quoted(arguments[0].rstrip(';'))}")
    else:
        shell.run_statement("SHOW TABLES")


def quoted(name: str) -> str:
    """A name with dots as SQL, in quotes where it needs them."""
    if '"' in name or "`" in name:
        return name
    return ".".join(part if part.isidentifier() and part.islower() else f'"{part}"' for part in name.split("."))


def _statement(text: str) -> Callable[[Shell, list[str]], None]:
    return lambda shell, _: shell.run_statement(text)


def _switch(shell: Shell, what: str, is_on: bool, arguments: list[str]) -> bool:
    """A value that on, off or nothing gives."""
    word = arguments[0].lower() if arguments else ""
    if word not in ("", "on", "off"):
        shell.complain(f"{what} can be on or off")
    is_on = word == "on" if word else not is_on
    shell.note(f"{what} is {'on' if is_on else 'off'}.")
    return is_on


def _expanded(shell: Shell, arguments: list[str]) -> None:
    shell.options.expanded = _switch(shell, "Expanded display", shell.options.expanded, arguments)


def _timing(shell: Shell, arguments: list[str]) -> None:
    shell.options.timing = _switch(shell, "Timing", shell.options.timing, arguments)


def _tuples_only(shell: Shell, arguments: list[str]) -> None:
    shell.options.style.header = not _switch(shell, "Tuples only", not shell.options.style.header, arguments)


def _pset(shell: Shell, arguments: list[str]) -> None:
    style = shell.options.style
    if not arguments:
        shell.note(f"format   {style.format}\nnull     {style.null!r}\nexpanded {'on' if shell.options.expanded else 'off'}")
        return
    name, value = arguments[0], (arguments[1:] or [""])[0]
    if name == "format":
        value = {"aligned": "table"}.get(value, value)
        if value not in FORMATS:
            shell.complain(f"the format can be {names(FORMATS)}")
        style.format = value
    elif name == "null":
        style.null = value
    elif name in ("expanded", "x"):
        _expanded(shell, arguments[1:])
    elif name in ("tuples_only", "t"):
        _tuples_only(shell, arguments[1:])
    else:
        shell.complain(f"\\pset has no {name}; there are format, null, expanded and tuples_only")


def _output(shell: Shell, arguments: list[str]) -> None:
    shell.redirect(arguments[0] if arguments else None)


def _include(shell: Shell, arguments: list[str]) -> None:
    path = os.path.expanduser(arguments[0])
    if shell.depth >= MOST_NESTED:
        shell.complain(f"\\i {arguments[0]}: more than {MOST_NESTED} files inside of each other")
    shell.depth += 1
    try:
        with open(path, encoding="utf-8") as file:
            shell.run_lines(file, arguments[0])
    except (OSError, UnicodeDecodeError) as error:
        shell.complain(f"{arguments[0]}: {getattr(error, 'strerror', None) or 'it is not UTF-8'}")
    finally:
        shell.depth -= 1


def _pending(shell: Shell) -> str:
    """The statement that is typed, or the last one."""
    taken = shell.splitter.take()
    text = taken.text if taken is not None else shell.last
    if not text:
        shell.complain("there is no statement")
    shell.last = text
    return text


def _go(shell: Shell, arguments: list[str]) -> None:
    text = _pending(shell)
    _run_into(shell, text, arguments)


def _go_expanded(shell: Shell, arguments: list[str]) -> None:
    style = shell.options.style
    _run_into(shell, _pending(shell), arguments, Style("vertical", style.header, style.null))


def _run_into(shell: Shell, text: str, arguments: list[str], style: Style | None = None) -> None:
    if not arguments:
        shell.run_statement(text, style=style)
        return
    try:
        file = FileOutput(arguments[0])
    except OSError as error:
        shell.complain(f"{arguments[0]}: {error.strerror}")
        return
    try:
        shell.run_statement(text, sink=file, style=style)
    finally:
        file.finish()


def _watch(shell: Shell, arguments: list[str]) -> None:
    try:
        seconds = float(arguments[0]) if arguments else 2.0
    except ValueError:
        seconds = -1
    if not 0.1 <= seconds <= 86_400:
        shell.complain("\\watch takes a number of seconds")
    text = _pending(shell)
    try:
        while True:
            shell.show(f"{time.strftime('%H:%M:%S')} (every {seconds:g}s)\n")
            shell.run_statement(text)
            time.sleep(seconds)
    except KeyboardInterrupt:
        if not shell.is_typed:
            raise


def _edit(shell: Shell, arguments: list[str]) -> None:
    shell.complain("\\e needs a terminal")


def _print_pending(shell: Shell, _: list[str]) -> None:
    shell.show(shell.splitter.pending or shell.last or "Query buffer is empty.")


def _reset(shell: Shell, _: list[str]) -> None:
    shell.splitter.reset()
    if shell.is_typed:
        shell.note("Query buffer reset (cleared).")


def _echo(shell: Shell, arguments: list[str]) -> None:
    shell.show(" ".join(arguments))


def _set(shell: Shell, arguments: list[str]) -> None:
    if not arguments:
        for name, value in sorted(shell.options.variables.items()):
            shell.show(f"{name} = {value!r}")
        return
    try:
        shell.options.variables[checked_name(arguments[0])] = "".join(arguments[1:])
    except BadInput as error:
        shell.complain(error.message)


def _unset(shell: Shell, arguments: list[str]) -> None:
    shell.options.variables.pop(arguments[0], None)


def _help(shell: Shell, _: list[str]) -> None:
    shell.show(COMMANDS_TEXT)


def _syntax(shell: Shell, arguments: list[str]) -> None:
    found = help_of(" ".join(arguments))
    if found is None:
        shell.complain(f"no help for {' '.join(arguments)}; \\h alone lists the statements")
    else:
        shell.show(found)


def _copy(shell: Shell, rest: str) -> None:
    """\\copy TABLE FROM 'FILE' [options] or \\copy (QUERY) TO 'FILE' [options]: COPY with a file of this machine."""
    from barnabas.cli.sql.copying import parse_copy

    parsed = parse_copy(rest)
    if parsed is None:
        shell.complain("\\copy needs TABLE FROM 'FILE' or TABLE | (QUERY) TO 'FILE'")
        return
    try:
        if parsed.is_from:
            with open(os.path.expanduser(parsed.path), "rb") as file:
                shell.run_statement(parsed.statement, data=_chunks(file.read))
        else:
            into = FileOutput(parsed.path)
            try:
                shell.run_statement(parsed.statement, sink=into)
            finally:
                into.finish()
    except OSError as error:
        shell.complain(f"{parsed.path}: {error.strerror}")


def _chunks(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while data := read(1 << 18):
        yield data


_ACTIONS = {
    "q": _Action(_quit, most=0), "d": _Action(_describe), "dt": _Action(_statement("SHOW TABLES"), most=0),
    "df": _Action(_statement("SHOW FUNCTIONS"), most=0), "dn": _Action(_statement("SHOW SCHEMAS"), most=0),
    "l": _Action(_statement("SHOW DATABASES"), most=0),
    "x": _Action(_expanded), "timing": _Action(_timing), "t": _Action(_tuples_only), "pset": _Action(_pset, most=2),
    "o": _Action(_output), "i": _Action(_include, 1), "g": _Action(_go), "gx": _Action(_go_expanded), "watch": _Action(_watch),
    "e": _Action(_edit), "p": _Action(_print_pending, most=0), "r": _Action(_reset, most=0), "echo": _Action(_echo, most=1_000),
    "set": _Action(_set, most=1_000), "unset": _Action(_unset, 1), "?": _Action(_help), "h": _Action(_syntax, most=10),
}  # fmt: skip


def command_names() -> list[str]:
    """The names of all commands."""
    return sorted([*_ACTIONS, "copy"])
