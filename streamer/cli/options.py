"""The options of commands that read one config: they may stand before or after the command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from streamer.cli.environment import env_file_option
from streamer.cli.failures import print_lint
from streamer.cli.paths import expand

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = ("off", "fatal", "error", "warn", "info", "debug", "trace", "all", "none")


@dataclass(frozen=True)
class Options:
    """What the command line says beside the config.

    Attributes:
        config: the config's file; None without one.
        sets: `path=value` expressions, in order.
        checkpoint: the checkpoint directory, which wins over the config's; None leaves it to it.
        log_level: a level in upper case, which wins over the config's; None leaves it to it.
        impure: whether mappings may import, read files and see the environment; None for yes.
        resources: files with further resources, globs and directories expanded.
        chilled: whether a config runs in spite of findings that it can run with; None for no.
    """

    config: str | None = None
    sets: tuple[str, ...] = ()
    checkpoint: str | None = None
    log_level: str | None = None
    impure: bool | None = None
    resources: tuple[str, ...] = ()
    chilled: bool | None = None

    def over(self, other: Options) -> Options:
        """Return these options, with those that are not set taken from other ones."""
        return replace(
            other,
            **{name: value for name, value in vars(self).items() if value not in (None, ())},
        )


impure_option = click.option(
    "--impure/--no-impure",
    "impure",
    default=None,
    help="Whether mappings may import files and use impure functions (file, env, hostname, …).",
)


resources_option = click.option(
    "-r",
    "--resources",
    multiple=True,
    metavar="FILE",
    help="A file with further resources; may be a glob (in quotes), and may be repeated.",
)


def _install(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    """Have the templates of files for as long as the command runs."""
    if given and not ctx.resilient_parsing:
        # Imported here: without templates, nobody should wait for what reads them.
        from streamer.config.templates.installed import installed

        chilled = any(c.params.get("chilled") for c in (ctx, ctx.find_root()))
        ctx.with_resource(installed(expand(given), print_lint if chilled else None))


templates_option = click.option(
    "-t",
    "--templates",
    multiple=True,
    expose_value=False,
    callback=_install,
    metavar="FILE",
    help="A file with a template; may be a glob (in quotes), and may be repeated.",
)


chilled_option = click.option(
    "--chilled",
    is_flag=True,
    default=None,
    is_eager=True,
    help="Go on in spite of findings that the config can run with, such as unknown fields.",
)


def _watch(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        raise click.UsageError(
            "-w/--watcher is not available yet: when the config has changed, stop the stream and "
            "start it again; it goes on where it stopped",
            ctx,
        )


watcher_option = click.option(
    "-w", "--watcher", is_flag=True, hidden=True, expose_value=False, callback=_watch
)


def stream_options(command: F) -> F:
    """Add the options that say which config to read, and how to run it."""
    for option in reversed(
        (
            click.option(
                "-c",
                "--config",
                metavar="FILE",
                help="The config to run. Without one, stdin goes to stdout.",
            ),
            click.option(
                "-s",
                "--set",
                "sets",
                multiple=True,
                metavar="PATH=VALUE",
                help="Set a field of the config by its dotted path; may be repeated. "
                "Example: -s pipeline.processors.0.split.size=10",
            ),
            click.option(
                "--checkpoint",
                metavar="DIR",
                help="Where offsets and open windows are kept; wins over spark.checkpoint.",
            ),
            click.option(
                "--log.level",
                "log_level",
                type=click.Choice(LEVELS, case_sensitive=False),
                metavar="LEVEL",
                help="Override logger.level: off, error, warn, info, debug or trace.",
            ),
            impure_option,
            resources_option,
            templates_option,
            env_file_option,
            chilled_option,
            watcher_option,
        )
    ):
        command = option(command)
    return command


def options_of(
    config: str | None,
    sets: tuple[str, ...],
    checkpoint: str | None,
    log_level: str | None,
    impure: bool | None,
    resources: tuple[str, ...],
    chilled: bool | None,
) -> Options:
    """Return the options as the command line gave them to a command."""
    level = log_level.upper() if log_level else None
    files = tuple(dict.fromkeys(expand(resources)))
    return Options(config, sets, checkpoint, level, impure, files, chilled)
