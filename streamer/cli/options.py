"""Options of commands that read one config, before or after the command; and that config, read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from streamer.cli.completion.values import DIRECTORY, FILE, complete_config
from streamer.cli.environment import variable_options
from streamer.cli.error_output import print_lint, redact_errors
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option, shared_option
from streamer.core.durations import SECOND, parse_duration
from streamer.core.errors import Lint
from streamer.core.locations import is_location

if TYPE_CHECKING:
    from streamer.config import Config

F = TypeVar("F", bound=Callable[..., Any])

TEMPLATES = "streamer.templates"
"""Where click keeps the files of templates for a command that passes them on."""

LOG_LEVELS = ("off", "fatal", "error", "warn", "info", "debug", "trace", "all", "none")


@dataclass(frozen=True)
class WatchOptions:
    """The reaction to a change of a config's files while its stream runs.

    Attributes:
        on_reset: `drain` or `discard`, for windows that cannot go on; None to refuse the change.
        probation: seconds in which a change may fail, so that what ran before comes back; None
            when it is to stay.
    """

    on_reset: str | None = None
    probation: float | None = None


@dataclass(frozen=True)
class Options:
    """Options of the command line beside the config.

    Attributes:
        config: the config's file; None without one.
        sets: `path=value` expressions, in order.
        checkpoint: the checkpoint directory, which wins over the config's; None leaves it to it.
        log_level: a level in upper case, which wins over the config's; None leaves it to it.
        impure: whether mappings may import, read files and see the environment; None for yes.
        resources: files with further resources, globs and directories expanded.
        chilled: whether a config runs in spite of findings that it can run with; None for no.
        watch: what is done when the config's files change; None when nobody looks.
        skip_damaged: whether to go on behind what is damaged of what inputs have received; None
            for no.
        wait_for_inputs: whether a start waits for servers that are away; None for no.
    """

    config: str | None = None
    sets: tuple[str, ...] = ()
    checkpoint: str | None = None
    log_level: str | None = None
    impure: bool | None = None
    resources: tuple[str, ...] = ()
    chilled: bool | None = None
    watch: WatchOptions | None = None
    skip_damaged: bool | None = None
    wait_for_inputs: bool | None = None

    def with_defaults(self, other: Options) -> Options:
        """Return these options, with those that are not set taken from other ones."""
        return replace(
            other,
            **{name: value for name, value in vars(self).items() if value not in (None, ())},
        )


impure_option = shared_option(
    "--impure/--no-impure",
    "impure",
    default=None,
    help="Whether mappings may import files and use impure functions (file, env, hostname, …).",
)


resources_option = shared_option(
    "-r",
    "--resources",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="A file with further resources; may be a glob (in quotes), and may be repeated.",
)


def _install_templates(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> None:
    """Have the templates of files for as long as the command runs."""
    if given and not ctx.resilient_parsing:
        # Imported here: without templates, nobody should wait for what reads them.
        from streamer.config.templates.installation import install_templates

        chilled = any(c.params.get("chilled") for c in (ctx, ctx.find_root()))
        ctx.meta.setdefault(TEMPLATES, []).extend(given)
        ctx.with_resource(install_templates(expand_paths(given), print_lint if chilled else None))


templates_option = shared_option(
    "-t",
    "--templates",
    multiple=True,
    expose_value=False,
    callback=_install_templates,
    type=FILE,
    metavar="FILE",
    help="A file with a template; may be a glob (in quotes), and may be repeated.",
)


chilled_option = shared_option(
    "--chilled",
    is_flag=True,
    default=None,
    is_eager=True,
    help="Go on in spite of findings that the config can run with, such as unknown fields.",
)


skip_damaged_option = shared_option(
    "--skip-damaged",
    is_flag=True,
    default=None,
    help="Go on behind messages that came in and are damaged on the disk; they are lost, and "
    "counted. For one start.",
)


def watch_options(command: F) -> F:
    """Add the options that say what is done when files change."""
    for option in reversed(
        (
            shared_option(
                "-w",
                "--watcher",
                is_flag=True,
                help="Watch the config's files, and let the stream go on with what they become.",
            ),
            shared_option(
                "--on-reset",
                type=click.Choice(["drain", "discard"]),
                help="With -w: what becomes of open windows that cannot go on after a change. "
                "Without it, such a change is refused.",
            ),
            shared_option(
                "--rollback-on-failure",
                is_flag=True,
                help="With -w: come back to what ran before when a change fails soon.",
            ),
            shared_option(
                "--rollback-after",
                metavar="DURATION",
                default="2m",
                show_default=True,
                help="How soon, for --rollback-on-failure.",
            ),
        )
    ):
        command = option(command)
    return command


wait_option = shared_option(
    "--wait-for-inputs",
    is_flag=True,
    default=None,
    help="When a broker or another server of an input is away at the start, wait for it as a "
    "stream that runs does, instead of ending with 1.",
)


def running_options(command: F) -> F:
    """Add the options of commands that run a config: those of others, and what deploys do."""
    return stream_options(watch_options(wait_option(skip_damaged_option(command))))


sets_option = shared_option(
    "-s",
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a field of the config by its dotted path; may be repeated. "
    "Example: -s pipeline.processors.0.split.size=10",
)


master_option = shared_option(
    "--master",
    metavar="URL",
    help="Where Spark runs, local[2] or spark://host:7077 for example; wins over spark.master.",
)


level_option = shared_option(
    "--log.level",
    "log_level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    metavar="LEVEL",
    help="Override logger.level: off, error, warn, info, debug or trace.",
)


def stream_options(command: F) -> F:
    """Add the options that say which config to read, and how to run it."""
    for option in reversed(
        (
            shared_option(
                "-c",
                "--config",
                metavar="FILE",
                shell_complete=complete_config,
                help="The config to run. Without one, stdin goes to stdout.",
            ),
            sets_option,
            master_option,
            shared_option(
                "--checkpoint",
                metavar="DIR",
                type=DIRECTORY,
                help="Where offsets and open windows are kept; wins over spark.checkpoint.",
            ),
            level_option,
            impure_option,
            resources_option,
            templates_option,
            variable_options,
            chilled_option,
            help_all_option,
        )
    ):
        command = option(command)
    return command


def gather_options(kind: type[Any]) -> Callable[[F], F]:
    """Return a decorator that gives a command one object for its own options.

    Args:
        kind: the object's dataclass: each field has the name of an option. The object comes after
            what `click.pass_obj` passes.
    """
    names = [one.name for one in fields(kind)]

    def decorate(command: F) -> F:
        @wraps(command)
        def gathered(*args: Any, **given: Any) -> Any:
            own = kind(**{name: given.pop(name) for name in names})
            return command(*args, own, **given)

        return cast(F, gathered)

    return decorate


def parse_options(**given: Any) -> Options:
    """Return the options of `stream_options` or `running_options`, as a command gets them.

    Raises:
        UsageError: a duration is none, or options lack what they are for.
    """
    watch = None
    if "watcher" in given:
        watch = parse_watch(
            *(given["watcher"], given["on_reset"], given["rollback_on_failure"]),
            given["rollback_after"],
        )
    return Options(
        config=given["config"],
        sets=merge_sets(given["sets"], given["master"]),
        checkpoint=given["checkpoint"],
        log_level=given["log_level"].upper() if given["log_level"] else None,
        impure=given["impure"],
        resources=tuple(dict.fromkeys(expand_paths(given["resources"]))),
        chilled=given["chilled"],
        watch=watch,
        skip_damaged=given.get("skip_damaged") or None,
        wait_for_inputs=given.get("wait_for_inputs") or None,
    )


def merge_sets(sets: tuple[str, ...], master: str | None) -> tuple[str, ...]:
    """Return what is set in a config: by `--set`, and by `--master`."""
    return sets if master is None else (*sets, f"spark.master={master}")


def parse_watch(
    watcher: bool, on_reset: str | None, rolls_back: bool, after: str
) -> WatchOptions | None:
    """Return what the options of `watch_options` say.

    Raises:
        UsageError: a duration is none, or options lack what they are for.
    """
    if not watcher:
        if on_reset or rolls_back:
            name = "--on-reset" if on_reset else "--rollback-on-failure"
            raise click.UsageError(f"{name} is for changes that -w/--watcher finds: add -w")
        return None
    if not rolls_back:
        return WatchOptions(on_reset)
    try:
        return WatchOptions(on_reset, parse_duration(after) / SECOND)
    except ValueError as e:
        raise click.UsageError(f"--rollback-after {after}: {e}") from None


def check_watch(options: Options) -> None:
    """Check that a config whose changes are taken is a file.

    Raises:
        UsageError: it is an object.
    """
    if options.watch is not None and is_location(options.config or ""):
        raise click.UsageError(
            f"-w/--watcher watches files, and {options.config} is the URL of an object, which is "
            "read once: leave it out, or copy the object to a file"
        )


def merge_options(root: Options, options: Options, file: str | None, command: str) -> Options:
    """Return the options of a command that also takes its config as an argument.

    Raises:
        UsageError: the config is named twice.
    """
    merged_options = options.with_defaults(root)
    if file is not None and merged_options.config is not None:
        raise click.UsageError(f"{command} takes one config, found two")
    return Options(config=file).with_defaults(merged_options)


@contextmanager
def open_config(options: Options, report: Callable[[Lint], None] = print_lint) -> Iterator[Config]:
    """Give the config, and keep to `--no-impure` while it is worked with.

    What goes wrong meanwhile is told without the config's secrets.

    Args:
        options: what the command line says.
        report: gets what `--chilled` lets pass.

    Raises:
        ConfigError: there is something wrong with it.
    """
    # Not before: help is shown without them.
    from streamer.bloblang import forbid_impure
    from streamer.config import load_config
    from streamer.core.crash_output import hide_in_crash_output

    with forbid_impure(options.impure is False):
        config = load_config(
            options.config,
            sets=options.sets,
            resources=options.resources,
            chilled=options.chilled is True,
        )
        for lint in config.lints:
            report(lint)
        hide_in_crash_output(config.secrets)
        with redact_errors(config.secrets):
            yield config
