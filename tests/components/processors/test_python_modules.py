"""Functions in modules: beside the config, which go with it, and installed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.errors import ConfigError

from .conftest import Make, Run, messages, payloads
from .test_python import results, yaml_of

MODULE = """
from helpers import double

def score(m: dict, by: int = 1) -> dict:
    return {"score": double(m["n"]) * by}
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    (tmp_path / "scoring.py").write_text(MODULE)
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("from .numbers import double\n")
    (tmp_path / "helpers" / "numbers.py").write_text("def double(n):\n    return n * 2\n")
    (tmp_path / "config.yaml").write_text(
        "pipeline:\n  processors:\n    - python: { call: 'scoring:score', args: { by: 10 } }\n"
    )
    return tmp_path


def test_modules_beside_the_config_go_with_it(beside: Path, a_run: Run) -> None:
    path = beside / "config.yaml"
    config = parse_config(path.read_text(), str(path))
    names = {Path(name).name for name in config.inputs.files}
    assert names == {"scoring.py", "__init__.py", "numbers.py"}
    text = config.processors[0].config["call"]
    # No worker has the files.
    for name in ("scoring.py", "helpers/numbers.py", "helpers/__init__.py"):
        (beside / name).unlink()
    processor = build_context().build(config.processors[0])
    assert payloads(processor.process(messages('{"n":2}'), a_run.ex)) == [['{"score":40}']]
    assert sorted(text.sources) == ["helpers/__init__.py", "helpers/numbers.py", "scoring.py"]


def test_changed_modules_are_other_code(beside: Path, a_run: Run) -> None:
    path = beside / "config.yaml"
    old = parse_config(path.read_text(), str(path))
    (beside / "helpers" / "numbers.py").write_text("def double(n):\n    return n / 0\n")
    new = parse_config(path.read_text(), str(path))
    assert old.processors[0].config["call"].digest != new.processors[0].config["call"].digest
    first, second = (build_context().build(one.processors[0]) for one in (old, new))
    for _ in range(2):  # one after the other in one process, as streams of a service are
        assert payloads(first.process(messages('{"n":2}'), a_run.ex)) == [['{"score":40}']]
        [[failed]] = second.process(messages('{"n":2}'), a_run.ex)
        assert failed.error is not None
        assert failed.error.startswith(
            "ZeroDivisionError: division by zero, at helpers/numbers.py(2)"
        )
        assert failed.error.endswith(
            'scoring.py(5) in score: return {"score": double(m["n"]) * by}'
        )


def test_a_called_function_is_looked_at_too(beside: Path) -> None:
    def finding(call: str, more: str = "") -> str:
        text = f"pipeline:\n  processors:\n    - python: {{ call: '{call}'{more} }}\n"
        with pytest.raises(ConfigError) as caught:
            parse_config(text, str(beside / "config.yaml"))
        [found] = caught.value.lints
        return found.message

    assert "expected package.module:function" in finding("scoring")
    assert "has no function nothing; it has score" in finding("scoring:nothing")
    assert "neither installed nor in the directory of the config" in finding("no_module:f")
    assert "which helpers beside the config has not" in finding("helpers.none:f")
    assert "without the parameter x of args" in finding("scoring:score", ", args: { x: 1 }")
    (beside / "scoring.py").write_text("def score(m: dict:\n")
    assert "names scoring.py(1), which is no Python" in finding("scoring:score")


def test_installed_functions_are_called(make: Make, a_run: Run) -> None:
    processor = make(
        "python: { call: 'tests.components.processors.test_python_modules:installed' }"
    )
    assert payloads(processor.process(messages('{"n":1}'), a_run.ex)) == [['{"n":2}']]
    [[failed]] = processor.process(messages('{"m":1}'), a_run.ex)
    assert failed.error is not None and "test_python_modules.py(" in failed.error


def installed(message: dict[str, Any]) -> dict[str, Any]:
    return {"n": message["n"] + 1}


def test_dataclasses_and_pickles_find_what_is_in_the_code(make: Make, a_run: Run) -> None:
    code = (
        "from __future__ import annotations\n"
        "import pickle\nfrom dataclasses import dataclass, asdict\n"
        "@dataclass\nclass Point:\n    x: int\n"
        "def process(m: dict):\n    return asdict(pickle.loads(pickle.dumps(Point(m['x']))))"
    )
    assert results(make, a_run, code, '{"x":1}') == ['{"x":1}']


def test_code_that_fails_to_load_is_said(make: Make) -> None:
    with pytest.raises(Exception, match="cannot load the code: ValueError: no, at config\\(5\\)"):
        make(yaml_of("raise ValueError('no')\ndef process(m: dict): ..."))
