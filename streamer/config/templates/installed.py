"""The templates that there are while a command works: components like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from streamer import catalog
from streamer.config.fields import find
from streamer.config.rules import RULES
from streamer.config.templates.file import lint_template
from streamer.config.templates.template import INSTALLED, Template
from streamer.errors import ConfigError, Lint
from streamer.spec import Kind


@contextmanager
def installed(files: Iterable[str], tell: Callable[[Lint], None] | None = None) -> Iterator[None]:
    """Add the templates of files to the catalogue, for as long as the block runs.

    A template takes the place of a component of the same kind and name, as in Benthos.

    Args:
        files: the files.
        tell: gets what is wrong with a file when it can be used all the same (`--chilled`);
            without it, nothing may be wrong.

    Raises:
        ConfigError: something is wrong with a file, or two make the same component.
    """
    found, lints = _read(files)
    if lints and (tell is None or not all(RULES[lint.code].runs_chilled for lint in lints)):
        raise ConfigError(lints)
    for lint in lints:
        if tell is not None:
            tell(lint)
    token = INSTALLED.set({**INSTALLED.get({}), **found})
    try:
        with catalog.added(template.spec for template in found.values()):
            yield
    finally:
        INSTALLED.reset(token)


def _read(files: Iterable[str]) -> tuple[dict[tuple[Kind, str], Template], list[Lint]]:
    found: dict[tuple[Kind, str], Template] = {}
    lints: list[Lint] = []
    for file in dict.fromkeys(files):
        template, wrong = lint_template(file)
        lints += wrong
        if template is None:
            continue
        earlier = found.setdefault((template.spec.kind, template.spec.name), template)
        if earlier is not template:
            lints.append(_collision(template, earlier))
    return found, lints


def _collision(template: Template, earlier: Template) -> Lint:
    at, before = (find(one.root, "name") for one in (template, earlier))
    line, column = before.source.place(before.start)
    message = (
        f"the {template.spec.kind} {template.spec.name!r} is made by another template already, "
        f"at {earlier.file}({line},{column})"
    )
    return Lint(
        template.file, *at.source.place(at.start), "bad_template", message, "rename one of them"
    )
