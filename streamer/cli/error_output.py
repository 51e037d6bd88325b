"""Formats errors for the terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from streamer.core.errors import ConfigError, Lint, StreamerError
from streamer.core.redaction import Redaction


@contextmanager
def redact_errors(secrets: Mapping[str, str]) -> Iterator[None]:
    """Take the secrets of a config (`Config.secrets`) out of the errors of the block.

    Raises:
        StreamerError: an error of the block; findings about configs have no secrets anyway.
    """
    try:
        yield
    except ConfigError:
        raise
    except StreamerError as e:
        raise StreamerError(Redaction(secrets).redact_text(str(e))) from None


def print_lint(lint: Lint, code: bool = False) -> None:
    """Print one finding to stderr: its place in bold, on a terminal.

    Args:
        lint: the finding.
        code: say its code too.
    """
    place = click.style(f"{lint.file}({lint.line},{lint.column})", bold=True)
    suggestion = click.style(f"; {lint.suggestion}", fg="cyan") if lint.suggestion else ""
    named = click.style(f" [{lint.code}]", dim=True) if code else ""
    _print_to_stderr(f"{place} {click.style(lint.message, fg='yellow')}{suggestion}{named}")


def print_error(error: StreamerError) -> None:
    """Print an error that is meant for the user to stderr."""
    if not isinstance(error, ConfigError):
        _print_to_stderr(f"{click.style('error:', fg='red')} {error}")
        return
    for lint in error.lints:
        print_lint(lint)


def _print_to_stderr(text: str) -> None:
    # Errors are printed when the command is over, and with it what it said about colours.
    click.echo(text, err=True, color=choose_colour_mode())


def choose_colour_mode() -> bool | None:
    """Return False when the user wants no colours at all; None leaves it to the terminal."""
    return False if os.environ.get("NO_COLOR") else None
