from __future__ import annotations

import pickle

import pytest

from streamer.core.errors import StreamAbortedError
from streamer.core.message import Message
from streamer.engine.driver.failure_diagnosis import diagnose
from streamer.engine.report.component_errors import attribute_errors, encode_errors
from streamer.engine.report.metric_labels import EndpointLabels
from streamer.sdk.processing import run, run_each

from .conftest import Make, Run, messages

CRASH = "crash: 'not ${! content() }'"


@pytest.mark.parametrize(
    ("yaml", "text"),
    [
        (CRASH, "not a"),
        ("crash: '${! json(\"x\") }'", "failed to interpolate crash message: .*"),
        (f"try: [ {{ {CRASH} }} ]", "not a"),
        (f"for_each: [ {{ {CRASH} }} ]", "not a"),
        (f"switch: [ {{ processors: [ {{ {CRASH} }} ] }} ]", "not a"),
        (f"branch: {{ processors: [ {{ {CRASH} }} ] }}", "not a"),
        (f"parallel: {{ processors: [ {{ {CRASH} }} ] }}", "not a"),
        (f"retry: {{ processors: [ {{ {CRASH} }} ] }}", "not a"),
        (f"workflow: {{ branches: {{ b: {{ processors: [ {{ {CRASH} }} ] }} }} }}", "not .*"),
        (f"try_catch: {{ processors: [ {{ {CRASH} }} ], catch: [] }}", "not a"),
        (
            f"while: {{ at_least_once: true, check: 'false', processors: [ {{ {CRASH} }} ] }}",
            "not a",
        ),
        (f"group_by: [ {{ check: 'true', processors: [ {{ {CRASH} }} ] }} ]", "not a"),
    ],
)
def test_it_ends_the_stream_wherever_it_stands_and_marks_nothing(
    make: Make, a_run: Run, yaml: str, text: str
) -> None:
    processor = make(yaml)
    for runner in (
        lambda: list(run([processor], [messages("a", "b")], a_run.ex)),
        lambda: run_each([processor], messages("a", "b"), a_run.ex),
    ):
        with pytest.raises(StreamAbortedError, match=f"^{text}$") as raised:
            runner()
        assert raised.value.path.startswith("root.pipeline.processors.0")
    assert ("processor_error", 1) not in a_run.counted


def test_without_messages_nothing_ends(make: Make, a_run: Run) -> None:
    assert list(run([make(CRASH)], [[]], a_run.ex)) == []
    unreached = f"switch: [ {{ check: 'false', processors: [ {{ {CRASH} }} ] }} ]"
    assert [one.raw for one in make(unreached).process([Message(b"a")], a_run.ex)[0]] == [b"a"]


def test_the_driver_reads_the_reason_and_the_place_from_what_spark_says() -> None:
    error = StreamAbortedError("out\nof range", "last", "root.pipeline.processors.0")
    assert pickle.loads(pickle.dumps(error)).path == error.path

    def broken() -> object:
        with attribute_errors({"label": "src", "path": "root.input"}):
            raise error
        yield

    with pytest.raises(Exception) as raised:
        list(encode_errors(broken()))
    nowhere: dict[str, str] = {}
    found = diagnose(
        f"Traceback:\nStreamerError: {raised.value}\n at Spark",
        EndpointLabels(nowhere, nowhere, nowhere, None),
        "/checkpoint",
    )
    assert found.is_abort and found.text == "out of range"
    assert found.place == {"label": "last", "path": "root.pipeline.processors.0"}
