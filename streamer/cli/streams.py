"""`streamer streams`: many streams in one program, deployed and changed while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from streamer.cli.completion.values import DIRECTORY, FILE
from streamer.cli.environment import variable_options
from streamer.cli.options import (
    Options,
    chilled_option,
    level_option,
    master_option,
    merge_sets,
    parse_watch,
    resources_option,
    sets_option,
    skip_damaged_option,
    templates_option,
    watch_options,
)
from streamer.cli.paths import expand_paths
from streamer.cli.shared_options import help_all_option

if TYPE_CHECKING:
    from streamer.cli.service import ServiceOptions


@click.command("streams", short_help="Run many streams, with an API to change them.")
@click.argument("paths", nargs=-1, type=FILE)
@click.option(
    "-o",
    "-c",
    "--observability",
    "--config",
    "root",
    type=FILE,
    metavar="FILE",
    help="The config of the service itself: http, logger, metrics, spark, resources.",
)
@click.option(
    "--checkpoints",
    type=DIRECTORY,
    metavar="DIR",
    help="Where offsets, open windows and what was deployed are kept.",
)
@click.option("--no-api", is_flag=True, help="Serve no API that changes or shows streams.")
@click.option(
    "--prefix-stream-endpoints",
    type=click.BOOL,
    default=True,
    is_flag=False,
    flag_value="true",
    metavar="BOOL",
    help="Whether what components serve stands behind the stream's id (true).",
)
@click.option(
    "--allow-programs",
    is_flag=True,
    help="Let configs that come by API run programs (command, subprocess).",
)
@click.option(
    "--allow-python",
    is_flag=True,
    help="Let configs that come by API run code in Python, which may do all that the service can.",
)
@click.option(
    "--allow-local",
    is_flag=True,
    help="Let configs that come by API read and write this machine's files, and see its "
    "environment.",
)
@click.option(
    "--restarts",
    type=click.IntRange(0, 1000),
    default=5,
    metavar="N",
    help="How often a stream that fails is started again without getting further (5).",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Do not start while a file has findings; else it is listed as refused, and the others "
    "run.",
)
@click.option(
    "--standby",
    is_flag=True,
    help="Wait while another service runs these streams, and take over when that ends.",
)
@skip_damaged_option
@watch_options
@sets_option
@master_option
@level_option
@resources_option
@templates_option
@variable_options
@chilled_option
@help_all_option
@click.pass_obj
def streams_cli(root_options: Options, /, paths: tuple[str, ...], **given: Any) -> int:
    """Run the streams of files and directories, and those that were deployed by API.

    A stream's id is its file's name. What belongs to the service (http, logger, metrics, spark)
    stands in the config that -o names.
    """
    from streamer.cli.service import run_service

    return run_service(parse_service_options(root_options, paths, **given))


def parse_service_options(
    root_options: Options, paths: tuple[str, ...], **given: Any
) -> ServiceOptions:
    """Return what the command line says of a service, as it gave it to the command.

    Raises:
        UsageError: a duration is none, or options lack what they are for.
    """
    # Imported here: `--help` shall not wait for it.
    from streamer.cli.service import ServiceOptions

    resources = tuple(dict.fromkeys((*root_options.resources, *expand_paths(given["resources"]))))
    level = given["log_level"].upper() if given["log_level"] else root_options.log_level
    return ServiceOptions(
        paths=paths,
        root=given["root"] or root_options.config,
        sets=(*root_options.sets, *merge_sets(given["sets"], given["master"])),
        resources=resources,
        checkpoints=given["checkpoints"] or root_options.checkpoint,
        level=level,
        chilled=bool(given["chilled"] or root_options.chilled),
        api=not given["no_api"],
        prefixed=given["prefix_stream_endpoints"],
        programs=given["allow_programs"],
        local=given["allow_local"],
        python=given["allow_python"],
        restarts=given["restarts"],
        watch=parse_watch(
            *(given["watcher"], given["on_reset"], given["rollback_on_failure"]),
            given["rollback_after"],
        ),
        standby=given["standby"],
        strict=given["strict"],
        skip_damaged=bool(given["skip_damaged"] or root_options.skip_damaged),
    )
