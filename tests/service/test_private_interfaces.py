"""What is used of libraries beyond what they document, each by itself.

A release that changes it fails here first, with the name of what changed. Then mend the module that
is named and move the bound in pyproject.toml, which keeps users from such a release until then.
"""

from __future__ import annotations

import threading
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from prometheus_client.core import CollectorRegistry, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import (
    UNDERSCORES,
    escape_label_name,
    escape_metric_name,
)
from prometheus_client.utils import floatToGoString
from watchfiles._rust_notify import RustNotify

from streamer.service.monitoring.exposition import _COUNTER

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.parametrize(
    ("name", "next_one"), [("watchfiles", "1.99.0"), ("prometheus-client", "0.99.0")]
)
def test_no_release_is_let_in_that_was_not_tried(name: str, next_one: str) -> None:
    texts = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    [found] = [one for one in map(Requirement, texts) if one.name == name]
    assert found.specifier.contains(metadata.version(name))
    assert not found.specifier.contains(next_one)


def rust_notify(folder: Path) -> RustNotify:
    # debug, force_polling, poll_delay_ms, recursive, ignore_permission_denied
    return RustNotify([str(folder)], False, False, 300, False, True)


def test_watchfiles_hears_of_all_from_the_moment_that_it_is_made(tmp_path: Path) -> None:
    with rust_notify(tmp_path) as notices:
        (tmp_path / "a").write_text("x")
        found = notices.watch(50, 50, 30_000, None)
        assert isinstance(found, set)
        assert {path for _, path in found} == {str(tmp_path / "a")}


def test_watchfiles_says_in_a_word_why_nothing_was_heard(tmp_path: Path) -> None:
    stop = threading.Event()
    with rust_notify(tmp_path) as notices:
        assert notices.watch(10, 10, 50, stop) == "timeout"
        stop.set()
        assert notices.watch(10, 10, 30_000, stop) == "stop"


def test_prometheuss_client_escapes_names_and_writes_numbers() -> None:
    assert escape_metric_name("a.b", UNDERSCORES) == "a_b"
    assert escape_label_name("a-b", UNDERSCORES) == "a_b"
    written = [floatToGoString(number) for number in (1, 0.1, 1e21, float("inf"), float("nan"))]
    assert written == ["1.0", "0.1", "1e+21", "+Inf", "NaN"]


def test_prometheuss_client_writes_a_family_without_lines_and_leaves_its_name() -> None:
    class One:
        def collect(self) -> list[Metric]:
            family = Metric("input_received", "Messages.", "counter")
            family.type = _COUNTER
            return [family]

    registry = CollectorRegistry()
    registry.register(One())
    assert generate_latest(registry).decode().splitlines() == [
        "# HELP input_received Messages.",
        "# TYPE input_received counter",
    ]
