"""The shell on a terminal: reads statements of several lines with colours, completion and history."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from barnabas import __version__
from barnabas.cli.sql.backslash import run_command
from barnabas.cli.sql.colours import STYLE, SqlLexer
from barnabas.cli.sql.pager import Paged, Sink, StandardOutput, pager_command
from barnabas.cli.sql.reports import report
from barnabas.cli.sql.scanner import Splitter
from barnabas.cli.sql.session_maker import SessionMaker, close_all, write_error
from barnabas.cli.sql.shell import Failed, Options, Shell, interrupted
from barnabas.cli.sql.statement_thread import ctrl_c_calls
from barnabas.cli.sql.suggestions import Suggestions
from barnabas.cli.sql.table_names import TableNames
from barnabas.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.sql.interface import Session

NAME = "barnabas"
HISTORY = "sql_history"
GREETING = f"barnabas {__version__}. Statements end with ;  \\? lists commands, \\q leaves."
_TRANSACTION = {"I": "", "T": "*", "E": "!"}


def state_folder() -> Path:
    """Where programs keep the history of a user."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / NAME


def open_history() -> History:
    """The history file, which only its user can read; without a place for it, the history of this session alone."""
    path = state_folder() / HISTORY
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def terminal_sink() -> Sink:
    """Where one result goes: the terminal, with a pager if it is long."""
    if not sys.stdout.isatty():
        return StandardOutput()
    return Paged(pager_command(), shutil.get_terminal_size())


class Prompt:
    """Reads and runs input until the user leaves.

    Args:
        open_session: called with the first statement, and once for completion.
        keywords: for PromptSession, such as `input` and `output`.
    """

    def __init__(self, open_session: Callable[[], Session], options: Options, history: History, **keywords: Any) -> None:
        self.shell = Shell(open_session, write_error, run_command, options, typed=True, terminal=terminal_sink)
        self.names = TableNames(open_session)
        self._draft = ""
        self._session: PromptSession[str] = PromptSession(
            self._message, lexer=SqlLexer(), completer=ThreadedCompleter(Suggestions(self.names)), complete_while_typing=True,
            history=history, multiline=True, prompt_continuation=self._continuation, key_bindings=self._keys(), style=STYLE,
            enable_open_in_editor=True, tempfile_suffix=".sql", **keywords,
        )  # fmt: skip

    def _message(self) -> StyleAndTextTuples:
        return _prompt(self.shell.splitter.mark, self.shell.state)

    def _continuation(self, _width: int, line: int, _wrapped: int) -> StyleAndTextTuples:
        """The prompt of a further line, by what its text before is within."""
        before = "\n".join(get_app().current_buffer.document.lines[:line])
        splitter = Splitter()
        with contextlib.suppress(ValueError):
            list(splitter.feed(before + "\n"))
        mark = splitter.mark
        return _prompt("-" if mark == "=" else mark, self.shell.state)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @Condition
        def is_complete() -> bool:
            text = get_app().current_buffer.text
            return _spoken(text) != text or self.shell.splitter.would_complete(text)

        @keys.add("enter", filter=has_focus(DEFAULT_BUFFER) & is_complete)
        def accept(event: KeyPressEvent) -> None:
            event.current_buffer.validate_and_handle()

        return keys

    def run(self) -> None:
        """Until Ctrl-D or \\q."""
        while not self.shell.has_ended:
            try:
                draft, self._draft = self._draft, ""
                text = self._session.prompt(default=draft)
            except KeyboardInterrupt:
                self.shell.splitter.reset()
                continue
            except EOFError:
                return
            self._run(text)

    def _run(self, text: str) -> None:
        changes = self.shell.changes
        if text.strip().rstrip(";") in ("\\e", "\\edit"):
            self._edit()
            return
        try:
            with ctrl_c_calls(self.shell.interrupt):
                self.shell.run_text(_spoken(text) + "\n")
        except Failed:
            pass
        except KeyboardInterrupt:  # between two statements
            self.shell.splitter.reset()
            write_error(report(interrupted(), ""))
        if self.shell.changes != changes:
            self.names.forget()

    def _edit(self) -> None:
        """The next prompt begins with the text of the editor."""
        try:
            last = f"{self.shell.last};" if self.shell.last else ""
            edited = click.edit(self.shell.splitter.pending or last, extension=".sql")
        except click.ClickException as error:
            write_error(f"ERROR:  {error.format_message()}\n")
            return
        self.shell.splitter.reset()
        self._draft = (edited or "").strip()


def _spoken(text: str) -> str:
    """The command of a word that needs no backslash; other text as it is."""
    return {"exit": "\\q", "quit": "\\q", "help": "\\?"}.get(text.strip().lower().rstrip(";"), text)


def _prompt(mark: str, state: str) -> StyleAndTextTuples:
    style = "class:prompt.failed" if state == "E" else "class:prompt.open" if state == "T" else ""
    return [(style, f"{NAME}{mark}{_TRANSACTION.get(state, '')}> ")]


def run_prompt(maker: SessionMaker, options: Options, output: str | None) -> int:
    """The shell of a terminal; the engine is loaded while the user types."""
    loading = threading.Thread(target=_load, args=(maker,), name="sql-loading", daemon=True)
    loading.start()
    prompt = Prompt(maker, options, open_history())
    click.echo(GREETING)
    try:
        if output is not None:
            prompt.shell.redirect(output)
        prompt.run()
    except Failed:
        return 1
    finally:
        prompt.names.close()
        close_all(prompt.shell, maker)
    return 0


def _load(maker: SessionMaker) -> None:
    with contextlib.suppress(BarnabasError, ImportError):  # the first statement meets the error again
        maker.load()
