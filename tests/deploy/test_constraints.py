"""The constraints of CI and the image: they satisfy the ranges, are complete, and have hashes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streamer.core.extras import ALL, DISTRIBUTION
from tests.deploy.image import CONSTRAINTS, ROOT

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_PYTHONS = ("3.11.7", "3.12.1", "3.13.0", "3.14.0")


def entries() -> Iterator[tuple[Requirement, list[str]]]:
    """Return what the file pins: the requirement, and the hashes."""
    for line in CONSTRAINTS.read_text().replace("\\\n", " ").splitlines():
        if line and not line.startswith("#"):
            pinned, *hashes = line.split("--hash=")
            yield Requirement(pinned.strip()), [one.strip() for one in hashes]


def _environment(python: str) -> Environment:
    short = python.rpartition(".")[0]
    return {**default_environment(), "python_version": short, "python_full_version": python}


def pins(python: str) -> dict[str, str]:
    """Return the version of each package for a Python on this system."""
    environment = _environment(python)
    found: dict[str, str] = {}
    for pinned, _ in entries():
        if pinned.marker is None or pinned.marker.evaluate(environment):
            name = canonicalize_name(pinned.name)
            assert name not in found, f"{name} is pinned twice for Python {python}"
            found[name] = next(iter(pinned.specifier)).version
    return found


def _asked(extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Return what the project requires with some extras, those of `all` written out."""
    optional = _PROJECT["optional-dependencies"]
    waiting = [*_PROJECT["dependencies"], *(one for extra in extras for one in optional[extra])]
    while waiting:
        one = Requirement(waiting.pop())
        if one.name == DISTRIBUTION:
            waiting += [more for extra in one.extras for more in optional[extra]]
        else:
            yield one


def test_everything_is_pinned_and_has_hashes() -> None:
    found = list(entries())
    assert len(found) > 100
    for pinned, hashes in found:
        assert [one.operator for one in pinned.specifier] == ["=="], pinned
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in hashes), pinned


def test_it_names_no_place_that_packages_come_from() -> None:
    text = CONSTRAINTS.read_text()
    assert not re.findall(r"https?:|file:|^-|--(?:extra-)?index|--find-links", text, re.M)


@pytest.mark.parametrize("python", _PYTHONS)
def test_it_satisfies_the_ranges_of_the_project(python: str) -> None:
    found, environment = pins(python), _environment(python)
    wrong = [
        f"{one}: {found.get(canonicalize_name(one.name))}"
        for one in _asked(("java", ALL, "test"))
        if (one.marker is None or one.marker.evaluate(environment))
        and not one.specifier.contains(found.get(canonicalize_name(one.name), "0"))
    ]
    assert wrong == []


def test_it_is_complete() -> None:
    # By what is installed here, as far as it is of the pinned versions' own names.
    found = pins(_PYTHONS[0])
    seen: set[tuple[str, str]] = set()
    waiting = [
        (canonicalize_name(one.name), extra)
        for one in _asked(("java", ALL, "test"))
        for extra in ("", *one.extras)
    ]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        assert name in found, name
        try:
            required = map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        for one in required:
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(one.name), more) for more in ("", *one.extras)]
    assert {name for name, _ in seen} <= set(found)
    assert len(seen) > 100
