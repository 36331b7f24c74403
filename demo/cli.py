"""The commands: `python -m demo run`, or its steps one by one against any broker.

Rules
  1. Exit code 0: success. 1: failure, or a window differs. 2: wrong command line. 130: `run` or `publish` was interrupted.
  2. A failure that a user can correct is one line. Others keep their traceback.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click
from confluent_kafka import KafkaException

from barnabas.errors import BarnabasError
from barnabas.streams import open_missing_streams
from demo.data import WHOLE_YEAR_DAYS, DemoError, Slice
from demo.progress import Board

DAYS_PER_SECOND = 6.0  # plays a year in about a minute
OUTPUT = Path("demo-output")

bootstrap_option = click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap",
    default="127.0.0.1:9092",
    envvar="BARNABAS_BOOTSTRAP_SERVERS",
    show_envvar=True,
    show_default=True,
    metavar="HOST:PORT",
    help="The broker.",
)
days_option = click.option(
    "--days",
    type=click.IntRange(1, WHOLE_YEAR_DAYS),
    default=WHOLE_YEAR_DAYS,
    show_default=True,
    help="How much of 2013, from its start.",
)
work_option = click.option("--work", type=click.Path(path_type=Path), default=OUTPUT, show_default=True, help="Where files go.")
again_option = click.option("--again", is_flag=True, help="Delete the topics of an earlier run first.")
pace_option = click.option(
    "--days-per-second",
    type=click.FloatRange(min=0),
    default=DAYS_PER_SECOND,
    show_default=True,
    help="How fast time goes by; 0 does not wait.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def commands() -> None:
    """Stream a year of flights through a broker and a PySpark pipeline, and prove the results."""


@commands.command("run")
@click.option(
    "-b",
    "--bootstrap-server",
    "bootstrap",
    default="",
    metavar="HOST:PORT",
    help="A broker that runs already; without it the demo starts its own.",
)
@days_option
@pace_option
@again_option
@work_option
def run_command(bootstrap: str, days: int, days_per_second: float, again: bool, work: Path) -> int:
    """All steps after each other, with a broker of its own."""
    from demo.run import Settings, run

    settings = Settings(Slice(days), work.resolve(), days_per_second, bootstrap, again)
    with Board() as board:
        return 0 if run(settings, board) else 1


@commands.command("publish")
@bootstrap_option
@days_option
@pace_option
@again_option
def publish_command(bootstrap: str, days: int, days_per_second: float, again: bool) -> int:
    """Make the topics and publish flights, weather and reference tables."""
    from demo.steps import publish_all

    with Board() as board:
        publish_all(bootstrap, Slice(days), days_per_second, board, again=again)
    return 0


@commands.command("pipeline")
@bootstrap_option
@click.option("--available-now", is_flag=True, help="Read the existing records and end, instead of running until Ctrl-C.")
@work_option
def pipeline_command(bootstrap: str, available_now: bool, work: Path) -> int:
    """Run the Spark pipeline; after a restart it continues where it stopped."""
    from demo.steps import run_pipeline

    with Board() as board:
        run_pipeline(bootstrap, work.resolve(), board, available_now=available_now)
    return 0


@commands.command("watch")
@bootstrap_option
def watch_command(bootstrap: str) -> int:
    """Print the worst windows as they come, as a member of a consumer group, until Ctrl-C."""
    from demo.steps import stop_signals
    from demo.topics import RESULTS, end_offsets
    from demo.watch import watch

    end_offsets(bootstrap, RESULTS)  # fails with a one-line error if the topic does not exist
    with stop_signals() as stopped, Board() as board:
        task = board.task("windows watched")
        worst = watch(bootstrap, board.say, task.update, lambda _: stopped.is_set())
    board.console.print(worst.table())
    return 0


@commands.command("verify")
@bootstrap_option
@days_option
def verify_command(bootstrap: str, days: int) -> int:
    """Compare every window with the result of pandas for the package's data; exit code 1 unless all are equal."""
    from demo.verify import read_results, verify

    board = Board()
    return 0 if verify(read_results(bootstrap), Slice(days), board.say).passed else 1


@commands.command("views")
@bootstrap_option
@days_option
@pace_option
@again_option
@work_option
def views_command(bootstrap: str, days: int, days_per_second: float, again: bool, work: Path) -> int:
    """Keep the delays in a view that psql asks while flights leave, and compare it with pandas."""
    from demo.views import run_views

    with Board() as board:
        return 0 if run_views(bootstrap, Slice(days), days_per_second, work.resolve(), board, again=again) else 1


@commands.command("chart")
@bootstrap_option
@work_option
def chart_command(bootstrap: str, work: Path) -> int:
    """Draw delay against wind per carrier from the results topic."""
    from demo.chart import draw
    from demo.verify import read_results

    path = work / "delays.png"
    draw(read_results(bootstrap), path)
    click.echo(f"chart in {path}")
    return 0


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code."""
    open_missing_streams()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        sys.exit(commands.main(arguments, prog_name="python -m demo", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (DemoError, BarnabasError, KafkaException) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped", err=True)
        sys.exit(130)


def _interrupt(_number: int, _frame: FrameType | None) -> Any:
    """SIGTERM stops everything cleanly, like Ctrl-C."""
    raise KeyboardInterrupt
