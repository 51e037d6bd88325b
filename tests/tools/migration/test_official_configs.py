"""The count of configs that other projects have, on a directory as theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.official_configs import count_configs, describe_count

_PLACE = "STREAMER_CONNECT_CONFIGS"


def test_configs_are_counted_by_what_they_lack(tmp_path: Path) -> None:
    cached = "pipeline: {processors: [{cache: {resource: foo, operator: get, key: a}}]}\n"
    texts = {
        "a/clean.yaml": "output: {drop: {}}\n",
        "a/set_grab_cache.yaml": cached,
        "a/resources.yaml": "cache_resources: [{label: foo, memory: {}}]\n",
        "a/missing.yml": "input: {discord: {}}\noutput: {discord: {}}\n",
        "b/missing.yaml": "input: {discord: {}}\n",
        "b/broken.yaml": cached,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    count = count_configs([tmp_path / "a", tmp_path / "b"])
    assert [len(one) for one in count] == [3, 2, 1]
    lines = list(describe_count(count))
    assert lines[:3] == ["3 of 6 lint clean", "2 lack input discord", "1 lack output discord"]
    assert "[missing_resource]" in lines[3]


@pytest.mark.skipif(_PLACE not in os.environ, reason=f"{_PLACE} names no checkout")
def test_nine_of_ten_official_configs_lint_clean() -> None:
    config = Path(os.environ[_PLACE]) / "config"
    count = count_configs([config / "examples", config / "test"])
    assert count.total >= 40 and count.broken == []
    assert len(count.clean) / count.total >= 0.9, list(describe_count(count))
