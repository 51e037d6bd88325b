"""The templates that there are while a command works: components like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from streamer.components import catalog
from streamer.config.fields import find_node
from streamer.config.lint.rules import RULES
from streamer.config.templates.file import lint_template
from streamer.config.templates.template import INSTALLED_TEMPLATES, Template
from streamer.core.errors import ConfigError, Lint
from streamer.sdk.spec import Kind


@contextmanager
def install_templates(
    files: Iterable[str], report: Callable[[Lint], None] | None = None
) -> Iterator[None]:
    """Add the templates of files to the catalogue, for as long as the block runs.

    A template takes the place of a component of the same kind and name, as in Benthos.

    Args:
        files: the files.
        report: gets what is wrong with a file when it can be used all the same (`--chilled`);
            without it, nothing may be wrong.

    Raises:
        ConfigError: something is wrong with a file, or two make the same component.
    """
    templates, lints = _read_templates(files)
    if lints and (report is None or not all(RULES[lint.code].runs_chilled for lint in lints)):
        raise ConfigError(lints)
    for lint in lints:
        if report is not None:
            report(lint)
    token = INSTALLED_TEMPLATES.set({**INSTALLED_TEMPLATES.get({}), **templates})
    try:
        with catalog.extra_components(template.spec for template in templates.values()):
            yield
    finally:
        INSTALLED_TEMPLATES.reset(token)


def _read_templates(files: Iterable[str]) -> tuple[dict[tuple[Kind, str], Template], list[Lint]]:
    templates: dict[tuple[Kind, str], Template] = {}
    lints: list[Lint] = []
    for file in dict.fromkeys(files):
        template, wrong = lint_template(file)
        lints += wrong
        if template is None:
            continue
        earlier = templates.setdefault((template.spec.kind, template.spec.name), template)
        if earlier is not template:
            lints.append(_make_collision_lint(template, earlier))
    return templates, lints


def _make_collision_lint(template: Template, earlier: Template) -> Lint:
    at, before = (find_node(one.root, "name") for one in (template, earlier))
    line, column = before.source.locate(before.start)
    message = (
        f"the {template.spec.kind} {template.spec.name!r} is made by another template already, "
        f"at {earlier.file}({line},{column})"
    )
    return Lint(
        template.file, *at.source.locate(at.start), "bad_template", message, "rename one of them"
    )
