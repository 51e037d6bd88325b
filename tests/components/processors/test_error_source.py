"""Which component a failed message failed in: its type, its label, its place in the config."""

from __future__ import annotations

import json
import pickle

import pytest

from streamer.components.catalog import build_context
from streamer.config import parse_config
from streamer.core.message import Failure, Message
from streamer.sdk.processing import run
from streamer.window.pack.metadata_codec import decode_meta, encode_meta

from .conftest import Run, messages

TELL = "mapping: 'root = [error(), error_source_name(), error_source_label(), error_source_path()]'"


def told(yaml: str, a_run: Run, payload: str = "{}") -> list[str | None]:
    """Run a pipeline whose last processor tells the error; return what it tells of each message."""
    config = parse_config(yaml, env={})
    processors = build_context(config.resources).build_all(config.processors)
    [batch] = run(processors, [messages(payload)], a_run.ex)
    found: list[str | None] = json.loads(batch[0].raw)
    return found


@pytest.mark.parametrize(
    ("processor", "source"),
    [
        ('mapping: root = throw("no")', ["mapping", "", "pipeline.processors.0"]),
        ('bloblang: root = throw("no")', ["bloblang", "", "pipeline.processors.0"]),
        (
            '{label: loud, mutation: root = throw("no")}',
            ["mutation", "loud", "pipeline.processors.0"],
        ),
        (
            'try: [{noop: {}}, {label: deep, mapping: root = throw("no")}]',
            ["mapping", "deep", "pipeline.processors.0.try.1"],
        ),
        (
            "group_by_value: {value: '${! throw(\"no\") }'}",
            ["group_by_value", "", "pipeline.processors.0"],
        ),
    ],
)
def test_a_failure_names_its_processor(processor: str, source: list[str], a_run: Run) -> None:
    error, *found = told(f"pipeline:\n  processors:\n    - {processor}\n    - {TELL}\n", a_run)
    assert found == source
    assert error is not None and "no" in error


def test_without_a_failure_there_is_no_source(a_run: Run) -> None:
    assert told(f"pipeline:\n  processors:\n    - {TELL}\n", a_run) == [None] * 4


def test_within_a_catch_the_source_is_known_and_after_it_no_more(a_run: Run) -> None:
    yaml = f"""pipeline:
  processors:
    - label: first
      mapping: root = throw("no")
    - catch:
        - {TELL}
    - mapping: 'root = this.append(error_source_name())'
"""
    assert told(yaml, a_run)[1:] == ["mapping", "first", "pipeline.processors.0", None]


def test_the_error_itself_is_a_plain_text(a_run: Run) -> None:
    yaml = """pipeline:
  processors:
    - mapping: root = throw("no")
    - mapping: 'root = [error().uppercase() + "!", error() == error().string()]'
"""
    assert told(yaml, a_run) == ["FAILED ASSIGNMENT (LINE 1): NO!", True]


def test_a_text_that_marks_a_message_without_a_component_has_no_source() -> None:
    from streamer.bloblang import compile_mapping
    from tests.bloblang.running import execution

    mapping = compile_mapping("root = [error(), error_source_name()]")
    assert mapping.query([Message(b"", error="bad")], 0, execution()) == ["bad", None]


def test_the_source_survives_pickling_and_windows() -> None:
    failure = Failure("no", "mapping", "loud", "pipeline.processors.0")
    for copy in (pickle.loads(pickle.dumps(failure)), decode_meta(encode_meta({}, failure))[1]):
        assert type(copy) is Failure
        assert (str(copy), copy.name, copy.label) == ("no", "mapping", "loud")
        assert copy.path == "pipeline.processors.0"
    assert decode_meta(encode_meta({"a": 1}, "plain")) == ({"a": 1}, "plain")
