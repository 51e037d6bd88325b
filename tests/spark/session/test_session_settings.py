"""Settings of a session: which of several options of Java holds, and what is pinned."""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamer.config import parse_config
from streamer.spark.session.session_start import _build_settings

DRIVER, EXECUTOR = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"


def _options(name: str, conf: Mapping[str, str], master: str = "local[2]") -> list[str]:
    said = _build_settings("test", master, conf, "INFO").get(name) or ""
    return re.findall(r"TieredStopAtLevel=\d|Use\w+GC", said)


def test_options_of_the_users_come_after_ours_and_executors_have_the_same() -> None:
    ours = _options(DRIVER, {})
    assert ours == ["UseSerialGC", "TieredStopAtLevel=1"] or ours[::-1] == [
        "UseSerialGC",
        "TieredStopAtLevel=1",
    ]
    own = "-XX:TieredStopAtLevel=3"
    assert _options(DRIVER, {DRIVER: own}) == [*ours, "TieredStopAtLevel=3"]
    cluster = "spark://host:7077"
    assert _options(EXECUTOR, {}) == [] and _options(EXECUTOR, {}, cluster) == ours
    assert _options(EXECUTOR, {EXECUTOR: own}, cluster) == [*ours, "TieredStopAtLevel=3"]
    # Java does not start with two collectors.
    other = {EXECUTOR: "-verbose:gc -XX:+UseG1GC"}
    assert _options(EXECUTOR, other, cluster) == ["TieredStopAtLevel=1", "UseG1GC"]


def test_the_form_of_the_log_of_offsets_is_pinned() -> None:
    name = "spark.sql.streaming.offsetLog.formatVersion"
    config = parse_config(f"spark: {{ conf: {{ {name}: 1 }} }}", "own.yaml")
    assert config.spark["conf"] == {name: "1"}
    said = _build_settings("test", "local[2]", {}, "INFO")
    assert said.get(name) == "1"
