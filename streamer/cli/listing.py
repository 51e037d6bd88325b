"""`streamer list`: the components, functions and methods that there are."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import click

from streamer import catalog
from streamer.bloblang.reference import Sort, example_text
from streamer.bloblang.reference import described as described_calls
from streamer.cli.environment import env_file_option
from streamer.cli.options import templates_option
from streamer.errors import StreamerError
from streamer.spec import Kind
from streamer.spec.described import described as described_component
from streamer.spec.described import described_field

# In Benthos's order.
_KINDS: Final[dict[str, Kind]] = {
    "inputs": Kind.INPUT,
    "processors": Kind.PROCESSOR,
    "outputs": Kind.OUTPUT,
    "caches": Kind.CACHE,
    "rate-limits": Kind.RATE_LIMIT,
    "buffers": Kind.BUFFER,
    "metrics": Kind.METRICS,
    "tracers": Kind.TRACER,
    "scanners": Kind.SCANNER,
}
_CALLS: Final[dict[str, Sort]] = {"bloblang-functions": "function", "bloblang-methods": "method"}
LISTS: Final = (*_KINDS, *_CALLS)
_FORMATS: Final = ("text", "json", "json-full", "json-full-scrubbed", "jsonschema")
_SCRUBBED: Final = frozenset({"summary", "description", "examples"})
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


class _Asked(NamedTuple):
    """What was asked for: lists, and names in them (all when there are none)."""

    lists: list[str]
    names: list[str]


def _checked(ctx: click.Context, param: click.Parameter, form: str) -> str:
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
@click.argument("asked", nargs=-1, metavar="[LIST]… [NAME]…")
@click.option(
    "--format",
    "form",
    default="text",
    callback=_checked,
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
def list_cli(asked: tuple[str, ...], form: str, status: str | None) -> int:
    """List what configs and mappings may use."""
    lists, names = _understood(asked)
    if form == "jsonschema" and not set(lists) & set(_CALLS):
        from streamer.config.schema import schema_text

        click.echo(schema_text(), nl=False)
        return 0
    found = {name: _entries(name, names, status) for name in lists}
    if names:
        _check_names(names, lists, found)
    if form == "text":
        click.echo(_text(found, bool(names)))
        return 0
    if form == "json":
        for name in found.keys() & _KINDS.keys():
            found[name] = [entry["name"] for entry in found[name]]
    elif not asked:
        from streamer.config.sections import SECTIONS

        found["config"] = [described_field(section) for section in SECTIONS]
    shown = _scrubbed(found) if form == "json-full-scrubbed" else found
    click.echo(json.dumps(shown, ensure_ascii=False))
    return 0


def _scrubbed(found: Any) -> Any:
    """Return the same without what is written for people."""
    if isinstance(found, list):
        return [_scrubbed(item) for item in found]
    if not isinstance(found, dict):
        return found
    # What a field's default holds is data, whatever its keys are called.
    return {
        name: value if name == "default" else _scrubbed(value)
        for name, value in found.items()
        if name not in _SCRUBBED
    }


def _understood(asked: Iterable[str]) -> _Asked:
    """Tell lists from names, which come after a list.

    Raises:
        StreamerError: there is no such list.
    """
    lists: list[str] = []
    names: list[str] = []
    for word in asked:
        if word in LISTS:
            lists.append(word)
        elif lists:
            names.append(word)
        else:
            close = difflib.get_close_matches(word, LISTS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"the lists are {', '.join(LISTS)}"
            raise StreamerError(f"there is no list {word!r}; {hint}")
    return _Asked([name for name in LISTS if name in lists or not lists], names)


def _entries(name: str, names: list[str], status: str | None) -> list[Any]:
    if name in _CALLS:
        entries: list[Entry] = described_calls(_CALLS[name])
    else:
        kind = _KINDS[name]
        specs = (catalog.spec(kind, one) for one in sorted(catalog.names(kind)))
        entries = [described_component(spec) for spec in specs if spec is not None]
    return [
        entry
        for entry in entries
        if (not names or entry["name"] in names) and status in (None, entry["status"])
    ]


def _check_names(names: list[str], lists: list[str], found: dict[str, list[Any]]) -> None:
    there = {entry["name"] for entries in found.values() for entry in entries}
    for name in names:
        if name not in there:
            known = [entry["name"] for one in lists for entry in _entries(one, [], None)]
            # It may also have been meant as another list.
            close = difflib.get_close_matches(name, [*known, *LISTS], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise StreamerError(f"there is no {name!r} among {', '.join(lists)}{hint}")


def _text(found: dict[str, list[Any]], in_full: bool) -> str:
    if in_full:
        return "\n\n".join(_in_full(entry) for entries in found.values() for entry in entries)
    return "\n\n".join(
        "\n".join([f"{_title(name)}:", *(f"  - {entry['name']}" for entry in entries)])
        for name, entries in found.items()
    )


def _takes(field: Entry) -> str:
    """Return what a field takes, and what it is without one."""
    one = "any value" if field["type"] == "unknown" else field["type"].replace("_", " ")
    one = "mapping" if field.get("bloblang") else one
    text = {"array": f"list of {one}", "map": f"map of {one}"}.get(field["kind"], one)
    if "default" in field:
        return f"{text}, {json.dumps(field['default'], ensure_ascii=False)} by default"
    return f"{text}, {'optional' if field.get('is_optional') else 'required'}"


def _title(name: str) -> str:
    return name.replace("-", " ").title()


def _wrapped(text: str) -> str:
    return click.wrap_text(text, 100, "  ", "    ")


def _indented(text: str) -> str:
    return textwrap.indent(text, "  ")


def _in_full(entry: Entry) -> str:
    """Return what there is to say about one component, function or method."""
    lines = [click.style(entry.get("signature", entry["name"]), bold=True)]
    if entry["summary"]:
        lines.append(_wrapped(entry["summary"]))
    if entry["status"] != "stable":
        lines.append(_indented(f"It is {entry['status']}."))
    if entry.get("impure"):
        lines.append(_indented("--no-impure switches it off."))
    for param in entry.get("params", ()):
        default = "" if param["required"] else f", {json.dumps(param['default'])} by default"
        lines.append(_indented(f"{param['name']}: {param['type']}{default}"))
    for child in entry.get("config", {}).get("children", ()):
        lines.append(_wrapped(f"{child['name']}: {_takes(child)}. {child['description']}".strip()))
    for example in entry["examples"]:
        if "mapping" in example:
            text = example_text(example["mapping"], example["input"], example["output"])
        else:
            text = f"{example['title']}\n\n{example['config'].rstrip()}"
        lines += ["", _indented(text)]
    return "\n".join(lines)
