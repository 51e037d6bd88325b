"""The catalogue and the files agree, and what it builds knows its children and resources."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import streamer
from streamer.components import catalog
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind, ParsedComponent

# Nothing builds these yet: the service reads their fields.
UNBUILT = {Kind.METRICS, Kind.TRACER}
ALL = [(kind, name) for kind, names in catalog.COMPONENTS.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_a_component_has_the_spec_that_its_name_says(kind: Kind, name: str) -> None:
    spec = catalog.find_spec(kind, name)
    assert spec is not None
    assert (spec.kind, spec.name) == (kind, name)
    assert spec.summary.endswith(".")
    module = importlib.import_module(catalog.module_name(kind, name))
    assert callable(getattr(module, "build", None)) or kind in UNBUILT


@pytest.mark.parametrize("kind", list(Kind))
def test_names_are_sorted(kind: Kind) -> None:
    assert list(catalog.component_names(kind)) == sorted(set(catalog.component_names(kind)))


@pytest.mark.parametrize("kind", list(Kind))
def test_every_file_with_a_spec_is_listed(kind: Kind) -> None:
    package = catalog.module_name(kind, "x").split(".")[1:-1]
    folder = Path(streamer.__file__).parent.joinpath(*package)
    with_spec = {
        path.stem.removesuffix("_")
        for path in folder.glob("*.py")
        if "\nSPEC" in path.read_text(encoding="utf-8")
    }
    assert with_spec == set(catalog.component_names(kind))


def test_a_name_that_is_not_listed_has_no_spec() -> None:
    assert catalog.find_spec(Kind.INPUT, "../processors/noop") is None


def test_buffers_that_make_windows_are_known_by_their_spec() -> None:
    makes = {
        name: catalog.makes_windows(ParsedComponent(Kind.BUFFER, name))
        for name in catalog.component_names(Kind.BUFFER)
    }
    assert makes == {
        name: "window" in name or name in ("keyed_state", "table_join") for name in makes
    }
    assert makes["system_window"] and not makes["memory"]
    assert not catalog.makes_windows(ParsedComponent(Kind.BUFFER, "unknown"))


def test_a_resource_is_built_once_and_a_missing_one_is_named() -> None:
    resources = {(Kind.PROCESSOR, "a"): ParsedComponent(Kind.PROCESSOR, "noop", "a")}
    context = catalog.build_context(resources)
    assert context.resource(Kind.PROCESSOR, "a") is context.resource(Kind.PROCESSOR, "a")
    with pytest.raises(StreamerError, match="label 'b'; processor_resources has a$"):
        context.resource(Kind.PROCESSOR, "b")
    with pytest.raises(StreamerError, match="cache_resources has none$"):
        context.resource(Kind.CACHE, "a")
