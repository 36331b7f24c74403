"""The command `barnabas`: its list of subcommands, and their exit codes and errors.

Rules
  1. Exit code 0: done. 1: the operation failed. 2: the input was wrong (options, settings, names), nothing was done.
  2. An error is one line on standard error; standard output carries results only.
  3. Ctrl-C ends a command without a traceback; so does a reader that closes the pipe (`| head`). If standard output cannot be
     written (a full disk), the command fails. If standard output was closed at the start, it is the null device.
  4. An unexpected error is one line too, and BARNABAS_TRACEBACK=1 shows its traceback.
  5. This module imports only click and the standard library, because `--help` loads nothing else.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from barnabas import __version__
from barnabas.cli.lazy import HELP_OPTIONS, Entry, LazyGroup
from barnabas.errors import BarnabasError, ConfigError
from barnabas.streams import OutputFailed, drop_unwritten, open_missing_streams, prepare_output

EXIT_FAILED = 1
EXIT_USAGE = 2
COMPLETION_VARIABLE = "_BARNABAS_COMPLETE"  # the scripts of `completion` set this variable to request completions
TRACEBACK_VARIABLE = "BARNABAS_TRACEBACK"
MOST_CHARACTERS = 1_000  # of an error line

COMMANDS = {
    "start": Entry("start", "start", "Run a broker with friendly defaults."),
    "broker": Entry("broker", "broker", "Run a broker, adopt the data folders of Kafka, or drain a broker."),
    "topic": Entry("topic", "topic", "Create, list, describe, alter and delete topics."),
    "produce": Entry("produce", "produce", "Write records to TOPIC, one for each line of standard input or of the FILEs."),
    "consume": Entry("consume", "consume", "Print the records of TOPICs, from the beginning to the end that they have now."),
    "group": Entry("group", "group", "Show consumer groups and their lag, reset and delete offsets."),
    "schema": Entry("schema", "schema", "Register, show, check, compare, copy and delete the schemas of a registry."),
    "table": Entry("table", "table", "Read topics as tables: columns, rows, counts, files."),
    "pipeline": Entry("pipeline", "pipeline", "Create, run, list and stop pipelines on Spark."),
    "transaction": Entry("transaction", "transaction", "List, describe, find and end transactions."),
    "user": Entry("user", "user", "Add, list and delete users who log in by SCRAM, and change their passwords."),
    "security": Entry("security", "security", "Create a certificate authority and certificates."),
    "quota": Entry("quota", "quota", "Set, list, describe and remove quotas for clients, addresses and groups."),
    "config": Entry("config", "config", "Show and change settings of topics, brokers and groups."),
    "acl": Entry("acl", "acl", "Add, list, test and remove access control lists."),
    "role": Entry("role", "role", "Define roles, named sets of rights, and give them to users and groups."),
    "cluster": Entry("cluster", "cluster", "Run several brokers on this machine, and describe a cluster and its brokers."),
    "log": Entry("log", "log", "Show the files of a data folder."),
    "mirror": Entry("mirror", "mirror", "Copy topics of another cluster, with their offsets, and make copies writable."),
    "bench": Entry("bench", "bench", "Measure how fast a cluster writes and reads records."),
    "doctor": Entry(
        "doctor", "doctor", "Check this machine, Spark's Python if PySpark is installed, a data folder and a broker."
    ),
    "registry": Entry("services", "registry", "Run a schema registry."),
    "sql": Entry("sql.command", "sql", "Ask topics in SQL, or run SQL as a service."),
    "engine": Entry("services", "engine", "Run the engine of views and pipelines."),
    "connect": Entry("connect.command", "connect", "Create, list and change connectors, or run a worker of Connect."),
    "dlq": Entry("dlq", "dlq", "List, show, send again and delete the records that connectors could not take."),
    "job": Entry("job", "job", "List, describe, pause, resume, restart and create jobs: views, inserts and pipelines on Spark."),
    "services": Entry("services", "services", "Run several HTTP services in one process."),
    "completion": Entry("completion", "completion", "Print the completion script of a shell."),
}


def _print_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"barnabas {__version__}")
        context.exit()


@click.group(cls=LazyGroup, entries=COMMANDS, context_settings=HELP_OPTIONS)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version and exit."
)
def cli() -> None:
    """An event streaming platform that speaks the Apache Kafka protocol.

    Start a broker with `barnabas start`; every other command works against any Kafka cluster at --bootstrap-server.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Errors are printed, never raised."""
    try:
        result = _invoke(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        return _fail("interrupted", EXIT_FAILED)
    except click.exceptions.NoArgsIsHelpError as error:
        return _complain(error.format_message(), error.exit_code)  # the help of a group, as its author wrote it
    except click.ClickException as error:
        return _fail(_one_line(error), error.exit_code)
    except ConfigError as error:
        return _fail(str(error), EXIT_USAGE)
    except OutputFailed as error:
        if error.errno == errno.EPIPE:
            return 0  # the reader closed the pipe, as `head` does
        return _fail(f"cannot write to standard output: {error.strerror}", EXIT_FAILED)
    except OSError as error:
        return _report_os_error(error)
    except BarnabasError as error:
        return _fail(str(error) or type(error).__name__, EXIT_FAILED)
    except Exception as error:  # noqa: BLE001 - last handler, see rule 4
        return _report_unforeseen(error)


def _report_os_error(error: OSError) -> int:
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
    return _fail(f"{name}{error.strerror}" if error.strerror else str(error) or type(error).__name__, EXIT_FAILED)


def _report_unforeseen(error: Exception) -> int:
    """Report an exception of a library: exit code 2 if it is about a value of the input, otherwise 1."""
    if os.environ.get(TRACEBACK_VARIABLE):
        raise error
    client = sys.modules.get("confluent_kafka")  # only if a command has already imported it
    if client is not None and isinstance(error, client.KafkaException):
        from barnabas.cli.connection import reason_of

        is_refusal = error.args[0].code() == client.KafkaError._INVALID_ARG
        return _fail(reason_of(error), EXIT_USAGE if is_refusal else EXIT_FAILED)
    code = EXIT_USAGE if isinstance(error, ValueError | OverflowError) else EXIT_FAILED
    return _fail(f"{type(error).__name__}: {error} ({TRACEBACK_VARIABLE}=1 shows the traceback)", code)


def _invoke(arguments: list[str]) -> object:
    # cli.main() is not used: it handles a broken pipe as a failure.
    instruction = os.environ.get(COMPLETION_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "barnabas", COMPLETION_VARIABLE, instruction)
    with cli.make_context("barnabas", arguments) as context:
        return cli.invoke(context)


def _one_line(error: click.ClickException) -> str:
    text = " ".join(error.format_message().split())
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text += f" (see {error.ctx.command_path} --help)"
    return text


def _shown(message: str) -> str:
    """The message on one line of limited length, without control characters, which a terminal would execute."""
    line = " ".join(message.split())
    if len(line) > MOST_CHARACTERS:
        line = f"{line[: MOST_CHARACTERS // 2]} … {line[-MOST_CHARACTERS // 2 :]}"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


def _fail(message: str, code: int) -> int:
    return _complain(f"barnabas: {_shown(message)}", code)


def _complain(text: str, code: int) -> int:
    try:
        click.echo(text, err=True)
    except OSError:  # standard error is closed
        return code
    return code


def main() -> None:
    """The entry point of the script."""
    open_missing_streams()
    prepare_output()
    code = run()
    drop_unwritten()
    sys.exit(code)
