"""The reference of functions and methods, from their declarations: as data and as pages.

`python -m streamer.bloblang.reference` writes the pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from streamer.bloblang.catalogue import FUNCTIONS, METHODS
from streamer.bloblang.declare import CONNECT, OURS, REQUIRED, Declaration, Param
from streamer.extras import install_hint

Sort = Literal["function", "method"]
_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs"
PAGES: Final[Mapping[Sort, Path]] = {
    "function": _DIRECTORY / "bloblang-functions.md",
    "method": _DIRECTORY / "bloblang-methods.md",
}
_ALL: Final[Mapping[Sort, Mapping[str, Declaration]]] = {"function": FUNCTIONS, "method": METHODS}
_INTRODUCTIONS: Final[Mapping[Sort, str]] = {
    "function": (
        "A function stands by itself: `root.id = uuid_v4()`. Methods, which follow a value, have "
        "[a page of their own](bloblang-methods.md); [Bloblang](bloblang.md) says how to use both."
    ),
    "method": (
        "A method follows a value: `root.name = this.name.uppercase()`. Functions, which stand by "
        "themselves, have [a page of their own](bloblang-functions.md); [Bloblang](bloblang.md) "
        "says how to use both."
    ),
}
_GENERATED: Final = "<!-- Written by `python -m streamer.bloblang.reference`: not to be edited. -->"


def described(sort: Sort, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return functions or methods as plain data, sorted by name.

    Each has `name`, `type` (`function` or `method`), `status` (`stable` or `deprecated`),
    `category`, `summary`, `signature`, `params` (each with `name`, `type`, `required`, and
    `default` unless it is required), `variadic`, `examples` (each with `mapping`, `input` and
    `output`), `impure`, and `origin` (`benthos`, `connect`
    or `streamer`).

    Args:
        sort: which.
        names: only these, when there are any.
    """
    wanted = set(names)
    return [
        {
            "name": one.name,
            "type": sort,
            "status": "deprecated" if one.deprecated else "stable",
            "category": one.category,
            "summary": one.summary,
            "signature": signature(one, sort),
            "params": [_param(param) for param in one.params],
            "variadic": one.variadic,
            "examples": [
                {"mapping": example.mapping, "input": example.given, "output": example.result}
                for example in one.examples
            ],
            "impure": one.impure,
            "origin": one.origin,
        }
        for name, one in sorted(_ALL[sort].items())
        if not wanted or name in wanted
    ]


def _param(param: Param) -> dict[str, Any]:
    required = param.default is REQUIRED
    found = {"name": param.name, "type": param.type, "required": required}
    return found if required else {**found, "default": param.default}


def signature(one: Declaration, sort: Sort) -> str:
    """Return how a function or method is called: `range(start, stop, step = 1)`."""
    params = ", ".join(map(_written, one.params))
    if one.variadic:
        params = "…"
    return f"{'.' if sort == 'method' else ''}{one.name}({params})"


def _written(param: Param) -> str:
    if param.default is REQUIRED:
        return param.name
    return f"{param.name} = {_literal(param.default)}"


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def page(sort: Sort) -> str:
    """Return the reference page of all functions or all methods, Markdown.

    It has no date and no version: the same declarations give the same text.
    """
    categories: dict[str, list[Declaration]] = {}
    for one in sorted(_ALL[sort].values(), key=lambda one: (one.deprecated, one.name)):
        categories.setdefault(one.category, []).append(one)
    names = sorted(categories)
    parts = [f"# Bloblang {sort}s", _GENERATED, _INTRODUCTIONS[sort], _contents(categories)]
    for name in names:
        parts.append(f"## {name}")
        parts += [_entry(one, sort) for one in categories[name]]
    return "\n\n".join(parts) + "\n"


def _contents(categories: Mapping[str, list[Declaration]]) -> str:
    rows = ["| | |", "|---|---|"]
    for name in sorted(categories):
        links = ", ".join(f"[`{one.name}`](#{one.name})" for one in categories[name])
        rows.append(f"| {name} | {links} |")
    return "\n".join(rows)


def _entry(one: Declaration, sort: Sort) -> str:
    parts = [f"### {one.name}", f"`{signature(one, sort)}`", one.summary + _remarks(one)]
    if one.params:
        parts.append(_table(one.params))
    parts += [f"```\n{example_text(e.mapping, e.given, e.result)}\n```" for e in one.examples]
    return "\n\n".join(parts)


def _remarks(one: Declaration) -> str:
    remarks = []
    if one.deprecated:
        remarks.append("Deprecated: kept for older mappings.")
    if one.requires:
        remarks.append(f"Needs an extra: `{install_hint(one.requires)}`.")
    if one.impure:
        remarks.append("Switched off by `--no-impure`.")
    if one.origin == CONNECT:
        remarks.append("From Redpanda Connect.")
    if one.origin == OURS:
        remarks.append("Ours: Benthos and Redpanda Connect do not have it.")
    return "".join(f" *{remark}*" for remark in remarks)


def _table(params: Iterable[Param]) -> str:
    rows = ["| parameter | type | default |", "|---|---|---|"]
    for param in params:
        kind = "expression" if param.type == "query" else param.type
        if param.type == "query" and param.scalars:
            kind = "expression or plain value"
        default = "" if param.default is REQUIRED else f"`{_cell(_literal(param.default))}`"
        rows.append(f"| `{param.name}` | {kind} | {default} |")
    return "\n".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def example_text(mapping: str, given: str, result: str) -> str:
    """Return an example as text: the mapping, then what goes in and what comes out as comments."""
    both = (("In: ", given), ("Out:", result))
    comments = [
        f"# {label if first else '    '} {line}".rstrip()
        for label, text in both
        for first, line in _numbered(text)
    ]
    return "\n".join([mapping, "", *comments])


def _numbered(text: str) -> list[tuple[bool, str]]:
    return [(index == 0, line) for index, line in enumerate(text.split("\n"))]


if __name__ == "__main__":
    for sort, path in PAGES.items():
        path.write_text(page(sort), encoding="utf-8")
