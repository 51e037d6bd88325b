"""Options that many commands share: `--help` shows those that matter for a command, and its words.

`--help-all` shows the others too. All of them work everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_SHOWS_ALL: Final = "streamer.help_all"
_ROOT: Final = "cli"

_READING: Final = frozenset({"config", "sets", "env_file"})
_STATE: Final = _READING | {"checkpoint"}
_RUNNING: Final = _STATE | {"resources", "log_level", "watcher", "on_reset"}

MAIN_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys((_ROOT, "run"), _RUNNING),
    **dict.fromkeys(("explain", "graph", "timeline", "tap", "echo"), _READING),
    **dict.fromkeys(("dry-run", "doctor", "rescale"), _STATE),
    "query": frozenset({"config", "checkpoint"}),
    "streams": frozenset({"resources", "env_file", "watcher", "on_reset"}),
    **dict.fromkeys(("lint", "test", "diff"), frozenset({"resources"})),
    "submit": _STATE | {"master", "resources"},
}
"""The shared options that `--help` shows, by the command; another command shows all that it has."""

_CONFIG_TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys((_ROOT, "run"), "The config to run. Without one, stdin goes to stdout."),
    "explain": "The config to explain.",
    "graph": "The config to draw.",
    "timeline": "The config whose windows are meant.",
    "tap": "The config whose stages are shown.",
    "echo": "The config to print; without one, the defaults are printed.",
    "dry-run": "The config to check.",
    "doctor": "A config to check too.",
    "rescale": "The config of the stream.",
    "query": "The config of the stream whose results are shown, in the place of CONFIG.",
    "submit": "The config to run on the cluster.",
}
"""The help of `--config`, by the command."""


class SharedOption(click.Option):
    """An option of many commands, which `--help` of some does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return its line in a help; None where it is not shown."""
        command = ctx.command.name or ""
        name = self.name or ""
        if name not in MAIN_OPTIONS.get(command, {name}) and not ctx.meta.get(_SHOWS_ALL):
            return None
        record = super().get_help_record(ctx)
        if record is not None and name == "config" and command in _CONFIG_TEXTS:
            return record[0], _CONFIG_TEXTS[command]
        return record


def shared_option(*declarations: str, **attributes: Any) -> Callable[[F], F]:
    """Return a decorator as `click.option` does, for an option of many commands."""
    return click.option(*declarations, cls=SharedOption, **attributes)


def _show_all(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        ctx.meta[_SHOWS_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


help_all_option = click.option(
    "--help-all",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show all options and exit.",
)
