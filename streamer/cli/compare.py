"""`streamer compare`: the rows that another program makes of the same messages, and this one."""

from __future__ import annotations

import json
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from streamer.cli.completion.values import FILE, complete_config
from streamer.cli.error_output import print_error
from streamer.cli.options import (
    TEMPLATES,
    Options,
    gather_options,
    merge_options,
    open_config,
    parse_options,
    stream_options,
)
from streamer.cli.redact_output import build_redactor
from streamer.cli.text_table import print_table
from streamer.core.durations import SECOND, parse_duration
from streamer.core.errors import StreamerError

if TYPE_CHECKING:
    from streamer.config import Config
    from streamer.plan import Plan
    from streamer.tools.comparison.compare import ComparisonOutcome, ComparisonRequest
    from streamer.tools.comparison.programs import Program
    from streamer.tools.comparison.recording import RecordedMessage
    from streamer.tools.comparison.row_comparison import RowRules

_HELP: Final = """\
Feed the same recorded messages to another program, and report the rows that differ.

The other program is Benthos, Redpanda Connect, or another version of streamer. The messages come
from a file, or are recorded from the config's input without marking anything as read. Outputs are
replaced by files, and nothing is sent. Exits with 0 when all rows are equal, with 1 when some
differ, and with 2 when they could not be compared.

\b
  streamer compare -c config.yaml --benthos redpanda-connect --input sample.ndjson
  streamer compare -c config.yaml --streamer 0.1.0 --record 10000 --key id
"""
_EQUAL: Final = 0
_DIFFERENT: Final = 1
_NOT_COMPARED: Final = 2


class _CompareCommand(click.Command):
    """A command whose exit code of a wrong command line is not that of a difference."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as e:
            e.show()
            ctx.exit(_NOT_COMPARED)


@dataclass(frozen=True)
class CompareOptions:
    """The options of the command itself."""

    benthos: str | None
    other_streamer: str | None
    other_config: str | None
    sample: str | None
    sample_form: str
    record: str | None
    save_input: str | None
    limit: int
    keys: tuple[str, ...]
    ordered: bool
    ignore: tuple[str, ...]
    exact: bool
    within: str
    allow_calls: tuple[str, ...]
    form: str


@click.command("compare", help=_HELP, cls=_CompareCommand)
@click.argument("file", required=False, shell_complete=complete_config)
@click.option(
    "--benthos",
    metavar="PROGRAM",
    type=FILE,
    help="Benthos, Redpanda Connect or rpk: a file, or a name on PATH.",
)
@click.option(
    "--streamer",
    "other_streamer",
    metavar="VERSION",
    type=FILE,
    help="A version of streamer, which is installed by itself; or a wheel, or the directory of an "
    "environment.",
)
@click.option(
    "--other-config",
    type=FILE,
    metavar="FILE",
    help="The config of the other program, if it is another one.",
)
@click.option(
    "--input",
    "sample",
    type=FILE,
    metavar="FILE",
    help="Recorded messages: a file, a directory of files, or - for the standard input.",
)
@click.option(
    "--input-form",
    "sample_form",
    type=click.Choice(["auto", "lines", "records"]),
    default="auto",
    show_default=True,
    help="Whether a line of it is a message, or a record with content and metadata.",
)
@click.option(
    "--record",
    metavar="N|DURATION",
    help="Record so many messages, or for so long, from the config's input.",
)
@click.option(
    "--save-input", type=FILE, metavar="FILE", help="Keep the messages in a file, for --input."
)
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=100_000,
    show_default=True,
    help="Messages at most.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="PATH",
    help="A field by which rows are matched, @name for metadata; may be repeated.",
)
@click.option("--ordered", is_flag=True, help="Match rows by their order.")
@click.option(
    "--ignore",
    multiple=True,
    metavar="PATH",
    help="A field that does not matter, such as created_at, items.*.id or @trace; may be repeated.",
)
@click.option(
    "--exact", is_flag=True, help="The same JSON value in another text is a difference, too."
)
@click.option(
    "--within",
    metavar="DURATION",
    default="10m",
    show_default=True,
    help="How long both programs may run.",
)
@click.option(
    "--allow-calls",
    multiple=True,
    metavar="NAME",
    help="The name or label of a component whose calls both programs may make; may be repeated.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A table, or one JSON document.",
)
@stream_options
@gather_options(CompareOptions)
@click.pass_obj
def compare_cli(root: Options, own: CompareOptions, /, file: str | None, **given: Any) -> int:
    """Compare the rows of two programs."""
    try:
        options = merge_options(root, parse_options(**given), file, "compare")
        _check_options(own)
        with _interrupt_on_sigterm(), open_config(options) as config:
            return _compare_config(config, options, own)
    except StreamerError as e:
        print_error(e)
    except click.ClickException as e:
        e.show()
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
    return _NOT_COMPARED


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the programs, and remove the files, as Ctrl-C does."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check_options(own: CompareOptions) -> None:
    if (own.benthos is None) == (own.other_streamer is None):
        raise click.UsageError("name the other program: --benthos PROGRAM or --streamer VERSION")
    if (own.sample is None) == (own.record is None):
        raise click.UsageError("name the messages: --input FILE or --record N|DURATION")
    if own.ordered and own.keys:
        raise click.UsageError("--ordered and --key exclude each other")


def _compare_config(config: Config, options: Options, own: CompareOptions) -> int:
    from streamer.core.limits import set_limits
    from streamer.plan import make_plan
    from streamer.plan.canary import list_calls
    from streamer.tools.comparison.compare import compare

    plan = make_plan(config, "OFF")
    set_limits(plan.limits)
    problems, caches = list_calls(plan, own.allow_calls)
    if problems:
        raise StreamerError(
            f"both programs would make calls that are seen outside: {'; '.join(problems)}. Allow "
            "the calls that may be made twice with --allow-calls NAME"
        )
    with tempfile.TemporaryDirectory(prefix="streamer-compare-") as directory:
        request = _make_request(plan, options, own, Path(directory))
        outcome = compare(request)
    notes = [*outcome.notes, *(f"the cache {label} begins empty in both" for label in caches)]
    redact = build_redactor(config)
    if own.form == "json":
        click.echo(redact(json.dumps(_to_document(request, outcome, notes), ensure_ascii=False)))
    else:
        _print_outcome(request, outcome, notes, redact)
    return _EQUAL if outcome.rows.is_equal else _DIFFERENT


def _make_request(
    plan: Plan, options: Options, own: CompareOptions, directory: Path
) -> ComparisonRequest:
    from streamer.tools.comparison.compare import ComparisonRequest, Participant
    from streamer.tools.comparison.config_document import read_document
    from streamer.tools.comparison.programs import this_program

    document = read_document(options.config, options.sets, options.resources)
    other_document = document
    if own.other_config is not None:
        other_document = read_document(own.other_config, (), ())
    templates = click.get_current_context().meta.get(TEMPLATES, ())
    arguments = [part for one in templates for part in ("-t", str(Path(one).absolute()))]
    seconds = _parse_seconds("--within", own.within)
    messages = _read_messages(plan, document.values, own, directory, seconds)
    return ComparisonRequest(
        plan=plan,
        this=Participant(this_program().with_arguments(arguments), document),
        other=Participant(_find_program(plan, own).with_arguments(arguments), other_document),
        messages=messages,
        rules=_make_rules(own),
        seconds=seconds,
        directory=directory,
        report=lambda text: click.echo(text, err=True),
    )


def _make_rules(own: CompareOptions) -> RowRules:
    from streamer.engine.canary.field_differences import ComparisonRules
    from streamer.tools.comparison.row_comparison import RowRules

    return RowRules(
        fields=ComparisonRules(ignored=own.ignore),
        keys=own.keys,
        ordered=own.ordered,
        exact_text=own.exact,
        error_texts=own.benthos is None,
    )


def _find_program(plan: Plan, own: CompareOptions) -> Program:
    from streamer.tools.comparison.environments import find_environment
    from streamer.tools.comparison.programs import find_benthos, find_streamer

    if own.benthos is not None:
        return find_benthos(own.benthos)
    given = own.other_streamer or ""
    environment = find_environment(
        given, list(_list_packages(plan)), lambda text: click.echo(text, err=True)
    )
    return find_streamer(environment, given)


def _list_packages(plan: Plan) -> Iterator[str]:
    """Give the packages that the components need which are not replaced."""
    from streamer.components.catalog import find_spec
    from streamer.sdk.spec.children import walk_components

    roots = [*plan.all_buffers, *plan.all_processors, *plan.resources.values()]
    for one in walk_components([*roots, *plan.input.processors, *plan.output.processors]):
        spec = find_spec(one.kind, one.name)
        yield from (str(package) for package in (spec.requires if spec is not None else ()))


def _read_messages(
    plan: Plan, document: Any, own: CompareOptions, directory: Path, within: float
) -> Sequence[RecordedMessage]:
    from streamer.tools.comparison.record_input import record_input
    from streamer.tools.comparison.recording import RecordingForm, read_recording, write_records

    if own.sample is not None:
        messages = read_recording(own.sample, RecordingForm(own.sample_form), own.limit)
    else:
        count, seconds = _parse_record(own)
        place = directory / "recording"
        place.mkdir()
        messages = record_input(
            plan,
            document,
            max_messages=count,
            seconds=seconds,
            within=within,
            directory=place,
            report=lambda text: click.echo(text, err=True),
        )
    if own.save_input is not None:
        try:
            with Path(own.save_input).open("wb") as file:
                write_records(messages, file)
        except OSError as e:
            text = (e.strerror or str(e)).lower()
            raise StreamerError(f"--save-input {own.save_input}: {text}") from None
    return messages


def _parse_record(own: CompareOptions) -> tuple[int, float | None]:
    text = own.record or ""
    if text.isdigit() and int(text) > 0:
        return min(int(text), own.limit), None
    return own.limit, _parse_seconds("--record", text)


def _parse_seconds(option: str, text: str) -> float:
    try:
        seconds = parse_duration(text) / SECOND
    except ValueError as e:
        raise StreamerError(f"{option} {text}: {e}") from None
    if seconds <= 0:
        raise StreamerError(f"{option} {text}: expected more than 0s")
    return seconds


def _to_document(
    request: ComparisonRequest, outcome: ComparisonOutcome, notes: Sequence[str]
) -> dict[str, Any]:
    rows = outcome.rows
    return {
        "equal": rows.is_equal,
        "other": request.other.program.name,
        "this": request.this.program.name,
        "messages": len(request.messages),
        "rows": {
            name: getattr(rows, name)
            for name in ("other_rows", "this_rows", "equal", "changed", "missing", "added")
        },
        "differences": [one.to_document() for one in rows.differences],
        "notes": list(notes),
        "seconds": round(outcome.seconds, 1),
    }


def _print_outcome(
    request: ComparisonRequest, outcome: ComparisonOutcome, notes: Sequence[str], redact: Any
) -> None:
    rows = outcome.rows
    other, this = request.other.program.name, request.this.program.name
    if other == this:
        other, this = f"other {other}", f"this {this}"
    click.echo(
        f"{len(request.messages):,} messages: {rows.other_rows:,} rows of {other}, "
        f"{rows.this_rows:,} of {this}"
    )
    parts = {
        "equal": rows.equal,
        "changed": rows.changed,
        f"only of {other}": rows.missing,
        f"only of {this}": rows.added,
    }
    shown = [f"{count:,} {name}" for name, count in parts.items() if count or name == "equal"]
    click.echo(", ".join(shown))
    if rows.differences:
        click.echo("")
        _print_differences(outcome, (other, this), redact)
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _print_differences(outcome: ComparisonOutcome, names: tuple[str, str], redact: Any) -> None:
    cells: list[list[str]] = []
    for number, one in enumerate(outcome.rows.differences, 1):
        start = [str(number), one.output, one.key]
        for field in one.fields:
            cells.append([*start, field.path, field.old or "–", field.new or "–"])
        if more := one.field_count - len(one.fields):
            cells.append([*start, f"({more} more fields)", "", ""])
        if not one.fields:
            sides = [one.content, "–"] if one.kind == "missing" else ["–", one.content]
            cells.append([*start, "the row", *sides])
    titles = ["ROW", "OUTPUT", "KEY", "FIELD", *(name.upper() for name in names)]
    outputs = {row[1] for row in cells}
    left_out = {1} if len(outputs) == 1 else set()
    left_out |= {2} if not any(row[2] for row in cells) else set()
    kept = [number for number in range(len(titles)) if number not in left_out]
    print_table(
        [titles[number] for number in kept],
        [[redact(row[number]) for number in kept] for row in cells],
    )
    rows = outcome.rows
    hidden = rows.changed + rows.missing + rows.added - len(rows.differences)
    if hidden:
        click.echo(f"… and {hidden:,} more")
