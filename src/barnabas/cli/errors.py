"""The errors that commands raise; `main.run` prints them."""

from __future__ import annotations

import click


class Failure(click.ClickException):
    """The operation did not succeed: exit code 1."""

    exit_code = 1


class BadInput(click.ClickException):
    """The user's input is wrong: exit code 2."""

    exit_code = 2
