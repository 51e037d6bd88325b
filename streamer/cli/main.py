"""The `streamer` command: runs a config, or one of the commands around it.

Commands are imported when they are called, so that `lint` and `blobl` never wait for Spark.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from streamer import __version__
from streamer.cli.completion.scripts import VARIABLE as _COMPLETION_VARIABLE
from streamer.cli.completion.values import complete_config
from streamer.cli.error_output import choose_colour_mode, print_error
from streamer.cli.options import (
    Options,
    check_watch,
    merge_options,
    open_config,
    parse_options,
    running_options,
)
from streamer.cli.stdin_notice import announce_stdin
from streamer.core.errors import StreamerError
from streamer.core.extras import install_hint, missing_packages_text, optional_package

# By task: name, module, and the line that `--help` shows.
_GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Write a config": {
        "create": ("streamer.cli.create", "Print a new config, with defaults and explanations."),
        "list": ("streamer.cli.listing", "List components, and Bloblang functions and methods."),
        "docs": ("streamer.cli.docs", "Show the documentation, or write the pages of components."),
        "lint": ("streamer.cli.lint", "Check configs, and say what is wrong and where."),
        "migrate": (
            "streamer.cli.migrate",
            "Review configs of Benthos: what runs, what differs, what is missing.",
        ),
        "echo": ("streamer.cli.echo", "Show a config as it is understood, with all defaults."),
        "template": ("streamer.cli.template", "Check templates, and run their tests."),
        "completion": ("streamer.cli.completion.command", "Let a shell complete command lines."),
    },
    "Try it without Spark": {
        "blobl": ("streamer.cli.blobl.command", "Apply a Bloblang mapping, or try one out."),
        "test": ("streamer.cli.test", "Run the unit tests of configs."),
        "timeline": (
            "streamer.cli.timeline",
            "Show which message falls into which window, and why.",
        ),
        "tap": ("streamer.cli.tap", "Show the first messages after each stage, without Spark."),
        "graph": ("streamer.cli.graph", "Draw a config: as a tree, for Mermaid, or as SVG."),
        "explain": (
            "streamer.cli.explain",
            "Show how a config would run on Spark, without running it.",
        ),
        "diff": ("streamer.cli.diff", "Say what a changed config means for a stream that runs."),
        "compare": (
            "streamer.cli.compare",
            "Compare the rows of Benthos, or of another version, with those of this one.",
        ),
    },
    "Run it": {
        "run": ("streamer.cli.main", "Run a config (the same as: streamer -c FILE)."),
        "dry-run": ("streamer.cli.dry_run", "Connect inputs and outputs without moving a message."),
        "backfill": ("streamer.cli.backfill", "Run the past of a stream as a batch."),
        "doctor": (
            "streamer.cli.doctor",
            "Check this machine and installation, and say what to do.",
        ),
        "query": ("streamer.cli.query", "Show the results of windows that a stream keeps."),
        "why": (
            "streamer.cli.why",
            "Say who holds windows open, and why messages were dropped.",
        ),
        "state": (
            "streamer.cli.state",
            "List or compare windows after earlier micro-batches, or go on from one.",
        ),
        "rescale": ("streamer.cli.rescale", "Change the number of shards of a stopped stream."),
        "kafka-offsets": (
            "streamer.cli.kafka_offsets",
            "Show, reset or copy the Kafka offsets of a stopped stream.",
        ),
        "warm": ("streamer.cli.warm", "Make Spark start faster."),
    },
    "Run many as a service": {
        "streams": ("streamer.cli.streams", "Run many streams, with an API to change them."),
        "deploy": ("streamer.cli.deploy", "Deploy a config to a service as a stream."),
        "canary": ("streamer.cli.canary", "Show, promote or drop the canary of a stream."),
        "list-streams": ("streamer.cli.remote_status", "List the streams of a service."),
        "windows": ("streamer.cli.windows", "List the open windows of a stream of a service."),
        "logs": ("streamer.cli.remote_status", "Show the log of a stream of a service."),
        "pause": ("streamer.cli.deploy", "Stop a stream of a service for now."),
        "resume": ("streamer.cli.deploy", "Start a stream of a service again."),
        "rollback": ("streamer.cli.deploy", "Deploy an older revision of a stream again."),
    },
    "Run on a cluster": {
        "submit": (
            "streamer.cli.submit.command",
            "Run a config with its driver on the cluster too.",
        ),
        "pack": ("streamer.cli.pack", "Pack the environment that a cluster's workers need."),
    },
}
_COMMANDS: Final = {name: one for group in _GROUPS.values() for name, one in group.items()}

# Commands of Benthos that are missing, and what to do without them.
_MISSING: Final = {
    "studio": "is not available: it works with a server of Benthos's own",
}

_EXAMPLE_PREFIX: Final = "example:"

_HELP: Final = """\
Run Benthos / Redpanda Connect configs on Apache Spark, with exact windows.

\b
Start here:
  streamer -c example:traffic_light               run an example; Ctrl-C stops it
  streamer -c config.yaml                         run a config
  streamer lint configs/                          check configs without running them
  streamer test configs/                          run the unit tests that configs carry
  streamer explain -c config.yaml                 see stages, shards and windows
  echo '{"a":1}' | streamer blobl 'root.b = this.a + 1'
"""


class _CommandGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(_COMMANDS[cmd_name][0]), f"{cmd_name.replace('-', '_')}_cli"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say what was meant instead."""
        name = args[0]
        if name not in _COMMANDS:
            if ctx.resilient_parsing:
                return None, None, []
            if name in _MISSING:
                raise click.UsageError(f"the command {name} {_MISSING[name]}", ctx)
            close = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f"streamer {close[0]}" if close else ""
            if name.endswith((".yaml", ".yml")):
                hint = f"streamer -c {name}"
            raise click.UsageError(
                f"there is no command {name!r}{f'; did you mean: {hint}' if hint else ''}", ctx
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Complete commands without importing them, and options."""
        named = [
            CompletionItem(name, help=text)
            for name, (_, text) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, by task, and below them the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                # All descriptions begin in one column.
                rows = [(name.ljust(width), text) for name, (_, text) in commands.items()]
                formatter.write_dl(rows)


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"Version: {__version__}")
        ctx.exit()


@click.group(
    cls=_CommandGroup,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] …",
    help=_HELP,
    epilog="streamer COMMAND --help says more about a command, --help-all shows all options.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@running_options
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.pass_context
def cli(ctx: click.Context, /, **given: Any) -> int:
    """Run a config when no command is named."""
    options = parse_options(**given)
    ctx.obj = options
    ctx.color = choose_colour_mode()
    if ctx.invoked_subcommand is not None:
        return 0
    return run(options)


def run(options: Options) -> int:
    """Run a config to its end; returns the exit code."""
    check_watch(options)
    # What --chilled lets pass stands in the log. What is wrong with the config shows before
    # anything heavy is imported.
    with open_config(options, lambda _: None) as config:
        announce_stdin(config.input.name == "stdin")
        return int(importlib.import_module("streamer.cli.run_stream").run_command(config, options))


@click.command("run", short_help="Run a config.")
@click.argument("file", required=False, shell_complete=complete_config)
@running_options
@click.pass_obj
def run_cli(root: Options, /, file: str | None, **given: Any) -> int:
    """Run a config until its input ends, or until it is stopped (Ctrl-C, SIGTERM).

    A stop finishes the micro-batch in hand and keeps open windows in the checkpoint for the next
    start. With -w, changes of the config's files are taken while it runs.
    """
    return run(merge_options(root, parse_options(**given), file, "run"))


def invoke(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, or 1 for anything that went wrong.

    Args:
        arguments: those after the program's name; the process's own when None.
    """
    if arguments is None and _COMPLETION_VARIABLE in os.environ:
        answer = importlib.import_module("streamer.cli.completion.answer")
        return int(answer.answer_shell(cli, os.environ))
    # Colours are for terminals, as far as those who sit there want any.
    color = False if os.environ.get("NO_COLOR") else None
    with click.Context(cli, color=color):
        return _invoke(arguments, color)


def _invoke(arguments: list[str] | None, color: bool | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        if any(_EXAMPLE_PREFIX in argument for argument in given):
            # Imported here: hardly any command line names an example.
            from streamer.config.examples import resolve_examples

            given = resolve_examples(given)
        code = cli.main(
            given, prog_name="streamer", standalone_mode=False, obj=Options(), color=color
        )
        return code if isinstance(code, int) else 0
    except click.ClickException as e:
        e.show()
    except StreamerError as e:
        print_error(e)
    except ModuleNotFoundError as e:
        package = optional_package(e.name)
        if package is None:
            raise
        needs = missing_packages_text("this command", [package])
        print_error(StreamerError(f"{needs}: {install_hint([package])}"))
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(invoke())


if __name__ == "__main__":
    main()
