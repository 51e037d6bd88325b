"""`streamer query`: the results of windows that a stream keeps, while it runs or not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import FILE
from streamer.cli.options import (
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.cli.redact_output import build_redactor
from streamer.cli.service_client import ServiceClient, build_stream_path, remote_options
from streamer.core.json.dump import dump_json

if TYPE_CHECKING:
    from streamer.engine.results.query_model import ResultQuery

_HELP: Final = """\
Show the results of windows that a stream keeps, while it runs or not.

A stream keeps them whose window buffer has the field `retention`. CONFIG is its config, or its
checkpoint directory; with --stream, a service is asked for its stream. Without --all-revisions, of
each window its latest revision is shown.

\b
  streamer query config.yaml --key alice
  streamer query config.yaml --from 2026-11-21T00:00:00Z --to 2026-11-22T00:00:00Z --format csv
  streamer query --stream orders --url http://127.0.0.1:4195 --order newest --limit 20
  streamer query config.yaml --sql "SELECT key, content->>'$.count' FROM results LIMIT 10"
"""
_COLUMNS: Final = ("key", "start", "end", "emit", "revision", "content")
_MAX_CELL_WIDTH: Final = 80
_MAX_PAGE_RESULTS: Final = 10_000

Row = Sequence[Any]


@dataclass(frozen=True)
class QueryOptions:
    """The options of the command itself."""

    key: str | None
    since: str | None
    until: str | None
    latest: bool
    order: str | None
    sql: str | None
    lists_files: bool
    limit: int
    form: str
    stream: str | None
    url: str
    token: str | None
    user: str | None

    @property
    def own_conditions(self) -> dict[str, str]:
        """The conditions other than SQL, by the names of the API's parameters."""
        named = {"key": self.key, "from": self.since, "to": self.until, "order": self.order}
        return {name: value for name, value in named.items() if value is not None}


@click.command("query", help=_HELP)
@click.argument("file", metavar="[CONFIG]", required=False, type=FILE)
@click.option("--key", metavar="KEY", help="The windows of this key, as window_key shows it.")
@click.option(
    "--from", "since", metavar="TIME", help="Windows that start at or after it (RFC 3339, Unix s)."
)
@click.option("--to", "until", metavar="TIME", help="Windows that end at or before it.")
@click.option(
    "--latest/--all-revisions",
    default=True,
    help="Of each window the latest revision (default), or all that there still are.",
)
@click.option(
    "--order",
    type=click.Choice(["oldest", "newest"]),
    help="Which windows come first, by their ends (oldest).",
)
@click.option("--sql", metavar="SELECT", help="A SELECT of DuckDB's over the table results.")
@click.option(
    "--files",
    "lists_files",
    is_flag=True,
    help="The Parquet files that the results are in, a path a line, for other programs.",
)
@click.option(
    "--limit", type=click.IntRange(1), default=1000, show_default=True, help="Results at most."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="A table for people, a JSON object a line, or CSV.",
)
@click.option("--stream", metavar="ID", help="The stream of a service; see --url.")
@remote_options
@stream_options
@click.pass_obj
@gather_options(QueryOptions)
def query_cli(root: Options, own: QueryOptions, /, file: str | None, **given: Any) -> int:
    """Show results."""
    if own.sql is not None and own.own_conditions:
        beside = ", ".join(f"--{name}" for name in own.own_conditions)
        raise click.UsageError(f"--sql says itself which results: leave out {beside}")
    if own.lists_files and (own.sql is not None or own.own_conditions or own.stream is not None):
        raise click.UsageError(
            "--files takes a config or a checkpoint directory, and no conditions"
        )
    if own.stream is not None:
        if file is not None:
            raise click.UsageError("query needs a config or --stream, not both")
        _note_more(_query_service(own, own.stream), own.limit)
        return 0
    options = merge_options(root, parse_options(**given), file, "query")
    directory = _find_results_directory(options)
    if own.lists_files:
        from streamer.engine.results.layout import list_result_files

        _print_lines(str(path.absolute()) for path in list_result_files(directory))
        return 0
    # These are made with DuckDB and pyarrow: not for --help.
    from streamer.engine.results.query_model import ResultQuery
    from streamer.engine.results.query_times import parse_time

    question = ResultQuery(
        own.key,
        None if own.since is None else parse_time("--from", own.since),
        None if own.until is None else parse_time("--to", own.until),
        not own.latest,
        newest_first=own.order == "newest",
    )
    if own.sql is None:
        more = _show_results(directory, question, own.limit, own.form)
    else:
        more = _show_sql_rows(directory, own.sql, not own.latest, own.limit, own.form)
    _note_more(more, own.limit)
    return 0


def _note_more(more: bool, limit: int) -> None:
    if more:
        click.echo(f"there is more; these are the first {limit:,} (--limit)", err=True)


def _query_service(own: QueryOptions, stream_id: str) -> bool:
    """Show results of a stream of a service; return whether there are more."""
    service = ServiceClient(own.url, own.token, own.user)
    query = {**own.own_conditions, "limit": str(own.limit)}
    query |= {} if own.latest else {"revisions": "all"}
    query |= {} if own.sql is None else {"sql": own.sql}
    if own.form != "table":
        form = {"json": "jsonl"}.get(own.form, own.form)
        path = build_stream_path(stream_id, "results", "download")
        text, headers = service.download(path, {**query, "format": form})
        click.echo(text, nl=False)
        return headers.get("X-Results-Cut") == "true"
    path = build_stream_path(stream_id, "results")
    if own.sql is not None:
        table = service.request("GET", path, query=query)
        _print_table(table["columns"], table["rows"])
        return bool(table["cut"])
    rows: list[Row] = []
    while True:
        query["limit"] = str(min(own.limit - len(rows), _MAX_PAGE_RESULTS))
        page = service.request("GET", path, query=query)
        rows += [
            [one.get(name, one.get("content_base64")) for name in _COLUMNS]
            for one in page["results"]
        ]
        if not page["next"] or len(rows) >= own.limit:
            _print_table(_COLUMNS, rows)
            return bool(page["next"])
        query["after"] = page["next"]


def _find_results_directory(options: Options) -> Path:
    """Return where the results are of the checkpoint, or of the config, that is named."""
    from streamer.engine.results.results_directory import find_results_directory
    from streamer.plan.checkpoint_dir import choose_checkpoint

    named = options.config
    if named is None and options.checkpoint is None:
        raise click.UsageError("query needs a config, or the checkpoint directory of a stream")
    if named is None or Path(named).is_dir():
        return find_results_directory(str(named or options.checkpoint), None, "")
    with open_config(options) as config:
        checkpoint = choose_checkpoint(config, options.checkpoint, os.environ)
        return find_results_directory(checkpoint, config, build_redactor(config)(config.path))


def _show_results(directory: Path, question: ResultQuery, limit: int, form: str) -> bool:
    from streamer.engine.results.exports import RESULT_COLUMNS, select_cells
    from streamer.engine.results.query import iterate_results

    results = iterate_results(directory, question, time.time_ns())
    first_results = islice(results, limit)
    if form == "json":
        _print_lines(dump_json(result.to_json_values()).decode() for result in first_results)
    elif form == "csv":
        _print_csv(RESULT_COLUMNS, (select_cells(one, RESULT_COLUMNS) for one in first_results))
    else:
        _print_table(_COLUMNS, [select_cells(result, _COLUMNS) for result in first_results])
    return next(results, None) is not None


def _show_sql_rows(directory: Path, sql: str, revisions: bool, limit: int, form: str) -> bool:
    from streamer.engine.results.json_cells import to_json_value
    from streamer.engine.results.sql_query import run_select

    answer = run_select(directory, sql, time.time_ns(), revisions=revisions, limit=limit)
    rows = [[to_json_value(value) for value in row] for row in answer.rows]
    if form == "json":
        _print_lines(
            dump_json(dict(zip(answer.columns, row, strict=True))).decode() for row in rows
        )
    elif form == "csv":
        _print_csv(answer.columns, rows)
    else:
        _print_table(answer.columns, rows)
    return answer.cut


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _print_csv(columns: Sequence[str], rows: Iterable[Row]) -> None:
    from streamer.engine.results.exports import format_csv_row

    click.echo(format_csv_row(columns))
    for row in rows:
        click.echo(format_csv_row(row))


def _print_table(columns: Sequence[str], rows: Sequence[Row]) -> None:
    if not rows:
        click.echo("no results", err=True)
        return
    from streamer.engine.results.exports import format_cell

    texts = [[_shorten_text(format_cell(value)) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    head = _format_row(columns, widths)
    click.echo(click.style(head, bold=True))
    for row in texts:
        click.echo(_format_row(row, widths))


def _format_row(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _shorten_text(text: str) -> str:
    text = text.replace("\n", " ").replace("\r", " ").replace("\x1b", "")
    return text if len(text) <= _MAX_CELL_WIDTH else f"{text[: _MAX_CELL_WIDTH - 1]}…"
