"""`streamer list`: the components, functions and methods that there are."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import click

from streamer.bloblang.reference import DeclarationKind, format_example
from streamer.bloblang.reference import describe_declarations as described_calls
from streamer.cli.completion.values import complete_list_words
from streamer.cli.environment import env_file_option
from streamer.cli.options import templates_option
from streamer.components import catalog
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind
from streamer.sdk.spec.spec_json import field_to_json
from streamer.sdk.spec.spec_json import spec_to_json as described_component

# In Benthos's order.
_KINDS: Final[dict[str, Kind]] = {
    "inputs": Kind.INPUT,
    "processors": Kind.PROCESSOR,
    "outputs": Kind.OUTPUT,
    "caches": Kind.CACHE,
    "rate-limits": Kind.RATE_LIMIT,
    "tables": Kind.TABLE,
    "buffers": Kind.BUFFER,
    "metrics": Kind.METRICS,
    "tracers": Kind.TRACER,
    "scanners": Kind.SCANNER,
}
_CALLS: Final[dict[str, DeclarationKind]] = {
    "bloblang-functions": "function",
    "bloblang-methods": "method",
}
LISTS: Final = (*_KINDS, *_CALLS)
_FORMATS: Final = ("text", "json", "json-full", "json-full-scrubbed", "jsonschema")
_TEXT_FIELDS: Final = frozenset({"summary", "description", "examples"})
_STATUSES: Final = ("stable", "beta", "experimental", "deprecated")

_HELP: Final = f"""\
List what configs and mappings may use.

Name lists to see only these, and names to see only what is called so; a function or method that is
named is shown with its parameters and examples.

The lists: {", ".join(LISTS)}.

\b
  streamer list
  streamer list inputs outputs
  streamer list bloblang-methods uppercase
  streamer list bloblang-functions --format json
"""

Entry = dict[str, Any]


class _ListRequest(NamedTuple):
    """The request: lists, and names in them (all when there are none)."""

    lists: list[str]
    names: list[str]


def _check_format(ctx: click.Context, param: click.Parameter, form: str) -> str:
    """Return a format that there is."""
    if form == "cue":
        raise click.BadParameter(
            "cue is not available; CUE's own tool makes it of the JSON Schema: streamer list "
            "--format jsonschema > config.json && cue import jsonschema: config.json",
            ctx,
            param,
        )
    return str(click.Choice(_FORMATS).convert(form, param, ctx))


@click.command("list", help=_HELP)
@click.argument("words", nargs=-1, metavar="[LIST]… [NAME]…", shell_complete=complete_list_words)
@click.option(
    "--format",
    "form",
    default="text",
    callback=_check_format,
    metavar="FORMAT",
    show_default=True,
    help=f"One of {', '.join(_FORMATS)}. json has the names of components, and functions and "
    "methods as they are declared; json-full has components and the sections of a config with "
    "all their fields too, json-full-scrubbed the same without descriptions and examples; "
    "jsonschema is the schema of a config.",
)
@templates_option
@env_file_option
@click.option("--status", type=click.Choice(_STATUSES), help="Only what has this status.")
def list_cli(words: tuple[str, ...], form: str, status: str | None) -> int:
    """List what configs and mappings may use."""
    lists, names = _parse_request(words)
    if form == "jsonschema" and not set(lists) & set(_CALLS):
        from streamer.config.schema import schema_text

        click.echo(schema_text(), nl=False)
        return 0
    by_list = {name: _load_entries(name, names, status) for name in lists}
    if names:
        _check_names(names, lists, by_list)
    if form == "text":
        click.echo(_format_lists(by_list, bool(names)))
        return 0
    if form == "json":
        for name in by_list.keys() & _KINDS.keys():
            by_list[name] = [entry["name"] for entry in by_list[name]]
    elif not words:
        from streamer.config.sections import SECTIONS

        by_list["config"] = [field_to_json(section) for section in SECTIONS]
    output = _strip_texts(by_list) if form == "json-full-scrubbed" else by_list
    click.echo(json.dumps(output, ensure_ascii=False))
    return 0


def _strip_texts(node: Any) -> Any:
    """Return the same without what is written for people."""
    if isinstance(node, list):
        return [_strip_texts(item) for item in node]
    if not isinstance(node, dict):
        return node
    # What a field's default holds is data, whatever its keys are called.
    return {
        name: value if name == "default" else _strip_texts(value)
        for name, value in node.items()
        if name not in _TEXT_FIELDS
    }


def _parse_request(words: Iterable[str]) -> _ListRequest:
    """Separate lists from names, which come after a list.

    Raises:
        StreamerError: there is no such list.
    """
    lists: list[str] = []
    names: list[str] = []
    for word in words:
        if word in LISTS:
            lists.append(word)
        elif lists:
            names.append(word)
        else:
            close = difflib.get_close_matches(word, LISTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the lists are {', '.join(LISTS)}"
            raise StreamerError(f"there is no list {word!r}; {hint}")
    return _ListRequest([name for name in LISTS if name in lists or not lists], names)


def _load_entries(name: str, names: list[str], status: str | None) -> list[Any]:
    if name in _CALLS:
        entries: list[Entry] = described_calls(_CALLS[name])
    else:
        kind = _KINDS[name]
        specs = (catalog.find_spec(kind, one) for one in sorted(catalog.component_names(kind)))
        entries = [described_component(spec) for spec in specs if spec is not None]
    return [
        entry
        for entry in entries
        if (not names or entry["name"] in names) and status in (None, entry["status"])
    ]


def _check_names(names: list[str], lists: list[str], by_list: dict[str, list[Any]]) -> None:
    known_names = {entry["name"] for entries in by_list.values() for entry in entries}
    for name in names:
        if name not in known_names:
            known = [entry["name"] for one in lists for entry in _load_entries(one, [], None)]
            # It may also have been meant as another list.
            close = difflib.get_close_matches(name, [*known, *LISTS], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise StreamerError(f"there is no {name!r} among {', '.join(lists)}{hint}")


def _format_lists(by_list: dict[str, list[Any]], in_full: bool) -> str:
    if in_full:
        return "\n\n".join(
            _format_entry(entry) for entries in by_list.values() for entry in entries
        )
    return "\n\n".join(
        "\n".join([f"{_format_title(name)}:", *(f"  - {entry['name']}" for entry in entries)])
        for name, entries in by_list.items()
    )


def _format_field(field: Entry) -> str:
    """Return what a field takes, and what it is without one."""
    one = "any value" if field["type"] == "unknown" else field["type"].replace("_", " ")
    one = "mapping" if field.get("bloblang") else one
    text = {"array": f"list of {one}", "map": f"map of {one}"}.get(field["kind"], one)
    if "default" in field:
        return f"{text}, {json.dumps(field['default'], ensure_ascii=False)} by default"
    return f"{text}, {'optional' if field.get('is_optional') else 'required'}"


def _format_title(name: str) -> str:
    return name.replace("-", " ").title()


def _wrap_text(text: str) -> str:
    return click.wrap_text(text, 100, "  ", "    ")


def _indent_text(text: str) -> str:
    return textwrap.indent(text, "  ")


def _format_entry(entry: Entry) -> str:
    """Return what there is to say about one component, function or method."""
    lines = [click.style(entry.get("signature", entry["name"]), bold=True)]
    if entry["summary"]:
        lines.append(_wrap_text(entry["summary"]))
    if entry["status"] != "stable":
        lines.append(_indent_text(f"It is {entry['status']}."))
    if entry.get("impure"):
        lines.append(_indent_text("--no-impure switches it off."))
    for param in entry.get("params", ()):
        default = "" if param["required"] else ", may be left out"
        if "default" in param:
            default = f", {json.dumps(param['default'])} by default"
        lines.append(_indent_text(f"{param['name']}: {param['type']}{default}"))
    for child in entry.get("config", {}).get("children", ()):
        lines.append(
            _wrap_text(f"{child['name']}: {_format_field(child)}. {child['description']}".strip())
        )
    for example in entry["examples"]:
        if "mapping" in example:
            text = format_example(example["mapping"], example["input"], example["output"])
        else:
            text = f"{example['title']}\n\n{example['config'].rstrip()}"
        lines += ["", _indent_text(text)]
    return "\n".join(lines)
