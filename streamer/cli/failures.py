"""How errors look on the terminal."""

from __future__ import annotations

import click

from streamer.errors import ConfigError, Lint, StreamerError


def print_lint(lint: Lint) -> None:
    """Print one finding to stderr: its place in bold, on a terminal."""
    place = click.style(f"{lint.file}({lint.line},{lint.column})", bold=True)
    suggestion = click.style(f"; {lint.suggestion}", fg="cyan") if lint.suggestion else ""
    click.echo(f"{place} {click.style(lint.message, fg='yellow')}{suggestion}", err=True)


def print_error(error: StreamerError) -> None:
    """Print an error that is meant for the user to stderr."""
    if not isinstance(error, ConfigError):
        click.echo(f"{click.style('error:', fg='red')} {error}", err=True)
        return
    for lint in error.lints:
        print_lint(lint)
