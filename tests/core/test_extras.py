"""Extras: the one table of them is the distribution's, and no part needs more than it says."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from importlib.metadata import metadata, packages_distributions, requires

import pytest
from packaging.requirements import Requirement

import streamer
from streamer.bloblang.catalog import FUNCTIONS, METHODS
from streamer.components.catalog import COMPONENTS, all_specs, module_name
from streamer.config import extras_page
from streamer.core.extras import (
    ALL,
    DISTRIBUTION,
    EXTRA_OF,
    EXTRAS,
    NOT_IN_ALL,
    install_command,
    optional_package,
)
from streamer.sdk.spec import Kind
from tests.test_architecture import ROOT, SOURCES, _tracked, imports

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_DEVELOPERS = {"test", "bench"}


def _required(extra: str) -> set[str]:
    """Return what an extra of the installed distribution requires: names, normalised."""
    found = map(Requirement, requires(DISTRIBUTION) or ())
    return {
        _normal(one.name)
        for one in found
        if one.marker
        and one.marker.evaluate({"extra": extra})
        and not one.marker.evaluate({"extra": ""})
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_distribution_has_the_name_the_version_and_the_extras_that_the_program_says() -> None:
    found = metadata(DISTRIBUTION)
    assert (_PROJECT["name"], found["Name"]) == (DISTRIBUTION, DISTRIBUTION)
    assert found["Version"] == streamer.__version__
    assert set(found.get_all("Provides-Extra") or ()) == {*EXTRAS, ALL, *_DEVELOPERS}
    assert set(_PROJECT["optional-dependencies"]) == {*EXTRAS, ALL, *_DEVELOPERS}
    assert {"version", "readme"} == set(_PROJECT["dynamic"])


_COMPILED = {"amqp-1": "python-qpid-proton", "kerberos": "gssapi"}
"""The distributions of extras that have no wheel for Linux."""


def test_every_extra_installs_what_is_imported_by_it_and_nothing_else() -> None:
    distributions = packages_distributions()
    for extra in EXTRAS:
        modules = [name for name, of in EXTRA_OF.items() if of == extra]
        assert modules, extra
        # What reads schemas of a registry reads Avro too.
        modules += ["fastavro"] if extra == "schema-registry" else []
        # Others are asked in SQL too: a catalog of tables may be in a database.
        asked_in_sql = ("iceberg", "mssql", "oracle", "trino")
        modules += ["sqlalchemy"] if extra in asked_in_sql else []
        # pyiceberg talks with a catalog of Hive by it.
        modules += ["thrift"] if extra == "iceberg" else []
        roots = {
            _normal(one) for name in modules for one in distributions.get(name.split(".")[0], ())
        }
        required = _required(extra)
        # What is compiled at its install may be missing: few need it.
        roots = roots or {_COMPILED[extra]}
        assert required and required <= roots | {DISTRIBUTION}, extra


def test_the_base_requires_nothing_that_an_extra_brings() -> None:
    base = {_normal(Requirement(one).name) for one in _PROJECT["dependencies"]}
    assert {name for extra in EXTRAS for name in _required(extra)} & base == set()


def test_all_has_every_extra_but_those_that_are_left_out() -> None:
    (one,) = map(Requirement, _PROJECT["optional-dependencies"][ALL])
    assert (one.name, set(one.extras)) == (DISTRIBUTION, set(EXTRAS) - set(NOT_IN_ALL))
    assert f"{DISTRIBUTION}[{ALL}]" in _PROJECT["optional-dependencies"]["test"]


def test_whoever_is_told_to_install_something_is_told_a_name_and_extras_that_there_are() -> None:
    told = re.compile(r"""(?:pip|uv tool|uv pip) install (?:-\S+ )*'?"?([\w.-]+)\[([\w,-]+)\]""")
    found = 0
    for path in _tracked():
        if path.suffix not in (".py", ".md", ".sh", ".yaml", ".toml") and path.name != "run":
            continue
        for name, extras in told.findall(path.read_text()):
            found += 1
            assert name in (DISTRIBUTION, "."), path
            assert set(extras.split(",")) <= {*EXTRAS, ALL, *_DEVELOPERS}, path
    assert found > 5


def test_the_page_has_the_table() -> None:
    text = extras_page.PAGE.read_text()
    assert extras_page.update_page(text) == text


@cache
def _optional_imports(module: str) -> frozenset[str]:
    """Return what of `EXTRA_OF` a module itself imports, at whatever time."""
    found = set()
    typing = set()
    text = SOURCES[module].read_text()
    if not any(name.split(".")[0] in text for name in EXTRA_OF):
        return frozenset()  # Nearly always: to parse takes its time.
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            typing.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in typing:
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found |= {package for name in names if (package := _known(name))}
    return frozenset(found)


def _known(name: str) -> str | None:
    # The exporters of OpenTelemetry bring the rest of it along.
    return None if name.startswith("opentelemetry") else optional_package(name)


@cache
def _reached() -> dict[str, set[str]]:
    edges: dict[str, set[str]] = {}
    for one in imports():
        # The library's door is no part of what components need of the package: their version.
        if one.target in SOURCES and one.module != "streamer":
            edges.setdefault(one.module, set()).add(one.target)
    return edges


def _needed(module: str) -> set[str]:
    seen, waiting = set(), [module]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            # What mappings need is found in mappings.
            reached = _reached().get(current, ())
            waiting += [one for one in reached if not one.startswith("streamer.bloblang")]
    return {package for one in seen for package in _optional_imports(one)}


_UNREACHED = {"kafka": {"boto3"}, "redpanda_common": {"boto3", "gssapi"}}
"""What is imported for settings that a component does not have: a login by IAM or Kerberos."""


@pytest.mark.parametrize("kind", list(COMPONENTS))
def test_a_component_says_all_that_it_imports(kind: Kind) -> None:
    for spec in all_specs():
        # What sends traces and metrics is no component.
        if spec.kind == kind and kind not in (Kind.TRACER, Kind.METRICS):
            says = {package.name for package in spec.requires}
            if spec.kind == Kind.BUFFER:
                # Results are kept by the engine, for the buffers that have the field.
                has = any(field.name == "retention" for field in spec.fields)
                assert says == ({"duckdb"} if has else set()), spec.name
            else:
                needed = _needed(module_name(kind, spec.name)) - _UNREACHED.get(spec.name, set())
                assert needed == says, spec.name
            assert says <= set(EXTRA_OF)
            names = {field.name for field in spec.fields}
            assert {package.field for package in spec.requires} <= {"", *names}


def test_a_function_says_all_that_it_imports() -> None:
    declarations = [*FUNCTIONS.values(), *METHODS.values()]
    says = {package for one in declarations for package in one.requires}
    modules = [name for name in SOURCES if name.startswith("streamer.bloblang")]
    assert {package for name in modules for package in _optional_imports(name)} == says
    assert says == {"faker", "maxminddb"}


def test_a_module_is_known_by_what_it_lies_in_or_holds() -> None:
    assert optional_package("sqlalchemy.pool") == "sqlalchemy"
    assert optional_package("opentelemetry") in EXTRA_OF
    assert optional_package("orjson") is optional_package("") is optional_package(None) is None


def test_the_command_names_the_extras_in_order() -> None:
    assert install_command("sql", "java") == "pip install 'spark-streamer[java,sql]'"
    assert install_command() == "pip install 'spark-streamer'"


def test_the_changelog_begins_with_this_version() -> None:
    text = (ROOT / "streamer" / "docs" / "changelog.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.M)[0] == streamer.__version__
