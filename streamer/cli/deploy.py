"""`streamer deploy`, `pause`, `resume` and `rollback`: change the streams of a service."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click

from streamer.cli.canary import begin_canary, canary_options, take_canary_query
from streamer.cli.completion.values import complete_config, complete_revision, complete_stream
from streamer.cli.service_client import (
    RefusedError,
    ServiceClient,
    build_stream_path,
    remote_options,
)
from streamer.core.durations import parse_duration
from streamer.core.errors import StreamerError

_POLL_INTERVAL_S: Final = 0.3


def _check_duration(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    """Take a duration as it is; the service leaves out one that is none, as Benthos does."""
    if given is not None:
        try:
            parse_duration(given)
        except ValueError as e:
            raise click.BadParameter(str(e), ctx, param) from None
    return given


_TIMEOUT = click.option(
    "--timeout",
    metavar="TIME",
    callback=_check_duration,
    help="How long the micro-batch in hand may take, such as 10s.",
)
_ON_RESET = click.option(
    "--on-reset",
    type=click.Choice(["drain", "discard"]),
    help="Let open windows out first, or drop them, where the change cannot keep them.",
)
_ROLLBACK = click.option(
    "--rollback-on-failure",
    is_flag=True,
    help="Let the former revision come back when the new one fails in its first minutes.",
)


@click.command("deploy", short_help="Deploy a config to a service as a stream.")
@click.argument("file", shell_complete=complete_config)
@click.option(
    "--id",
    "stream_id",
    metavar="ID",
    shell_complete=complete_stream,
    help="The stream's id; the file's name if not.",
)
@click.option("--chilled", is_flag=True, help="Go on in spite of findings that it can run with.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=30.0,
    metavar="SECONDS",
    help="How long to wait for its first micro-batch (30); 0 for not at all.",
)
@_TIMEOUT
@_ON_RESET
@_ROLLBACK
@canary_options
@remote_options
def deploy_cli(
    file: str,
    stream_id: str | None,
    chilled: bool,
    wait: float,
    timeout: str | None,
    on_reset: str | None,
    rollback_on_failure: bool,
    **more: Any,
) -> int:
    """Deploy FILE as a stream of a service: a new one, or another revision of the one there is."""
    from streamer.config.file import read_config_text

    canary = take_canary_query(more)
    text, name = read_config_text(file), stream_id or Path(file).stem
    remote = ServiceClient(**more)
    query = _build_query(timeout, on_reset, rollback_on_failure)
    if chilled:
        query["chilled"] = "true"
    if canary is not None:
        if on_reset is not None:
            raise click.UsageError("--on-reset has no meaning for a canary: it keeps open windows")
        return begin_canary(remote, name, text, {**query, **canary}, file)
    exists = _stream_exists(remote, name)
    click.echo(f"{'updating' if exists else 'creating'} {name} …", err=True)
    answer = remote.request("PUT" if exists else "POST", build_stream_path(name), text, query, file)
    _print_result(name, "updated" if exists else "created", answer)
    return _wait_for_micro_batch(remote, name, wait) if wait else 0


@click.command("rollback", short_help="Deploy an older revision of a stream again.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@click.argument(
    "revision", type=click.IntRange(1), required=False, shell_complete=complete_revision
)
@_TIMEOUT
@_ON_RESET
@_ROLLBACK
@remote_options
def rollback_cli(
    stream_id: str,
    revision: int | None,
    timeout: str | None,
    on_reset: str | None,
    rollback_on_failure: bool,
    **service: Any,
) -> int:
    """Deploy REVISION of a stream again, as a new one.

    When none is named: the newest that is another than what runs, and has not failed on probation.
    """
    query = _build_query(timeout, on_reset, rollback_on_failure)
    if revision is not None:
        query["revision"] = str(revision)
    answer = ServiceClient(**service).request(
        "POST", build_stream_path(stream_id, "rollback"), query=query
    )
    _print_result(stream_id, "rolled back", answer)
    return 0


@click.command("pause", short_help="Stop a stream of a service for now.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@_TIMEOUT
@remote_options
def pause_cli(stream_id: str, timeout: str | None, **service: Any) -> int:
    """Stop a stream for now; its open windows and offsets stay."""
    query = _build_query(timeout, None, False)
    ServiceClient(**service).request("POST", build_stream_path(stream_id, "pause"), query=query)
    click.echo(f"paused {stream_id}")
    return 0


@click.command("resume", short_help="Start a stream of a service again.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@remote_options
def resume_cli(stream_id: str, **service: Any) -> int:
    """Start a stream that is paused, has failed or has ended."""
    ServiceClient(**service).request("POST", build_stream_path(stream_id, "resume"))
    click.echo(f"resumed {stream_id}")
    return 0


def _build_query(timeout: str | None, on_reset: str | None, rolls_back: bool) -> dict[str, str]:
    given = {
        "timeout": timeout,
        "on_reset": on_reset,
        "rollback_on_failure": "true" if rolls_back else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _stream_exists(remote: ServiceClient, stream_id: str) -> bool:
    try:
        remote.request("GET", build_stream_path(stream_id, "progress"))
    except RefusedError as e:
        if e.status == 404:
            return False
        raise
    return True


def _print_result(stream_id: str, done: str, answer: Any) -> None:
    judgement = answer.get("judgement") or {}
    effect = judgement.get("effect")
    outcome = {None: "", "none": ", which means the same"}.get(effect, f": {effect}")
    click.echo(f"{done} {stream_id}, revision {answer['revision']}{outcome}")
    for change in judgement.get("changes", ()):
        note = f"; {change['note']}" if change["note"] else ""
        old, new = (change[side] or "nothing" for side in ("old", "new"))
        # Of texts of many lines, `streamer diff` shows what differs.
        what = "" if "\n" in old.strip() + new.strip() else f"{old.strip()} → {new.strip()}, "
        click.echo(f"  {change['path']}: {what}{change['effect']}{note}")


def _wait_for_micro_batch(remote: ServiceClient, stream_id: str, seconds: float) -> int:
    """Wait for the first micro-batch, and show what the stream does meanwhile."""
    until, printed = time.monotonic() + seconds, ""
    while True:
        progress = remote.request("GET", build_stream_path(stream_id, "progress"))
        state, reason = progress["state"], progress["reason"]
        line = f"{state}: {reason}" if reason else state
        if line != printed:
            click.echo(line, err=True)
            printed = line
        if state == "failed":
            raise StreamerError(f"{stream_id} has failed: {reason}")
        if progress["micro_batch"] >= 0 or state in ("ended", "paused"):
            return 0
        if time.monotonic() >= until:
            raise StreamerError(_explain_timeout(stream_id, seconds, progress))
        time.sleep(_POLL_INTERVAL_S)


def _explain_timeout(stream_id: str, seconds: float, progress: Any) -> str:
    """Print that nothing has been delivered yet, which need not be wrong."""
    waits = progress["reason"] or progress.get("waits_for") or "its first micro-batch"
    return (
        f"{stream_id} is deployed and {progress['state']}, and has delivered nothing within "
        f"{seconds:g} s: it waits for {waits}. On a cluster the first micro-batch takes longer: "
        "give --wait more time, or look with `streamer list-streams`"
    )
