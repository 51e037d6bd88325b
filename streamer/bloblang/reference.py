"""The reference of functions and methods, from their declarations: as data and as pages.

`python -m streamer.bloblang.reference` writes the pages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.bloblang.declare import CONNECT, REQUIRED, STREAMER, Declaration, Param
from streamer.core.extras import install_hint
from streamer.core.value import NOTHING

DeclarationKind = Literal["function", "method"]
_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs"
PAGES: Final[Mapping[DeclarationKind, Path]] = {
    "function": _DIRECTORY / "bloblang-functions.md",
    "method": _DIRECTORY / "bloblang-methods.md",
}
_DECLARATIONS: Final[Mapping[DeclarationKind, Mapping[str, Declaration]]] = {
    "function": FUNCTIONS,
    "method": METHODS,
}
_INTRODUCTIONS: Final[Mapping[DeclarationKind, str]] = {
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


def describe_declarations(sort: DeclarationKind, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return functions or methods as plain data, sorted by name.

    Each has `name`, `type` (`function` or `method`), `status` (`stable` or `deprecated`),
    `category`, `summary`, `format_signature`, `params` (each with `name`, `type`, `required`, and
    `default` unless it is required), `variadic`, `examples` (each with `mapping`, `input` and
    `output`), `impure`, and `origin` (`benthos`, `connect`
    or `streamer`).

    Args:
        sort: which.
        names: only these, when there are any.
    """
    selected = set(names)
    return [
        {
            "name": one.name,
            "type": sort,
            "status": "deprecated" if one.deprecated else "stable",
            "category": one.category,
            "summary": one.summary,
            "signature": format_signature(one, sort),
            "params": [_describe_param(param) for param in one.params],
            "variadic": one.variadic,
            "examples": [
                {"mapping": example.mapping, "input": example.input, "output": example.output}
                for example in one.examples
            ],
            "impure": one.impure,
            "origin": one.origin,
        }
        for name, one in sorted(_DECLARATIONS[sort].items())
        if not selected or name in selected
    ]


def _describe_param(param: Param) -> dict[str, Any]:
    required = param.default is REQUIRED
    description = {"name": param.name, "type": param.type, "required": required}
    has_default = not required and param.default is not NOTHING
    return {**description, "default": param.default} if has_default else description


def format_signature(one: Declaration, sort: DeclarationKind) -> str:
    """Return how a function or method is called: `range(start, stop, step = 1)`."""
    params = ", ".join(map(_format_param, one.params))
    if one.variadic:
        params = "…"
    return f"{'.' if sort == 'method' else ''}{one.name}({params})"


def _format_param(param: Param) -> str:
    if param.default is REQUIRED:
        return param.name
    if param.default is NOTHING:
        return f"[{param.name}]"
    return f"{param.name} = {_format_literal(param.default)}"


def _format_literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def render_page(sort: DeclarationKind) -> str:
    """Return the reference page of all functions or all methods, Markdown.

    It has no date and no version: the same declarations give the same text.
    """
    categories: dict[str, list[Declaration]] = {}
    for one in sorted(_DECLARATIONS[sort].values(), key=lambda one: (one.deprecated, one.name)):
        categories.setdefault(one.category, []).append(one)
    names = sorted(categories)
    parts = [f"# Bloblang {sort}s", _GENERATED, _INTRODUCTIONS[sort], _render_contents(categories)]
    for name in names:
        parts.append(f"## {name}")
        parts += [_render_entry(one, sort) for one in categories[name]]
    return "\n\n".join(parts) + "\n"


def _render_contents(categories: Mapping[str, list[Declaration]]) -> str:
    rows = ["| | |", "|---|---|"]
    for name in sorted(categories):
        links = ", ".join(f"[`{one.name}`](#{one.name})" for one in categories[name])
        rows.append(f"| {name} | {links} |")
    return "\n".join(rows)


def _render_entry(one: Declaration, sort: DeclarationKind) -> str:
    parts = [
        f"### {one.name}",
        f"`{format_signature(one, sort)}`",
        one.summary + _render_remarks(one),
    ]
    if one.params:
        parts.append(_render_params(one.params))
    parts += [f"```\n{format_example(e.mapping, e.input, e.output)}\n```" for e in one.examples]
    return "\n\n".join(parts)


def _render_remarks(one: Declaration) -> str:
    remarks = []
    if one.deprecated:
        remarks.append("Deprecated: kept for older mappings.")
    if one.requires:
        remarks.append(f"Needs an extra: `{install_hint(one.requires)}`.")
    if one.impure:
        remarks.append("Switched off by `--no-impure`.")
    if one.origin == CONNECT:
        remarks.append("From Redpanda Connect.")
    if one.origin == STREAMER:
        remarks.append("Ours: Benthos and Redpanda Connect do not have it.")
    return "".join(f" *{remark}*" for remark in remarks)


def _render_params(params: Iterable[Param]) -> str:
    rows = ["| parameter | type | default |", "|---|---|---|"]
    for param in params:
        kind = "expression" if param.type == "query" else param.type
        if param.type == "query" and param.scalars:
            kind = "expression or plain value"
        default = ""
        if param.default is NOTHING:
            default = "may be left out"
        elif param.default is not REQUIRED:
            default = f"`{_escape_cell(_format_literal(param.default))}`"
        rows.append(f"| `{param.name}` | {kind} | {default} |")
    return "\n".join(rows)


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


def format_example(mapping: str, input_text: str, result: str) -> str:
    """Return an example as text: the mapping, then what goes in and what comes out as comments."""
    both = (("In: ", input_text), ("Out:", result))
    comments = [
        f"# {label if first else '    '} {line}".rstrip()
        for label, text in both
        for first, line in _mark_first_line(text)
    ]
    return "\n".join([mapping, "", *comments])


def _mark_first_line(text: str) -> list[tuple[bool, str]]:
    return [(index == 0, line) for index, line in enumerate(text.split("\n"))]


if __name__ == "__main__":
    for sort, path in PAGES.items():
        path.write_text(render_page(sort), encoding="utf-8")
