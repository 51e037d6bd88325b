"""`streamer submit`: a stream, or a service, whose driver runs on the cluster too."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any, Final

import click

from streamer.cli.contents import contents_of, contents_of_service
from streamer.cli.failures import without_secrets
from streamer.cli.follow import tell
from streamer.cli.opened import merged, opened
from streamer.cli.options import Options, options_of, stream_options
from streamer.cli.submit_standalone import (
    Submission,
    look_after_standalone,
    master_of,
    shared_directory,
    submit,
)
from streamer.config import Config
from streamer.errors import StreamerError
from streamer.plan import make_plan
from streamer.plan.place import is_remote
from streamer.spec import Kind, Parsed
from streamer.spec.inside import inside

_SERVICE: Final = "streams"
_YARN: Final = "yarn"
_KUBERNETES: Final = (
    "is for standalone clusters and YARN; the Spark operator restarts drivers on Kubernetes"
)
_NAME: Final = re.compile(r"[\w-][\w. -]*")

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


class _Command(click.Command):
    """A command behind which `streams` may stand, with what that takes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if _SERVICE in args:
            place = args.index(_SERVICE)
            args, ctx.meta[_SERVICE] = args[:place], args[place + 1 :]
        return super().parse_args(ctx, args)


@click.command(
    "submit", cls=_Command, help=_HELP, short_help="Run a config with its driver on the cluster."
)
@click.argument("file", metavar="[FILE | streams …]", required=False)
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
    options = merged(ctx.obj, options_of(**given), file, "submit")
    if status and kill:
        raise click.UsageError("--status and --kill do not go together")
    if name is not None and not _NAME.fullmatch(name):
        raise click.UsageError(f"--name is {name!r}, expected what a file can be called")
    if _SERVICE in ctx.meta:
        return _submit_service(ctx, options, supervise, wait)
    with opened(options) as config:
        if status or kill:
            return _look_after(config.spark, kill or status, bool(kill))
        if not config.path:
            raise click.UsageError("submit needs a config")
        plan = make_plan(config, level="OFF")
        _check_input(config)
        name = name or plan.name
        if plan.master.startswith("k8s://"):
            if supervise or wait:
                raise click.UsageError(f"--{'supervise' if supervise else 'wait'} {_KUBERNETES}")
            # Imported here: few submit to Kubernetes.
            from streamer.cli.submit_kubernetes import submit_to_kubernetes

            click.echo(submit_to_kubernetes(config, options, plan, name, tell))
            return 0
        named = options.checkpoint or config.spark["checkpoint"]
        if not (plan.master == _YARN and named and is_remote(named)):
            named = _shared(config.spark, named)
        contents = contents_of(config, options, name)
        checkpoint = ("--checkpoint", named)
        inputs = (plan.input,)
        wanted = Submission(contents, checkpoint, config.spark, inputs, supervise, wait)
        return _submit(wanted, name)


def _shared(spark: Parsed, named: str | None) -> str:
    """Return the checkpoint's directory on a cluster that needs one."""
    if spark["master"] != _YARN:
        master_of(spark)
    return str(shared_directory(named))


def _submit(wanted: Submission, name: str) -> int:
    if wanted.spark["master"] != _YARN:
        return submit(wanted)
    # Imported here: few submit to YARN.
    from streamer.cli.submit_yarn import submit_to_yarn

    return submit_to_yarn(wanted, name)


def _look_after(spark: Parsed, id: str, stop: bool) -> int:
    if spark["master"] != _YARN:
        return look_after_standalone(spark, id, stop)
    from streamer.cli.submit_yarn import look_after_yarn

    return look_after_yarn(spark, id, stop)


def _submit_service(ctx: click.Context, options: Options, supervise: bool, wait: bool) -> int:
    """Submit `streamer streams`; what it runs is checked as at its start."""
    # Imported here: the service takes its time.
    from streamer.cli.service import read_root, reader_of, template_files
    from streamer.cli.streams import service_options, streams_cli
    from streamer.service.streams.boot import read_files
    from streamer.service.streams.ids import file_ids

    with streams_cli.make_context(_SERVICE, list(ctx.meta[_SERVICE]), parent=ctx) as inner:
        wanted = service_options(options, **inner.params)
        if wanted.watch is not None:
            raise click.UsageError("-w/--watcher watches files of this machine: use the API there")
        root = read_root(wanted)
        with without_secrets(root.secrets):
            directory = _shared(root.spark, wanted.checkpoints)
            files = file_ids(wanted.paths, root.http["root_path"])
            found = read_files(reader_of(wanted, root, template_files()), files, time.time_ns)
            for config, _ in found.values():
                _check_input(config)
            contents = contents_of_service(wanted, root, files)
            checkpoint = ("--checkpoints", directory)
            inputs = tuple(config.input for config, _ in found.values())
            what = Submission(contents, checkpoint, root.spark, inputs, supervise, wait)
            return _submit(what, ctx.params["name"] or Path(root.path or _SERVICE).stem)


def _check_input(config: Config) -> None:
    """See that the input is none that stays on this machine.

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
        inputs += [part for part in inside(one) if part.kind is Kind.INPUT]
