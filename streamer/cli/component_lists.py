"""The lists of `streamer list`: what is in them, as text and for programs."""

from __future__ import annotations

import difflib
import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import click

from streamer.bloblang.plugin_functions import list_plugin_functions
from streamer.bloblang.reference import DeclarationKind, format_example
from streamer.bloblang.reference import describe_declarations as described_calls
from streamer.components import catalog
from streamer.config.known_names import explain_missing
from streamer.config.sections import SECTIONS
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
_TEXT_FIELDS: Final = frozenset({"summary", "description", "examples"})
_SUMMARY_FIELDS: Final = ("name", "package", "status", "summary")
_MAX_NAME_WIDTH: Final = 28
_MAX_COLUMNS: Final = 100
Entry = dict[str, Any]
_LIST_HINT: Final = "`streamer list {}` shows those that there are"


class _ListRequest(NamedTuple):
    """The request: lists, and names in them (all when there are none)."""

    lists: list[str]
    names: list[str]


def list_entries(words: Iterable[str], status: str | None) -> tuple[dict[str, list[Any]], bool]:
    """Return the entries of lists, and whether they were named.

    Args:
        words: lists, and names in them.
        status: only entries of this status.

    Raises:
        StreamerError: there is no such list or name; the text has the nearest one.
    """
    lists, names = _parse_request(words)
    by_list = {name: _load_entries(name, names, status) for name in lists}
    if names:
        _check_names(names, lists, by_list)
    return by_list, bool(names)


def to_json_document(by_list: dict[str, list[Any]], form: str, has_sections: bool) -> Any:
    """Return entries in one of the formats for programs: summary, json, json-full, …-scrubbed."""
    if form == "summary":
        return _summarize_lists(by_list)
    if form == "json":
        return {
            name: [entry["name"] for entry in entries] if name in _KINDS else entries
            for name, entries in by_list.items()
        }
    if has_sections:
        by_list = {**by_list, "config": [field_to_json(section) for section in SECTIONS]}
    return _strip_texts(by_list) if form == "json-full-scrubbed" else by_list


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
        for problem in list_plugin_functions()[1]:
            click.echo(f"streamer: warning: {problem}", err=True)
    else:
        kind = _KINDS[name]
        entries = [described_component(spec) for spec in catalog.kind_specs(kind)]
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
            missing = [explain_missing(_KINDS[one], name) for one in lists if one in _KINDS]
            if text := next(filter(None, missing), ""):
                if text.endswith("yet"):
                    text = f"{text}: Benthos has it, and streamer does not"
                raise StreamerError(f"{text}; {_LIST_HINT.format(' '.join(lists))}")
            # It may also have been meant as another list.
            close = difflib.get_close_matches(name, [*known, *LISTS], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise StreamerError(f"there is no {name!r} among {', '.join(lists)}{hint}")


def format_lists(by_list: dict[str, list[Any]], in_full: bool) -> str:
    """Return entries as text: a line each, or all that there is to say about each."""
    if in_full:
        return "\n\n".join(
            _format_entry(entry) for entries in by_list.values() for entry in entries
        )
    return "\n\n".join(
        "\n".join([f"{_format_title(name)}:", *_format_lines(entries)])
        for name, entries in by_list.items()
    )


def _format_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Return a line for each entry: its name, as Benthos prints it, and its summary."""
    width = min(_MAX_NAME_WIDTH, max((len(entry["name"]) for entry in entries), default=0))
    for entry in entries:
        line = f"  - {entry['name']:{width}}  "
        rest = _MAX_COLUMNS - len(line)
        yield (line + textwrap.shorten(_summarize(entry), rest, placeholder=" …")).rstrip()


def _summarize(entry: Entry) -> str:
    """Return the first sentence of an entry's summary, its package and an unstable status."""
    summary = entry["summary"].partition(". ")[0].rstrip(".").replace("\n", " ")
    status = [] if entry["status"] == "stable" else [entry["status"]]
    notes = [*status, *([entry["package"]] if "package" in entry else [])]
    return f"({', '.join(notes)}) {summary}" if notes else summary


def _summarize_lists(by_list: dict[str, list[Any]]) -> dict[str, list[Entry]]:
    return {
        name: [
            {field: entry[field] for field in _SUMMARY_FIELDS if field in entry}
            for entry in entries
        ]
        for name, entries in by_list.items()
    }


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
    if "package" in entry:
        lines.append(_indent_text(f"It comes from the package {entry['package']}."))
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
