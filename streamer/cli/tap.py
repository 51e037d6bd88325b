"""`streamer tap`: the first messages after each stage."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any, Final

import click

from streamer.cli.completion.values import FILE, complete_config
from streamer.cli.log_output import is_terminal
from streamer.cli.options import Options, merge_options, open_config, parse_options, stream_options
from streamer.cli.redact_output import build_redactor

_HELP: Final = """\
Show the first messages after each stage: input, its processors, windows, each processor, output.

The messages come from the config's input, or from a file, a line each. They go through the
components that Spark's workers run, without Spark. The output is given nothing, and nothing is
marked as read; but a processor that reaches out, to a server, say, does so. Windows are closed on
a clock that follows the messages' event times. What environment variables hold is shown as the
variable, and secrets are not shown.

\b
  streamer tap -c config.yaml
  streamer tap -c config.yaml -n 3 --input sample.ndjson --format json
"""

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "stage": {"bold": True},
    "note": {"dim": True},
    "batch": {"fg": "cyan"},
    "meta": {"dim": True},
    "error": {"fg": "red"},
}


@click.command("tap", help=_HELP)
@click.argument("file", required=False, shell_complete=complete_config)
@click.option(
    "-n",
    "limit",
    type=click.IntRange(1, 100_000),
    default=10,
    show_default=True,
    help="How many messages are taken, and shown after each stage.",
)
@click.option(
    "--input",
    "sample",
    type=FILE,
    metavar="FILE",
    help="Messages instead of the input's, one a line; - for the standard input.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json has a line for each stage.",
)
@click.option("--no-metadata", is_flag=True, help="Leave the messages' metadata out.")
@click.option("--show-env", is_flag=True, help="Show what environment variables hold.")
@stream_options
@click.pass_obj
def tap_cli(
    root: Options,
    /,
    file: str | None,
    limit: int,
    sample: str | None,
    form: str,
    no_metadata: bool,
    show_env: bool,
    **given: Any,
) -> int:
    """Show the first messages after each stage."""
    from streamer.core.execution import Execution
    from streamer.core.json.dump import dump_json
    from streamer.core.limits import set_limits
    from streamer.engine.offline.sample_input import read_file_sample, read_input_sample
    from streamer.plan import make_plan
    from streamer.sdk.lookup_table import use_local_tables
    from streamer.tools.tap.stages import tap
    from streamer.tools.tap.text import format_stage, to_json_document

    wide = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else 0
    with open_config(merge_options(root, parse_options(**given), file, "tap")) as config:
        plan = make_plan(config, "OFF")
        set_limits(plan.limits)
        if sample is not None:
            batches = read_file_sample(sample, limit)
        else:
            batches = read_input_sample(plan, limit, Execution(time.time_ns))
        with use_local_tables(plan.resources, plan.context()):
            stages = list(tap(plan, batches))
        for number, stage in enumerate(stages):
            hide = build_redactor(config, show_env)
            if form == "json":
                document = to_json_document(stage, limit, not no_metadata)
                click.echo(hide(dump_json(document).decode()))
                continue
            text = format_stage(
                *(stage, limit, lambda part, what: click.style(part, **_COLOURS[what]), wide),
                has_metadata=not no_metadata,
            )
            click.echo(("\n" if number else "") + hide(text), nl=False)
    return 0
