"""Streams of files, texts and documents: findings, plans, unit tests, and no secret in any text."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import streamer
from streamer.core.errors import ConfigError

WINDOWS = """\
buffer:
  tumbling_window: { timestamp_mapping: root = this.at, size: 10s }
pipeline:
  processors:
    - mapping: 'root = if batch_index() == 0 { {"count": batch_size()} } else { deleted() }'
"""
TESTED = (
    WINDOWS
    + """\
tests:
  - name: two messages are one window
    target: stream
    clock: 2026-01-01T00:00:00Z
    steps:
      - { send: [{ json_content: { at: 1 } }], end_of_input: true }
    output_batches: [[{ json_equals: { count: COUNT } }]]
"""
)


def test_a_file_a_text_and_a_document_give_the_same_stream(tmp_path: Path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_text(WINDOWS)
    document = {
        "buffer": {"tumbling_window": {"timestamp_mapping": "root = this.at", "size": "10s"}},
        "pipeline": {
            "processors": [
                {
                    "mapping": 'root = if batch_index() == 0 { {"count": batch_size()} } '
                    "else { deleted() }"
                }
            ]
        },
    }
    sample = [{"at": 1}, {"at": 2}, {"at": 11}]
    for stream in (streamer.load(path), streamer.loads(WINDOWS), streamer.load(document)):
        assert list(stream.lint()) == []
        assert stream.simulate(sample)["count"].to_pylist() == [2, 1]
    assert streamer.load(str(path)).name == "windows" and streamer.loads(WINDOWS).name == "stream"


def test_all_findings_come_with_their_places_and_as_one_error(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("input:\n  stdin: { codecs: lines }\noutput:\n  nothing: {}\n")
    findings = streamer.load(path).lint()
    assert [(one.line, one.column) for one in findings] == [(2, 12), (4, 3)]
    assert findings[0].file == str(path) and len(findings[:1]) == 1
    assert "codecs" in str(findings) and str(path) in findings._repr_html_()
    with pytest.raises(ConfigError) as raised:
        findings.raise_for_findings()
    assert len(raised.value.lints) == 2
    stream = streamer.load(path)
    for method in (stream.explain, stream.start, stream.run, stream.results):
        with pytest.raises(streamer.ConfigError) as raised:
            method()
        assert raised.value.lints == tuple(findings)
    with pytest.raises(streamer.ConfigError):
        streamer.simulate(stream, [])


def test_a_file_is_read_again_by_each_method(tmp_path: Path) -> None:
    path = tmp_path / "changing.yaml"
    path.write_text("inputs: {}")
    stream = streamer.load(path)
    assert len(stream.lint()) == 1
    path.write_text(WINDOWS)
    assert len(stream.lint()) == 0 and "tumbling_window: size 10s" in str(stream.explain())


def test_options_of_the_command_line_are_there(tmp_path: Path) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("processor_resources: [{ label: once, mapping: root.a = 1 }]")
    text = "pipeline: { processors: [{ resource: once }] }"
    assert [one.code for one in streamer.loads(text).lint()] == ["missing_resource"]
    stream = streamer.loads(text, resources=[more], sets=["pipeline.threads=x"])
    assert [one.code for one in stream.lint()] == ["expected_int"]
    stream = streamer.loads(text, resources=[more], checkpoint=tmp_path / "place")
    assert str(tmp_path / "place") in str(stream.explain())
    assert stream.simulate([{}])["a"].to_pylist() == [1]


def test_a_template_is_a_component(tmp_path: Path) -> None:
    template = tmp_path / "twice.yaml"
    template.write_text("name: twice\ntype: processor\nmapping: 'root.mapping = \"root.b = 2\"'\n")
    stream = streamer.loads("pipeline: {processors: [{twice: {}}]}", templates=[template])
    assert list(stream.lint()) == [] and stream.simulate([{}])["b"].to_pylist() == [2]
    # It is gone afterwards.
    assert len(streamer.loads("pipeline: {processors: [{twice: {}}]}").lint()) == 1


@pytest.mark.parametrize("count", [1, 2])
def test_unit_tests_run_and_report(count: int, tmp_path: Path) -> None:
    text = TESTED.replace("COUNT", str(count))
    path = tmp_path / "tested.yaml"
    path.write_text(text)
    for stream in (streamer.load(path), streamer.loads(text)):
        report = stream.test()
        assert (len(report.cases), report.passed) == (1, count == 1)
        if count == 1:
            report.raise_for_failures()
            continue
        with pytest.raises(AssertionError, match="two messages are one window"):
            report.raise_for_failures()
        assert "1 failed" in str(report) and "expected" in report._repr_html_()
    assert str(streamer.loads(WINDOWS).test()) == "no tests"
    assert not streamer.loads(WINDOWS).test().passed


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: streamer.load("nowhere.yaml"), "there is no such file"),
        (lambda: streamer.load(WINDOWS), "streamer.loads takes a text of YAML"),
        (lambda: streamer.loads(b"input: {}"), "a config's text is a str, got bytes"),
        (lambda: streamer.load({"input": {"x": object()}}), "an object of the type object"),
        (lambda: streamer.loads(WINDOWS).results(), "the stream stream keeps no results"),
        (lambda: streamer.loads(WINDOWS).simulate("text"), "expected a list of dicts"),
        (lambda: streamer.loads(WINDOWS).simulate([{"a": {1}}]), "message 1 is an object of the"),
        (lambda: streamer.loads(WINDOWS).simulate([], step="soon"), "step is 'soon'"),
        (lambda: streamer.loads(WINDOWS).simulate([], clock="soon"), "clock is 'soon'"),
        (lambda: streamer.loads(WINDOWS).simulate([{}], arrival="root = ("), "arrival: "),
    ],
)
def test_what_cannot_be_done_has_a_reason(call: Any, text: str) -> None:
    with pytest.raises(streamer.StreamerError) as raised:
        call()
    assert text in str(raised.value)


def test_a_document_that_contains_itself_is_refused() -> None:
    document: dict[str, Any] = {}
    document["input"] = document
    with pytest.raises(streamer.StreamerError, match="it contains itself"):
        streamer.load(document)


def test_no_representation_has_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "canary-of-the-variable")
    document = {
        "output": {
            "http_client": {
                "url": "http://ann:canary-of-the-url@localhost/${DB_PASSWORD}",
                "oauth": {"enabled": True, "consumer_secret": "canary-of-the-field"},
            }
        }
    }
    stream = streamer.load(document, name="secret", sets=["output.label=canary_of_a_set"])
    texts = [repr(stream), str(stream), repr(stream.lint()), str(stream.explain())]
    texts += [repr(stream._source), stream.explain()._repr_html_(), repr(stream.test())]
    assert [text for text in texts if "canary-" in text] == []
    assert "canary" not in repr(stream)


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(streamer.StreamFailedError("x", "it broke")))
    assert (error.stream, str(error)) == ("x", "the stream x has failed: it broke")
