"""`barnabas completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click

SHELLS = ["bash", "zsh", "fish"]


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash: echo 'eval "$(barnabas completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(barnabas completion zsh)"' >> ~/.zshrc
    fish: barnabas completion fish > ~/.config/fish/completions/barnabas.fish
    """
    from click.shell_completion import get_completion_class

    from barnabas.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    # BashComplete.source() is not used: it starts bash to check its version, and complains if bash is not installed.
    script = kind(cli, {}, "barnabas", "_BARNABAS_COMPLETE")
    click.echo(script.source_template % script.source_vars())
