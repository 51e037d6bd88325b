"""The names of `streamer` for programs: they stay, and importing the package imports nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import streamer

# Names of version 1.0: a name leaves this list with a new major version only.
VERSION_1_0 = {
    *("API_VERSION", "ConfigError", "Explanation", "Lint", "LintFindings", "RunState", "Stream"),
    *("StreamFailedError", "StreamHandle", "StreamStatus", "StreamTimeoutError", "StreamerError"),
    *("TestReport", "UnitTestsFailedError", "WindowRow", "WindowTable"),
    *("load", "loads", "simulate", "stop_spark"),
}
METHODS_1_0 = {
    "Stream": {"name", "text", "lint", "explain", "test", "simulate", "start", "run", "results"}
    | {"select"},
    "StreamHandle": {"name", "status", "windows", "log", "results", "wait_until_running", "wait"}
    | {"stop", "drain", "watch"},
}


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_names_of_the_version_are_all_there() -> None:
    assert streamer.API_VERSION == "1.0"
    assert set(streamer.__all__) == VERSION_1_0 and set(streamer.__all__) <= set(dir(streamer))
    for name in streamer.__all__:
        assert getattr(streamer, name) is not None
    for name, methods in METHODS_1_0.items():
        assert {one for one in dir(getattr(streamer, name)) if one[0] != "_"} == methods


def test_type_checkers_see_the_names_that_there_are() -> None:
    tree = ast.parse(Path(streamer.__file__).read_text())
    [block] = [one for one in tree.body if isinstance(one, ast.If)]
    imported = {
        alias.name: one.module
        for one in block.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    assert imported == streamer._MODULES
    assert {*imported, "API_VERSION"} == set(streamer.__all__)


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'streamer' has no attribute 'nothing'"):
        streamer.nothing  # noqa: B018


def test_importing_the_package_imports_no_other_module_of_it() -> None:
    code = "import sys, streamer; print([n for n in sys.modules if n.startswith('streamer.')])"
    assert run_python(code) == "[]\n"


def test_checks_need_neither_spark_nor_frames() -> None:
    code = """
import sys, streamer
stream = streamer.loads("pipeline: { processors: [{ mapping: root.a = 1 }] }")
stream.lint(), stream.explain(), stream.test()
names = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "duckdb", "aiohttp", "IPython", "rich")
print([name for name in names if name in sys.modules])
"""
    assert run_python(code) == "[]\n"


def test_simulations_need_no_spark() -> None:
    code = """
import sys, streamer
print(streamer.simulate(streamer.loads("{}"), [{"a": 1}])["a"].to_pylist())
print([name for name in ("pyspark", "py4j", "duckdb", "IPython", "rich") if name in sys.modules])
"""
    assert run_python(code) == "[1]\n[]\n"
