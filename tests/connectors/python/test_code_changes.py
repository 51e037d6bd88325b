"""The code of a config in `explain` and `diff`, and a deploy of changed code."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamer.config import load_config
from streamer.plan import make_plan
from streamer.plan.change_impact import Effect, judge
from streamer.plan.explain import explain
from streamer.plan.required_packages import list_requirements

INLINE = """\
pipeline:
  processors:
    - python:
        code: |
          def process(m: dict) -> dict:
              return {"a": NUMBER}
        requirements: [ numpy>=1, pytest ]
    - try:
        - python: { call: 'own_scores:score', requirements: [ numpy>=1 ] }
buffer: { tumbling_window: { timestamp_mapping: root = this.at, size: 10s } }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "own_scores.py").write_text("def score(m: dict): return m\n")
    made = tmp_path / "config.yaml"
    made.write_text(INLINE.replace("NUMBER", "1"))
    return made


def test_explain_has_the_digest_of_the_code(path: Path) -> None:
    config = load_config(path)
    text = explain(make_plan(config), "/state")
    digest = config.processors[0].config["code"].digest
    assert (
        f"pipeline.processors.0 python\n      code         process of the config, {digest}" in text
    )
    assert "modules      own_scores.py, sent to the workers" in text
    assert "pipeline.processors.1.try.0 python" in text


def test_changed_code_is_a_change_in_place(path: Path) -> None:
    old = load_config(path)
    path.write_text(INLINE.replace("NUMBER", "2"))
    [change] = judge(old, load_config(path)).changes
    assert (change.path, change.effect) == ("pipeline.processors.0.python.code", Effect.IN_PLACE)
    assert change.old is not None and change.new is not None
    assert 'return {"a": 1}\n# code ' in change.old and 'return {"a": 2}\n# code ' in change.new


def test_a_changed_module_is_a_change_in_place(path: Path) -> None:
    old = load_config(path)
    assert not judge(old, load_config(path)).changes
    (path.parent / "own_scores.py").write_text("def score(m: dict): return None\n")
    new = load_config(path)
    [change] = judge(old, new).changes
    assert change.path == "pipeline.processors.1.try.0.python.call"
    assert change.effect == Effect.IN_PLACE
    assert change.old is not None and change.old.startswith("own_scores:score (code ")
    assert change.new is not None and change.old != change.new
    assert str(path.parent / "own_scores.py") in new.inputs.files


def test_lines_that_move_change_nothing(path: Path) -> None:
    old = load_config(path)
    path.write_text("# A comment.\n" + path.read_text())
    assert not judge(old, load_config(path)).changes


def test_requirements_of_all_processors_are_sent(path: Path) -> None:
    assert list_requirements(load_config(path)) == ("numpy>=1", "pytest")
