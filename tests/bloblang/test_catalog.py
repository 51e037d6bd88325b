"""Every function and method is listed, declared in full, and does what its examples say."""

import importlib
import json
import pkgutil

import pytest

from streamer.bloblang import catalog, functions, methods
from tests.bloblang.running import run

DECLARED = [*catalog.FUNCTIONS.values(), *catalog.METHODS.values()]


def declarations_in(package):
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for value in vars(module).values():
            if getattr(value, "__module__", "") == module.__name__:
                yield from getattr(value, "declarations", ())


@pytest.mark.parametrize(
    ("package", "listed"),
    [(functions, catalog.FUNCTIONS), (methods, catalog.METHODS)],
    ids=["functions", "methods"],
)
def test_what_is_declared_is_listed(package, listed):
    assert {d.name for d in declarations_in(package)} == set(listed)


@pytest.mark.parametrize("declaration", DECLARED, ids=lambda d: d.name)
def test_a_declaration_has_a_name_a_line_and_a_category(declaration):
    assert declaration.summary.endswith(".")
    assert "\n" not in declaration.summary
    assert declaration.category


def examples():
    for declaration in DECLARED:
        for number, example in enumerate(declaration.examples):
            yield pytest.param(example, id=f"{declaration.name}-{number}")


@pytest.mark.parametrize("example", list(examples()))
def test_a_declared_example_is_true(example):
    found = run(example.mapping, example.input)
    try:
        assert json.loads(found) == json.loads(example.output)
    except ValueError:
        assert found == example.output
