"""The reference pages of components, made of their specs: Markdown, the same for the same specs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from streamer.components import catalog
from streamer.config.component_table import PAGE_NAME, format_component_table
from streamer.config.create import make_component_example
from streamer.config.yaml_writer import Block, Entry, format_yaml
from streamer.core.extras import EXTRA_OF, install_command
from streamer.sdk.spec import REQUIRED, Field, Kind, Spec

KINDS_BY_PLURAL: Final[Mapping[str, Kind]] = {
    "inputs": Kind.INPUT,
    "buffers": Kind.BUFFER,
    "processors": Kind.PROCESSOR,
    "outputs": Kind.OUTPUT,
    "caches": Kind.CACHE,
    "rate-limits": Kind.RATE_LIMIT,
    "tables": Kind.TABLE,
    "scanners": Kind.SCANNER,
    "metrics": Kind.METRICS,
    "tracers": Kind.TRACER,
}
"""The kinds by the names of their lists, in the order of a message's way."""

_SECTION_NAMES: Final = {
    Kind.INPUT: "input",
    Kind.BUFFER: "buffer",
    Kind.OUTPUT: "output",
    Kind.METRICS: "metrics",
    Kind.TRACER: "tracer",
}
_STATUS_TEXTS: Final = {
    "beta": "It is **beta**: fields may still change in detail.",
    "experimental": "It is **experimental**: it may change, or be removed.",
    "deprecated": "It is **deprecated**: configs that have it still run; new ones should not use "
    "it.",
}


def make_pages() -> dict[str, str]:
    """Return all pages by their paths: `README.md`, which lists them, and `inputs/file.md`, …."""
    by_path = {"README.md": _format_index(), PAGE_NAME: format_component_table(KINDS_BY_PLURAL)}
    for plural, kind in KINDS_BY_PLURAL.items():
        for spec in _own_specs(kind):
            by_path[f"{plural}/{spec.name}.md"] = format_page(spec)
    return by_path


def _own_specs(kind: Kind) -> Iterator[Spec]:
    """Return the specs of our components of a kind: `docs --write` writes no pages of others."""
    return (spec for spec in catalog.kind_specs(kind) if not spec.distribution)


def format_page(spec: Spec) -> str:
    """Return the page of one component."""
    return "\n\n".join(part.strip("\n") for part in _format_parts(spec)) + "\n"


def _format_parts(spec: Spec) -> Iterator[str]:
    yield f"# {spec.name} ({spec.kind.replace('_', ' ')})"
    yield spec.summary
    if spec.distribution:
        yield f"It comes from the package {spec.distribution}."
    if spec.status in _STATUS_TEXTS:
        yield _STATUS_TEXTS[spec.status]
    if spec.description:
        yield spec.description
    yield from _describe_packages(spec)
    yield "## Fields and defaults"
    small, whole = _format_snippet(spec, True), _format_snippet(spec, False)
    yield f"```yaml\n{small}```"
    if whole != small:
        yield f"With the fields that are rarely needed:\n\n```yaml\n{whole}```"
    described = list(_describe_fields([spec.config] if spec.config else spec.fields, ""))
    if described:
        yield "## What the fields mean"
        yield from described
    if spec.examples:
        yield "## Examples"
    for example in spec.examples:
        yield f"### {example.title}"
        if example.summary:
            yield example.summary
        yield f"```yaml\n{example.config.rstrip()}\n```"


def _describe_packages(spec: Spec) -> Iterator[str]:
    """Return which extras install what the component needs."""
    by_field: dict[str, set[str]] = {}
    for package in spec.requires:
        by_field.setdefault(package.setting or package.field, set()).add(EXTRA_OF[package.name])
    always = by_field.get("", set())
    for field, extras in by_field.items():
        if not field or extras - always:
            when = f"With `{field}`, it" if field else "It"
            yield f"{when} needs an extra: `{install_command(*extras)}`."


def _format_snippet(spec: Spec, small: bool) -> str:
    """Return the component where a config has it, with the defaults of its fields."""
    block = _remove_comments(make_component_example(spec, small))
    section = _SECTION_NAMES.get(spec.kind)
    if section is not None:
        return format_yaml({section: block})
    if spec.kind == Kind.PROCESSOR:
        return format_yaml({"pipeline": {"processors": [block]}})
    if spec.kind == Kind.SCANNER:
        return format_yaml({"scanner": block})
    labelled = Block((Entry("label", f"my_{spec.kind}"), *block.entries))
    return format_yaml({f"{spec.kind}_resources": [labelled]})


def _remove_comments(value: Any) -> Any:
    if isinstance(value, list):
        return [_remove_comments(item) for item in value]
    if not isinstance(value, Block):
        return value
    return Block(
        tuple(
            Entry(one.name, _remove_comments(one.value), "", one.remark, one.is_commented_out)
            for one in value.entries
        )
    )


def _describe_fields(fields: Iterable[Field], above: str) -> Iterator[str]:
    for field in fields:
        if field.deprecated:
            continue
        path = f"{above}.{field.name}" if above else field.name
        if path:
            yield f"### `{path}`"
        if field.description:
            yield field.description
        yield from _describe_facts(field)
        inside = {"array": "[]", "2darray": "[][]", "map": ".<key>"}.get(field.shape, "")
        yield from _describe_fields(field.children, f"{path}{inside}")


def _describe_facts(field: Field) -> Iterator[str]:
    facts = [f"Type: {_format_type(field)}."]
    if field.required:
        facts.append("Required.")
    elif field.default is REQUIRED:
        facts.append("Optional." if not field.children else "")
    elif field.name:
        facts.append(f"Default: `{json.dumps(field.default, ensure_ascii=False)}`.")
    if field.options:
        facts.append(f"One of {', '.join(f'`{option}`' for option in field.options)}.")
    if field.interpolated:
        facts.append("It may hold interpolations, `${! … }`.")
    if field.secret:
        facts.append("**Secret**: never shown in logs, errors and `streamer echo`.")
    if field.refers is not None:
        facts.append(f"The label of one of `{field.refers}_resources`.")
    yield " ".join(fact for fact in facts if fact)
    if field.examples and field.name:
        word = "Examples:" if len(field.examples) > 1 else "Example:"
        texts = [format_yaml({field.name: one}) for one in field.examples]
        if any(text.count("\n") > 1 for text in texts):
            yield word
            yield from (f"```yaml\n{text}```" for text in texts)
        else:
            yield f"{word} {', '.join(f'`{text.strip()}`' for text in texts)}."


def _format_type(field: Field) -> str:
    one = field.type.replace("_", " ")
    if field.mapping:
        one = "Bloblang mapping"
    elif field.duration:
        one = "duration"
    elif field.type == "unknown":
        one = "any value"
    return {
        "array": f"list of {one}",
        "2darray": f"list of lists of {one}",
        "map": f"map of {one}, by key",
    }.get(field.shape, one)


def _format_index() -> str:
    parts = [
        "# Components",
        "Every component with all its fields, made from the program itself by "
        "`streamer docs --write`. `streamer docs processors mapping` shows a page on the terminal. "
        "[At a glance](at-a-glance.md) is where each of them runs, and what it promises.",
    ]
    for plural, kind in KINDS_BY_PLURAL.items():
        rows = [
            f"| [{spec.name}]({plural}/{spec.name}.md) | {spec.summary.replace('|', '&#124;')} |"
            for spec in _own_specs(kind)
        ]
        if rows:
            parts.append(f"## {plural.replace('-', ' ').capitalize()}")
            parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"
