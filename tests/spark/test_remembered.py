"""What Spark remembers of micro-batches that are done."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streamer.spark.session.session_start import _build_settings

KINDS = ("ui.retainedJobs", "ui.retainedStages", "ui.retainedTasks", "sql.ui.retainedExecutions")


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
@pytest.mark.parametrize(
    ("conf", "wanted"),
    [
        ({}, ["20", "20", "200", "20"]),
        ({"spark.ui.retainedStages": "7"}, ["20", "7", "200", "20"]),
        # Its pages show what it remembers.
        ({"spark.ui.enabled": "true"}, [None] * 4),
        ({"spark.ui.enabled": "true", "spark.ui.retainedTasks": "9"}, [None, None, "9", None]),
    ],
)
def test_little_is_remembered_where_nobody_looks(
    master: str, conf: Mapping[str, str], wanted: list[str | None]
) -> None:
    found = _build_settings("test", master, conf, "INFO")
    assert [found.get(f"spark.{kind}") for kind in KINDS] == wanted
