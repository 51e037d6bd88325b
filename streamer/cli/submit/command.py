"""`streamer submit`: a stream, or a service, whose driver runs on the cluster too."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.error_output import redact_errors
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.cli.submit.driver_bundle import bundle_config, bundle_service
from streamer.cli.submit.driver_status import print_notice
from streamer.cli.submit.standalone import (
    Submission,
    get_standalone_master,
    require_shared_directory,
    show_or_stop_standalone,
    submit_to_standalone,
)
from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.plan import make_plan
from streamer.plan.checkpoint_dir import is_remote
from streamer.sdk.spec import Kind, ParsedFields
from streamer.sdk.spec.children import child_components

_SERVICE_COMMAND: Final = "streams"
_YARN_MASTER: Final = "yarn"
_KUBERNETES_REFUSAL: Final = (
    "is for standalone clusters and YARN; the Spark operator restarts drivers on Kubernetes"
)
_NAME_PATTERN: Final = re.compile(r"[\w-][\w. -]*")

_HELP: Final = """\
Run a config, or a service of many streams, on a cluster, its driver there too.

The config is checked and planned here first. On a standalone cluster, what it is made of is copied
into the checkpoint's directory, which this machine and all workers have to see at the same path;
the standard output is the driver's id, which --status and --kill take, as they take the stream's
name or the checkpoint: the id changes when the driver loses its worker. On Kubernetes, Spark makes
a pod of the image that the config names; the standard output is the pod's name. On YARN, all of it
travels to the application master; the standard output is the application's id.

\b
  streamer submit -c config.yaml --master spark://host:7077 --checkpoint /shared/lights
  streamer submit --master spark://host:7077 --supervise streams -o service.yaml \\
    --checkpoints /shared/streams ./streams
  streamer submit --master spark://host:7077 --status driver-20260101120000-0000
  streamer submit -c config.yaml --master k8s://https://host:6443
  streamer submit -c config.yaml --master yarn --checkpoint /shared/lights
"""


class _SubmitCommand(click.Command):
    """A command behind which `streams` may stand, with what that takes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if _SERVICE_COMMAND in args:
            place = args.index(_SERVICE_COMMAND)
            args, ctx.meta[_SERVICE_COMMAND] = args[:place], args[place + 1 :]
        return super().parse_args(ctx, args)


@click.command(
    "submit",
    cls=_SubmitCommand,
    help=_HELP,
    short_help="Run a config with its driver on the cluster.",
)
@click.argument("file", metavar="[FILE | streams …]", required=False, type=FILE)
@click.option("--name", metavar="NAME", help="What the stream is called; the file's name, else.")
@click.option("--supervise", is_flag=True, help="Have the driver started again when it fails.")
@click.option("--wait", is_flag=True, help="Wait for the driver's end; exits with 1 if it failed.")
@click.option(
    "--status",
    metavar="ID",
    help="Say how a driver is, by its id, its stream's name or its checkpoint; submit nothing.",
)
@click.option(
    "--kill",
    metavar="ID",
    help="Stop a driver as SIGTERM does, by the same; submit nothing.",
)
@stream_options
@click.pass_context
def submit_cli(ctx: click.Context, /, file: str | None, **given: Any) -> int:
    """Submit a config or a service, or look after what was submitted."""
    name, status, kill = given.pop("name"), given.pop("status"), given.pop("kill")
    supervise, wait = given.pop("supervise"), given.pop("wait")
    options = merge_options(ctx.obj, parse_options(**given), file, "submit")
    if status and kill:
        raise click.UsageError("--status and --kill do not go together")
    if name is not None and not _NAME_PATTERN.fullmatch(name):
        raise click.UsageError(f"--name is {name!r}, expected what a file can be called")
    if _SERVICE_COMMAND in ctx.meta:
        return _submit_service(ctx, options, supervise, wait)
    with open_config(options) as config:
        if status or kill:
            return _show_or_stop(config.spark, kill or status, bool(kill))
        if not config.path:
            raise click.UsageError("submit needs a config")
        plan = make_plan(config, level="OFF")
        _check_input(config)
        name = name or plan.name
        if plan.master.startswith("k8s://"):
            if supervise or wait:
                raise click.UsageError(
                    f"--{'supervise' if supervise else 'wait'} {_KUBERNETES_REFUSAL}"
                )
            # Imported here: few submit to Kubernetes.
            from streamer.cli.submit.kubernetes import submit_to_kubernetes

            click.echo(submit_to_kubernetes(config, options, plan, name, print_notice))
            return 0
        named = options.checkpoint or config.spark["checkpoint"]
        if not (plan.master == _YARN_MASTER and named and is_remote(named)):
            named = _require_shared_checkpoint(config.spark, named)
        bundle = bundle_config(config, options, name)
        checkpoint = ("--checkpoint", named)
        submission = Submission(bundle, checkpoint, config.spark, supervise, wait)
        return _submit_driver(submission, name)


def _require_shared_checkpoint(spark: ParsedFields, named: str | None) -> str:
    """Return the checkpoint's directory on a cluster that needs one."""
    if spark["master"] != _YARN_MASTER:
        get_standalone_master(spark)
    return str(require_shared_directory(named))


def _submit_driver(submission: Submission, name: str) -> int:
    if submission.spark["master"] != _YARN_MASTER:
        return submit_to_standalone(submission)
    # Imported here: few submit to YARN.
    from streamer.cli.submit.yarn import submit_to_yarn

    return submit_to_yarn(submission, name)


def _show_or_stop(spark: ParsedFields, id: str, stop: bool) -> int:
    if spark["master"] != _YARN_MASTER:
        return show_or_stop_standalone(spark, id, stop)
    from streamer.cli.submit.yarn import show_or_stop_yarn

    return show_or_stop_yarn(spark, id, stop)


def _submit_service(ctx: click.Context, options: Options, supervise: bool, wait: bool) -> int:
    """Submit `streamer streams`; what it runs is checked as at its start."""
    # Imported here: the service takes its time.
    from streamer.cli.service import list_template_files, make_reader, read_root
    from streamer.cli.streams import parse_service_options, streams_cli
    from streamer.service.fleet.startup import read_config_files
    from streamer.service.fleet.stream_ids import file_ids

    with streams_cli.make_context(
        _SERVICE_COMMAND, list(ctx.meta[_SERVICE_COMMAND]), parent=ctx
    ) as inner:
        parsed_options = parse_service_options(options, **inner.params)
        if parsed_options.watch is not None:
            raise click.UsageError("-w/--watcher watches files of this machine: use the API there")
        root = read_root(parsed_options)
        with redact_errors(root.secrets):
            directory = _require_shared_checkpoint(root.spark, parsed_options.checkpoints)
            files = file_ids(parsed_options.paths, root.http["root_path"])
            configs = read_config_files(
                make_reader(parsed_options, root, list_template_files()), files, time.time_ns
            )
            for config, _ in configs.values():
                _check_input(config)
            bundle = bundle_service(
                parsed_options, root, files, [config for config, _ in configs.values()]
            )
            checkpoint = ("--checkpoints", directory)
            submission = Submission(bundle, checkpoint, root.spark, supervise, wait)
            return _submit_driver(
                submission, ctx.params["name"] or Path(root.path or _SERVICE_COMMAND).stem
            )


def _check_input(config: Config) -> None:
    """Check that the input is none that stays on this machine.

    Raises:
        StreamerError: it is.
    """
    inputs = [config.input]
    while inputs:
        one = inputs.pop()
        if one.name == "stdin":
            raise StreamerError(
                "the input is stdin, which stays on this machine when the driver does not"
            )
        inputs += [part for part in child_components(one) if part.kind is Kind.INPUT]
