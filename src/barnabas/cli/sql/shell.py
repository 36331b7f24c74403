"""The shell without its terminal: runs statements and commands, and prints what they give.

Rules
  1. Results go to the output; errors and notes go to standard error.
  2. Input that is not typed stops at the first error. Typed input goes on.
  3. A result is printed batch by batch; nothing holds all of it.
  4. Ctrl-C ends a typed statement and not the shell.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from barnabas.cli.sql.cells import Schema
from barnabas.cli.sql.pager import FileOutput, OutputClosed, Sink, StandardOutput
from barnabas.cli.sql.printers import Printer, Style, printer_for
from barnabas.cli.sql.reports import report, visible
from barnabas.cli.sql.scanner import Command, Item, Splitter, TooLong
from barnabas.cli.sql.statement_thread import Work
from barnabas.cli.sql.variables import filled
from barnabas.errors import BarnabasError
from barnabas.sql import zones
from barnabas.sql.interface import Notice, Notifies, SqlError

if TYPE_CHECKING:
    from barnabas.sql.interface import Session

COPY_END = "\\."


class Answer(Struct):
    """The start of a statement's outcome."""

    schema: Schema | None
    tag: Callable[[], str]
    zone: tzinfo = UTC  # of timestamps
    is_live: bool = False  # see `interface.Result`


class CopyOut(Struct):
    """A piece of the data of a COPY to the client."""

    data: bytes


class Options(Struct):
    """The options that a user can change."""

    style: Style = field(default_factory=Style)
    timing: bool = False
    expanded: bool = False
    variables: dict[str, str] = field(default_factory=dict)


class Failed(Exception):
    """A statement or a command has failed; the error was printed."""


class Shell:
    """Runs input in one session.

    Args:
        open_session: called with the first statement, in its thread, and after a session was given up.
        write_error: takes text for standard error.
        run_command: runs a command with a backslash.
        typed: whether a person types the input.
        terminal: makes the sink for one result, where no file takes it.
    """

    def __init__(
        self,
        open_session: Callable[[], Session],
        write_error: Callable[[str], None],
        run_command: Callable[[Shell, Command], None],
        options: Options | None = None,
        *,
        typed: bool = False,
        terminal: Callable[[], Sink] = StandardOutput,
    ) -> None:
        self._open_session, self._write_error, self._run_command = open_session, write_error, run_command
        self.options = options or Options()
        self.is_typed, self._terminal = typed, terminal
        self.session: Session | None = None
        self.splitter = Splitter()
        self._work: Work | None = None
        self.file: FileOutput | None = None
        self.last = ""
        self.has_ended = False
        self.lines: Iterator[str] | None = None
        self.source = ""
        self.depth = 0  # of files inside of each other
        self.changes = 0  # grows when a statement may have changed the tables

    @property
    def state(self) -> str:
        """`I`, `T` or `E`, of the session's transaction."""
        return self.session.state if self.session is not None else "I"

    def run_lines(self, lines: Iterable[str], source: str = "") -> None:
        """Run all statements of the lines. Raises Failed at the first that fails.

        Args:
            source: the name of their file, for errors.
        """
        before = self.lines, self.source, self.splitter
        self.lines, self.source, self.splitter = iter(lines), source, Splitter()
        try:
            for line in self.lines:
                self.run_text(line if line.endswith("\n") else line + "\n")
                if self.has_ended:
                    return
            rest = self.splitter.take()
            if rest is not None:
                self._guarded(lambda: self.run_item(rest))
        finally:
            self.lines, self.source, self.splitter = before

    def run_text(self, text: str) -> None:
        """Run what the next lines complete. Raises Failed."""
        try:
            for item in self.splitter.feed(text):
                self._guarded(lambda item=item: self.run_item(item))  # type: ignore[misc]  # mypy does not infer this lambda
                if self.has_ended:
                    return
        except TooLong as error:
            self.complain(str(error))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Failed:
            self.splitter.reset()
            raise

    def complain(self, message: str, *, hint: str = "") -> None:
        """Print an error of the shell itself, and raise Failed."""
        self._write_error(f"ERROR:  {visible(message)}\n" + (f"HINT:  {hint}\n" if hint else ""))
        raise Failed

    def note(self, message: str) -> None:
        """Print a line that is not a result."""
        self._write_error(message + "\n")

    def _tell(self, notice: Notice) -> None:
        """Print a notice of the statement that runs."""
        self.note(f"{notice.severity}:  {visible(notice.message)}" + (f"\nHINT:  {visible(notice.hint)}" if notice.hint else ""))

    def run_item(self, item: Item) -> None:
        """Run one statement or command. Raises Failed."""
        if isinstance(item, Command):
            self._run_command(self, item)
        else:
            self.last = item.text
            self.run_statement(item.text, item.line)

    def run_statement(
        self,
        text: str,
        line: int = 1,
        *,
        data: Iterator[bytes] | None = None,
        sink: Sink | None = None,
        style: Style | None = None,
    ) -> None:
        """Run one statement and print its outcome. Raises Failed.

        Args:
            data: for a COPY from the client; by default the lines that follow.
            sink: takes the result instead of the output.
            style: of the result instead of the usual one.
        """
        text = filled(text, self.options.variables)
        started = time.perf_counter()
        work = Work(lambda: self._outcome(text, data), self.cancel)
        into = sink or self.file or self._terminal()
        failed = None
        self._work = work
        try:
            self._print(work, into, style or self._style())
        except OutputClosed:
            pass
        except SqlError as error:
            failed = error
        except KeyboardInterrupt:
            if not self.is_typed:
                raise
            failed = interrupted()
        finally:
            self._work = None
            into.close()
        if failed is None and work.is_interrupted:
            failed = interrupted()
        if failed is not None:
            self._write_error(report(failed, text, f"{self.source}:{line}" if self.source else ""))
        if work.is_stuck:
            self.session = None
            self.note("WARNING:  the statement did not stop; the shell goes on with another session")
        if self.options.timing:
            self._show_time(time.perf_counter() - started)
        if failed is not None:
            raise Failed

    def _show_time(self, seconds: float) -> None:
        is_for_programs = self.options.style.format in ("csv", "json", "jsonl")
        (self.note if is_for_programs else self.show)(_time_of(seconds))

    def show(self, text: str) -> None:
        """Print a line beside the results."""
        out = StandardOutput()
        out.write(text + "\n")
        out.close()

    def _style(self) -> Style:
        style = self.options.style
        wanted = "vertical" if self.options.expanded and style.format == "table" else style.format
        return Style(wanted, style.header, style.null)

    def interrupt(self) -> None:
        """End the statement that runs; raises KeyboardInterrupt if none does."""
        if self._work is None:
            raise KeyboardInterrupt
        self._work.interrupt()

    def cancel(self) -> None:
        """Tell the session to end its statement."""
        if self.session is not None:
            self.session.cancel()

    def _outcome(self, text: str, data: Iterator[bytes] | None) -> Iterator[Any]:
        """The answer, and then its batches, or the pieces of a COPY. Runs in the thread of the statement."""
        try:
            yield from self._run(text, data)
        except SqlError:
            raise
        except BarnabasError as error:
            raise SqlError("XX000", str(error)) from error
        except Exception as error:  # a fault of the engine ends the statement, not the shell
            raise SqlError("XX000", f"{type(error).__name__}: {error}") from error

    def _run(self, text: str, data: Iterator[bytes] | None) -> Iterator[Any]:
        if self.session is None:
            self.session = self._open_session()
            if isinstance(self.session, Notifies):
                self.session.send_notices_to(self._tell)
        session = self.session
        prepared = session.prepare(text)
        if prepared.copy == "out":
            yield from map(CopyOut, session.copy_out(prepared))
            return
        if prepared.copy == "in":
            result = session.copy_in(prepared, self._following() if data is None else data)
        else:
            result = session.execute(prepared)
        try:
            is_live = bool(getattr(result, "is_live", False))
            yield Answer(result.schema, lambda: result.tag, zone_of(session.parameter("TimeZone")), is_live)
            yield from result.batches()
        finally:
            result.close()

    def _following(self) -> Iterator[bytes]:
        """The lines that follow in the input, up to `\\.`."""
        if self.lines is None:
            raise SqlError("0A000", "data for COPY cannot be typed here", hint="use \\copy TABLE FROM 'FILE'")
        for line in self.lines:
            if line.rstrip("\r\n") == COPY_END:
                return
            yield line.encode()

    def _print(self, work: Work, sink: Sink, style: Style) -> None:
        items = iter(work)
        try:
            first = next(items, None)
            if isinstance(first, CopyOut):
                decode = codecs.getincrementaldecoder("utf-8")("replace").decode
                sink.write(decode(first.data))
                for piece in items:
                    sink.write(decode(piece.data))
            elif isinstance(first, Answer):
                self._print_answer(first, items, sink, style)
        finally:
            items.close()  # type: ignore[attr-defined]  # it is a generator

    def _print_answer(self, answer: Answer, batches: Iterator[Any], sink: Sink, style: Style) -> None:
        if answer.schema is None:
            for _ in batches:
                pass
            self._print_tag(answer.tag(), sink)
            return
        printer = printer_for(style)
        if answer.is_live:
            self._print_live(answer, batches, sink, printer)
            return
        count = 0
        sink.write(printer.begin(answer.schema, answer.zone))
        for batch in batches:
            for text in printer.rows(batch):
                sink.write(text)
            count += batch.num_rows
        sink.write(printer.end(count))

    def _print_live(self, answer: Answer, batches: Iterator[Any], sink: Sink, printer: Printer) -> None:
        """Rows that come as time goes on: each is shown at once, and no pager holds them back."""
        assert answer.schema is not None
        sink, count = sink if isinstance(sink, FileOutput) else StandardOutput(), 0
        sink.write(printer.begin(answer.schema, answer.zone))
        for batch in batches:
            for text in printer.rows(batch):
                sink.write(text)
            count += batch.num_rows
            sink.write(printer.pending())
            sink.close()  # it is flushed, and takes more
        sink.write(printer.end(count))

    def _print_tag(self, tag: str, sink: Sink) -> None:
        self.changes += 1
        if tag and (self.is_typed or self.options.style.format in ("table", "vertical")):
            sink.write(tag + "\n")

    def redirect(self, path: str | None) -> None:
        """Send results to a file, or back to the terminal."""
        if self.file is not None:
            self.file.finish()
            self.file = None
        if path is not None:
            try:
                self.file = FileOutput(path)
            except OSError as error:
                self.complain(f"{path}: {error.strerror}")

    def check_transaction(self) -> None:
        """Say that a transaction was left open; the end of the session rolls it back."""
        if self.state != "I":
            self.note("WARNING:  the transaction was not committed; it is rolled back")

    def close(self) -> None:
        """End the session; an open transaction is rolled back."""
        self.redirect(None)
        session, self.session = self.session, None
        if session is not None:
            session.close()


def interrupted() -> SqlError:
    """The error of a statement that the user has stopped."""
    return SqlError("57014", "canceling statement due to user request")


def zone_of(name: str | None) -> tzinfo:
    """The zone of a session's setting; UTC for one that has no name."""
    try:
        return UTC if name is None else zones.zone_of(name).info
    except (ValueError, OSError):
        return UTC


def _time_of(seconds: float) -> str:
    shown = f"Time: {seconds * 1000:.3f} ms"
    if seconds < 1:
        return shown
    minutes, rest = divmod(seconds, 60)
    return f"{shown} ({int(minutes):02d}:{rest:06.3f})"
