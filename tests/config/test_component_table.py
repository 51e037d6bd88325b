"""The table of all components: none is missing, and what is refused is refused in its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamer.components import catalog
from streamer.config import lint_config
from streamer.config.component_table import PAGE_NAME, get_guarantees
from streamer.config.known_names import REFUSED_COMPONENTS
from streamer.config.reference_pages import KINDS_BY_PLURAL, make_pages
from streamer.sdk.spec import Kind

ROW = re.compile(r"^\| \[(\w+)\]\(([\w-]+)/(\w+)\.md\) \| (\w+) \| ([^|]*) \| [^|]* \|$", re.M)
SECTIONS = {Kind.INPUT: "input", Kind.OUTPUT: "output", Kind.TRACER: "tracer"}


@pytest.fixture(scope="module")
def page() -> str:
    return make_pages()[PAGE_NAME]


def test_every_component_has_a_row_that_leads_to_its_page(page: str) -> None:
    rows = [(plural, name) for name, plural, file, *_ in ROW.findall(page) if name == file]
    assert rows == [
        (plural, name)
        for plural, kind in KINDS_BY_PLURAL.items()
        for name in sorted(catalog.component_names(kind))
    ]


def test_what_runs_children_promises_nothing_of_its_own() -> None:
    for spec in catalog.all_specs():
        runs, delivery = get_guarantees(spec)
        assert runs in ("Spark", "worker", "driver", "children")
        if runs == "children":
            assert delivery == "", spec.name
        elif spec.kind in (Kind.INPUT, Kind.OUTPUT, Kind.BUFFER):
            assert delivery, spec.name


@pytest.mark.parametrize(("kind", "name"), sorted(REFUSED_COMPONENTS))
def test_lint_refuses_a_component_in_the_words_of_the_table(
    kind: Kind, name: str, page: str, tmp_path: Path
) -> None:
    section = SECTIONS.get(kind)
    config = (
        f"{section}:\n  {name}: {{}}\n" if section else f"pipeline:\n  processors: [{name}: {{}}]\n"
    )
    path = tmp_path / "config.yaml"
    path.write_text(config)
    [found] = [lint for lint in lint_config(path, env={}) if lint.code == "unavailable_component"]
    assert found.message == f"{kind} {name!r} is not available: {REFUSED_COMPONENTS[kind, name]}"
    assert f"| `{name}` ({kind}) | {REFUSED_COMPONENTS[kind, name]} |" in page
