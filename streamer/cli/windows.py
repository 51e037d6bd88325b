"""`streamer windows`: the open windows of a stream of a service."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

import click

from streamer.cli.completion.values import complete_stream
from streamer.cli.service_client import ServiceClient, build_stream_path, remote_options
from streamer.cli.text_table import print_table
from streamer.core.durations import MILLISECOND
from streamer.core.log_format import escape_controls
from streamer.core.timestamps import format_rfc3339, parse_rfc3339

_ANSWER_TIMEOUT_S: Final = 15.0
_POLL_INTERVAL_S: Final = 0.5
_DROP_TEXTS: Final = {
    "late": "late: the windows that they belong to had closed",
    "expired": "in windows that expired under back pressure",
    "future": "too far ahead of the clock",
}


@click.command("windows", short_help="List the open windows of a stream of a service.")
@click.argument("stream_id", metavar="ID", shell_complete=complete_stream)
@click.option("--key", help="Only windows whose key contains this text.")
@click.option("--exact", is_flag=True, help="--key is the whole key.")
@click.option(
    "--by",
    type=click.Choice(["age", "size", "close"]),
    default="age",
    help="Oldest, largest, or those first that close next (age).",
)
@click.option("--keys", is_flag=True, help="List each key in windows that all keys share.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="How many windows (50).")
@click.option(
    "--content",
    is_flag=True,
    help="Show what is in the windows of --key KEY --exact: last messages, or the result so far.",
)
@click.option("--json", "form", flag_value="json", help="Print the service's answer as JSON.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", hidden=True)
@remote_options
def windows_cli(
    stream_id: str,
    key: str | None,
    exact: bool,
    by: str,
    keys: bool,
    limit: int,
    content: bool,
    form: str,
    **service: Any,
) -> int:
    """List the open windows of a stream: key, bounds, contents, and when and why they close."""
    query = {"by": by, "limit": str(limit)}
    query |= {"key": key} if key is not None else {}
    query |= {"exact": "true"} if exact or content else {}
    query |= {"content": "true"} if content else {}
    query |= {"keys": "true"} if keys else {}
    answer = _request_windows(
        ServiceClient(**service), build_stream_path(stream_id, "windows"), query
    )
    if form == "json":
        click.echo(json.dumps(answer, indent=2))
        return 0
    if not answer.get("kind"):
        click.echo(f"{stream_id} has no windows, or does not run", err=True)
        return 0
    _print_windows(answer)
    for one in answer.get("contents", ()):
        _print_content(one)
    return 0


def _request_windows(remote: ServiceClient, path: str, query: dict[str, str]) -> dict[str, Any]:
    """Return the service's answer; request one of the shards where their reports are not enough."""
    answer: dict[str, Any] = remote.request("GET", path, query=query)
    if not answer.get("kind") or (answer["complete"] and "content" not in query):
        return answer
    before = answer["answered_at"]
    remote.request("POST", path, query=query)
    until = time.monotonic() + _ANSWER_TIMEOUT_S
    while answer["answered_at"] == before and time.monotonic() < until:
        time.sleep(_POLL_INTERVAL_S)
        answer = remote.request("GET", path, query=query)
    if answer["answered_at"] == before:
        click.echo("no micro-batch has answered yet: this is what is known", err=True)
    return answer


def _print_windows(answer: Mapping[str, Any]) -> None:
    rows = [_row_of(one) for one in answer["windows"]]
    if rows:
        names = ("BUFFER", "KEY", "SIDE", "START", "END", "MESSAGES", "BYTES", "CLOSES")
        # A column that no kind of window of the stream has is left out.
        used = [at for at in range(len(names)) if at > 4 or any(row[at] for row in rows)]
        print_table([names[at] for at in used], [[row[at] or "–" for at in used] for row in rows])
    elif answer["open"] and answer["complete"]:
        click.echo("no open window matches", err=True)
    elif not answer["open"]:
        click.echo("no window is open", err=True)
    if (more := answer["matches"] - len(rows)) > 0:
        click.echo(f"and {more:,} more; --limit, --key and --by choose others")
    if not answer["complete"]:
        click.echo(
            f"of {answer['open']:,} open windows not all were looked through; --key KEY --exact "
            "finds any key"
        )
    for one in _sum_drops(answer.get("dropped", ())).items():
        click.echo(escape_controls(f"dropped lately: {one[1]:,} {_DROP_TEXTS.get(one[0], one[0])}"))


def _row_of(one: Mapping[str, Any]) -> tuple[str, ...]:
    messages, size = one["messages"], one["bytes"]
    return (
        one.get("buffer", ""),
        one["key"] or "",
        one["side"] or "",
        *(_format_time(one[name]) for name in ("start", "end")),
        "" if messages is None else f"{messages:,}",
        "" if size is None else f"{size:,}",
        describe_close(one),
    )


def describe_close(one: Mapping[str, Any]) -> str:
    """Return when and why a window closes, in words.

    Args:
        one: a window, as the API gives it.
    """
    at = _format_time(one["closes"])
    text = {
        "event_time": f"event time {at}",
        "key_time": f"event time {at} of its key",
        "clock": at,
        "message": f"with each message; kept until event time {at}",
        "count": f"after {one['messages_missing'] or 0:,} more messages",
        "never": "never",
    }.get(one["closes_by"], at)
    if one["closes_by"] == "count" and one["messages_missing"] == 1:
        text = "after 1 more message"
    if one["closes_idle"]:
        text += f", or {_format_time(one['closes_idle'])} if no message comes"
    return text


def _print_content(content: Mapping[str, Any]) -> None:
    click.echo("")
    bounds = f"{_format_time(content['start']) or '–'} to {_format_time(content['end']) or '–'}"
    if "error" in content:
        click.echo(escape_controls(f"{bounds}: {content['error']}"))
        return
    if "mapping" in content:
        result = content["result"]
        shown = "nothing: the mapping deletes it" if result is None else _show_message(result)
        click.echo(f"{bounds}: {content['messages']:,} messages, aggregated")
        click.echo(escape_controls(f"  result so far: {shown}"))
        return
    last = content["last"]
    click.echo(f"{bounds}: the last {len(last)} of {content['messages']:,} messages")
    for one in last:
        click.echo(escape_controls(f"  {_show_message(one)}"))


def _show_message(message: Mapping[str, Any]) -> str:
    error = message.get("error")
    return f"{message['content']}{'' if error is None else f'  (failed: {error})'}"


def _sum_drops(drops: Any) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in drops:
        sums[one["reason"]] = sums.get(one["reason"], 0) + one["messages"]
    return sums


def _format_time(text: str | None) -> str:
    """Return a time to the millisecond, rounded up: a window has not closed before."""
    if text is None:
        return ""
    ns = parse_rfc3339(text).ns
    return format_rfc3339(-(-ns // MILLISECOND) * MILLISECOND)
