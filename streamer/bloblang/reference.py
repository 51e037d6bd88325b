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
from streamer.bloblang.plugin_functions import list_plugin_functions
from streamer.core.extras import install_hint
from streamer.core.value import NOTHING

DeclarationKind = Literal["function", "method"]
KINDS: Final[tuple[DeclarationKind, ...]] = ("function", "method")
_DIRECTORY: Final = Path(__file__).resolve().parents[1] / "docs"
_METHOD_PAGES: Final = {
    "Object & Array Manipulation": "arrays",
    "String Manipulation": "strings",
    "Number Manipulation": "numbers",
    "Timestamp Manipulation": "times",
    "Regular Expressions": "regex",
    "Type Coercion": "types",
    "General": "general",
    "Parsing": "parsing",
    "Encoding and Encryption": "encoding",
    "GeoIP": "geoip",
    "JSON Web Tokens": "jwt",
    "Deprecated": "deprecated",
}
"""The ends of the names of the pages of methods, by category, in the order of the contents."""

_DECLARATIONS: Final[Mapping[DeclarationKind, Mapping[str, Declaration]]] = {
    "function": FUNCTIONS,
    "method": METHODS,
}
_INTRODUCTIONS: Final[Mapping[DeclarationKind, str]] = {
    "function": (
        "A function is called alone: `root.id = uuid_v4()`. [Methods](bloblang-methods.md) follow "
        "a value. [Bloblang](bloblang.md) describes the use of both."
    ),
    "method": (
        "A method follows a value: `root.name = this.name.uppercase()`. "
        "[Functions](bloblang-functions.md) are called alone. [Bloblang](bloblang.md) describes "
        "the use of both. Each group of methods has its own page."
    ),
}
_GENERATED: Final = "<!-- Written by `python -m streamer.bloblang.reference`: not to be edited. -->"


def describe_declarations(sort: DeclarationKind, names: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return functions or methods as plain data, sorted by name.

    Each has `name`, `type` (`function` or `method`), `status` (`stable` or `deprecated`),
    `category`, `summary`, `format_signature`, `params` (each with `name`, `type`, `required`, and
    `default` unless it is required), `variadic`, `examples` (each with `mapping`, `input` and
    `output`), `impure`, and `origin` (`benthos`, `connect`
    or `streamer`). Those of other packages have their `package`, too.

    Args:
        sort: which.
        names: only these, when there are any.
    """
    selected = set(names)
    declared = [(one, "") for one in _DECLARATIONS[sort].values()]
    declared += [
        (one.declaration, one.distribution)
        for one in list_plugin_functions()[0]
        if one.kind == sort
    ]
    return [
        _describe_declaration(one, sort) | ({"package": package} if package else {})
        for one, package in sorted(declared, key=lambda pair: pair[0].name)
        if not selected or one.name in selected
    ]


def _describe_declaration(one: Declaration, sort: DeclarationKind) -> dict[str, Any]:
    return {
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


def render_pages(sort: DeclarationKind) -> dict[Path, str]:
    """Return the reference pages of all functions or all methods: Markdown by path.

    Functions have one page; methods have one of contents, and one for each category. The pages
    have no date and no version: the same declarations give the same text.
    """
    categories = _group_by_category(sort)
    pages = _method_pages() if sort == "method" else {}
    contents = [
        f"# Bloblang {sort}s",
        _GENERATED,
        _INTRODUCTIONS[sort],
        _render_contents(categories, pages),
    ]
    if not pages:
        for name, declared in categories.items():
            contents += [f"## {name}", *(_render_entry(one, sort) for one in declared)]
    texts = {_DIRECTORY / f"bloblang-{sort}s.md": contents}
    for name, page in pages.items():
        introduction = (
            f"A method follows a value. [Bloblang {sort}s](bloblang-{sort}s.md) lists all groups."
        )
        texts[_DIRECTORY / page] = [
            f"# Bloblang {sort}s: {name}",
            _GENERATED,
            introduction,
            *(_render_entry(one, sort) for one in categories[name]),
        ]
    return {path: "\n\n".join(parts) + "\n" for path, parts in texts.items()}


def format_declarations(sort: DeclarationKind, names: Iterable[str]) -> str:
    """Return entries of the reference for functions or methods, those of other packages too.

    Args:
        sort: which.
        names: those that there are no entries for are left out.
    """
    packages = _list_package_declarations(sort)
    parts = []
    for name in names:
        if one := _DECLARATIONS[sort].get(name):
            parts.append(_render_entry(one, sort))
        elif name in packages:
            one, package = packages[name]
            parts.append(f"{_render_entry(one, sort)}\n\nIt comes from the package {package}.")
    return "".join(f"{part}\n" for part in parts)


def format_package_declarations(sort: DeclarationKind) -> str:
    """Return a section with the functions or methods of other packages; nothing without any."""
    names = sorted(_list_package_declarations(sort))
    return f"\n## Of other packages\n\n{format_declarations(sort, names)}" if names else ""


def _list_package_declarations(sort: DeclarationKind) -> dict[str, tuple[Declaration, str]]:
    """Return the functions or methods of other packages by name, each with its package."""
    return {
        one.declaration.name: (one.declaration, one.distribution)
        for one in list_plugin_functions()[0]
        if one.kind == sort
    }


def _method_pages() -> dict[str, str]:
    return {name: f"bloblang-methods-{end}.md" for name, end in _METHOD_PAGES.items()}


def _group_by_category(sort: DeclarationKind) -> dict[str, list[Declaration]]:
    """Group by category, in the order of the contents; deprecated ones come last."""
    categories: dict[str, list[Declaration]] = {}
    for one in sorted(_DECLARATIONS[sort].values(), key=lambda one: (one.deprecated, one.name)):
        categories.setdefault(one.category, []).append(one)
    order = list(_METHOD_PAGES) if sort == "method" else sorted(categories)
    return {name: categories[name] for name in order}


def _render_contents(categories: Mapping[str, list[Declaration]], pages: Mapping[str, str]) -> str:
    rows = ["| | |", "|---|---|"]
    for name, declared in categories.items():
        page = pages.get(name, "")
        links = ", ".join(f"[`{one.name}`]({page}#{one.name})" for one in declared)
        rows.append(f"| {f'[{name}]({page})' if page else name} | {links} |")
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
        remarks.append("Not in Benthos and Redpanda Connect.")
    return "".join(f" *{remark}*" for remark in remarks)


def _render_params(params: Iterable[Param]) -> str:
    rows = ["| parameter | type | default |", "|---|---|---|"]
    for param in params:
        kind = "expression" if param.type == "query" else param.type
        if param.type == "query" and param.scalars:
            kind = "expression or plain value"
        default = ""
        if param.default is NOTHING:
            default = "optional"
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
    for kind in KINDS:
        for path, text in render_pages(kind).items():
            path.write_text(text, encoding="utf-8")
