"""`streamer canary` and `deploy --canary`: a change that runs beside a stream before its deploy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

from streamer.cli.completion.values import complete_stream
from streamer.cli.service_client import ServiceClient, build_stream_path, remote_options
from streamer.cli.text_table import print_table, shorten_times
from streamer.core.errors import StreamerError

F = TypeVar("F", bound=Callable[..., Any])

_POLL_INTERVAL_S: Final = 0.5
_RUNNING: Final = ("starting", "comparing", "promoting")
_SHOW, _PROMOTE, _DROP = "show", "promote", "drop"
_DIFFERENT_CODE: Final = 2
_MAX_SHOWN: Final = 50
_QUERY_NAMES: Final = (
    *("windows", "max_differences", "promote", "within", "max_lag", "ignore", "allow_calls"),
)


def canary_options(command: F) -> F:
    """Add the options of `deploy --canary`."""
    for option in (
        click.option(
            "--allow-calls",
            multiple=True,
            metavar="NAME",
            help="With --canary: the name or label of a component whose calls may be made twice.",
        ),
        click.option(
            "--ignore",
            multiple=True,
            metavar="PATH",
            help="With --canary: a field that does not matter, such as created_at or items.*.id.",
        ),
        click.option(
            "--max-lag",
            metavar="TIME",
            help="With --canary: drop it when a micro-batch waits for it for so long (1m).",
        ),
        click.option(
            "--within", metavar="TIME", help="With --canary: how long it may run at most (1h)."
        ),
        click.option(
            "--promote",
            type=click.Choice(["auto", "manual"]),
            help="With --canary: let the rule promote or drop it, or decide by hand (manual).",
        ),
        click.option(
            "--max-differences",
            type=click.IntRange(0),
            metavar="N",
            help="With --canary: how many windows may differ (0).",
        ),
        click.option(
            "--windows",
            type=click.IntRange(1),
            metavar="N",
            help="With --canary: how many windows are compared (1000).",
        ),
        click.option(
            "--canary",
            is_flag=True,
            help="Run the change beside the stream first, and compare the windows of both.",
        ),
    ):
        command = option(command)
    return command


def take_canary_query(given: dict[str, Any]) -> dict[str, str] | None:
    """Take the options of a canary out of those of a command, as parameters of the API.

    Args:
        given: the options; it is changed.

    Returns:
        The parameters; None without `--canary`.

    Raises:
        UsageError: there are others, and no `--canary`.
    """
    is_canary = given.pop("canary")
    options = {name: given.pop(name) for name in _QUERY_NAMES}
    texts = {
        name: ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in options.items()
        if value not in (None, ())
    }
    if texts and not is_canary:
        name = f"--{next(iter(texts)).replace('_', '-')}"
        raise click.UsageError(f"{name} is for a canary: add --canary")
    return texts if is_canary else None


def begin_canary(
    remote: ServiceClient, stream_id: str, text: str, query: dict[str, str], file: str
) -> int:
    """Begin a canary, and wait until its windows are compared.

    Args:
        remote: the service.
        stream_id: the stream.
        text: the changed config.
        query: the parameters.
        file: the file of the config.
    """
    path = build_stream_path(stream_id, "canary")
    canary = remote.request("POST", path, text, query, file)
    effect = canary["judgement"]["effect"]
    base = canary["base_revision"]
    click.echo(f"the canary of {stream_id} begins beside revision {base}: {effect}")
    for note in canary["notes"]:
        click.echo(f"  {note}")
    while canary["state"] == "starting":
        time.sleep(_POLL_INTERVAL_S)
        canary = _read_canary(remote, path)
    if canary["state"] == "dropped":
        raise StreamerError(f"the canary of {stream_id} has ended: {canary['reason']}")
    click.echo(f"`streamer canary {stream_id}` shows what differs")
    return 0


@click.command("canary", short_help="Show, promote or drop the canary of a stream.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@click.argument("action", type=click.Choice([_SHOW, _PROMOTE, _DROP]), default=_SHOW)
@click.option(
    "--wait",
    type=click.FloatRange(0, 7 * 86400),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait until it has compared all windows (0).",
)
@click.option("--json", "form", flag_value="json", help="Print the service's answer as JSON.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", hidden=True)
@remote_options
def canary_cli(stream_id: str, action: str, wait: float, form: str, **service: Any) -> int:
    """Show the canary of a stream: how many windows are compared, and which fields differ.

    `promote` deploys its revision, `drop` ends it. The exit code is 2 when more windows differ
    than may, or the canary is dropped.
    """
    remote, path = ServiceClient(**service), build_stream_path(stream_id, "canary")
    if action == _PROMOTE:
        answer = remote.request("POST", f"{path}/promote")
        click.echo(f"promoted the canary of {stream_id}, revision {answer['revision']}")
        return 0
    if action == _DROP:
        remote.request("DELETE", path)
        click.echo(f"dropped the canary of {stream_id}")
        return 0
    canary = _wait_for_end(remote, path, wait)
    if form == "json":
        click.echo(json.dumps(canary, indent=2))
    else:
        _print_canary(stream_id, canary)
    is_bad = canary["different"] > canary["max_differences"] or canary["state"] == "dropped"
    return _DIFFERENT_CODE if is_bad else 0


def _read_canary(remote: ServiceClient, path: str) -> dict[str, Any]:
    canary: dict[str, Any] | None = remote.request("GET", path)["canary"]
    if canary is None:
        raise StreamerError(
            "the stream has no canary; `streamer deploy FILE --id ID --canary` begins one"
        )
    return canary


def _wait_for_end(remote: ServiceClient, path: str, seconds: float) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while True:
        canary = _read_canary(remote, path)
        if canary["state"] not in _RUNNING or time.monotonic() >= until:
            return canary
        time.sleep(_POLL_INTERVAL_S)


def _print_canary(stream_id: str, canary: Mapping[str, Any]) -> None:
    reason = f": {canary['reason']}" if canary["reason"] else ""
    click.echo(
        f"the canary of {stream_id} beside revision {canary['base_revision']} is "
        f"{canary['state']}{reason}"
    )
    line = f"{canary['compared']:,} of {canary['windows']:,} windows compared"
    line += f", {canary['different']:,} different ({canary['max_differences']:,} may be)"
    waits = [
        f"{canary['waiting']:,} wait for the other revision" if canary["waiting"] else "",
        f"{canary['behind']:,} micro-batches behind" if canary["behind"] else "",
    ]
    click.echo(", ".join([line, *filter(None, waits)]))
    if rows := [row for one in canary["differences"] for row in _rows_of(one)]:
        click.echo("")
        names = ("BUFFER", "KEY", "START", "END", "EMIT", "FIELD", "RUNNING", "CANARY")
        used = [at for at in range(len(names)) if at > 1 or any(row[at] for row in rows)]
        _print_rows([names[at] for at in used], [[row[at] for at in used] for row in rows])
    if (more := canary["different"] - len(canary["differences"])) > 0:
        click.echo(f"and {more:,} more windows that differ")
    if canary["state"] == "waiting":
        click.echo("")
        click.echo(f"`streamer canary {stream_id} promote` deploys it, `… drop` ends it")


def _print_rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_table(names, rows[:_MAX_SHOWN])
    if len(rows) > _MAX_SHOWN:
        click.echo(f"and {len(rows) - _MAX_SHOWN:,} more fields; --json has them")


def _rows_of(one: Mapping[str, Any]) -> list[tuple[str, ...]]:
    start, end = (shorten_times(one[name]) for name in ("start", "end"))
    window = (one["buffer"], one["key"] or "", start, end, one["emit"])
    if one["kind"] != "changed":
        return [(*window, "the window", *_sides_of(one["kind"]))]
    rows: list[tuple[str, ...]] = [
        (
            *window,
            f"{field['path']} (row {field['row']})" if field["row"] else field["path"],
            _show_value(field["old"]),
            _show_value(field["new"]),
        )
        for field in one["fields"]
    ]
    if (more := one["field_count"] - len(rows)) > 0:
        rows.append((*window, f"and {more} more", "", ""))
    return rows


def _sides_of(kind: str) -> tuple[str, str]:
    return ("emitted", "–") if kind == "missing" else ("–", "emitted")


def _show_value(value: str | None) -> str:
    return "–" if value is None else value
