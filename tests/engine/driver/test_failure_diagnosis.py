"""Which component a failure comes from, and what a person is told of it."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamer.core.errors import StreamerError
from streamer.engine.driver.failure_diagnosis import (
    NO_DIAGNOSIS,
    Diagnosis,
    WaitingInputs,
    diagnose,
    root_cause_line,
)
from streamer.engine.report.component_errors import (
    ComponentFailedError,
    ComponentFailure,
    attribute_errors,
    attribute_iteration_errors,
    encode_errors,
)
from streamer.engine.report.metric_labels import EndpointLabels
from tests.engine.stream import Run, write_lines

PLACES = EndpointLabels(
    {"label": "src", "path": "root.input"},
    {"label": "", "path": "root.buffer"},
    ({"label": "dst", "path": "root.output"},),
)
CHECKPOINT = "/var/lib/cars"
STACK = "\n\tat org.apache.spark.Foo.bar(Foo.scala:12)\n\t... 3 more\nDriver stacktrace:\n"
GONE = (
    f"the checkpoint {CHECKPOINT} was removed or changed while the stream runs; restore it, or "
    f"start again with another one"
)
QUERY = "\n=== Streaming Query ===\nIdentifier: cars\nStreamExecution: x.Error: no\n"


def raising(error: Exception) -> Iterator[int]:
    yield 1
    raise error


def spark_text(error: Exception) -> str:
    """What Spark makes of an exception in a worker."""
    trace = "".join(traceback.format_exception(error))
    return (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure"
        f" Task 0 in stage 3.0 failed 1 times: org.apache.spark.api.python.PythonException: {trace}"
        f"{STACK}{QUERY}"
    )


def test_the_innermost_component_is_blamed_and_spark_passes_it_on() -> None:
    inner, outer = {"label": "a", "path": "root.input"}, {"label": "", "path": "root.output"}
    with pytest.raises(StreamerError) as raised:
        list(
            encode_errors(
                attribute_iteration_errors(
                    attribute_iteration_errors(raising(RuntimeError('one\ntwo "3" é')), inner),
                    outer,
                )
            )
        )
    found = diagnose(spark_text(raised.value), PLACES, CHECKPOINT)
    assert found.text == 'RuntimeError: one two "3" é'
    assert found.place == inner


def test_what_we_say_ourselves_needs_no_type() -> None:
    with (
        pytest.raises(ComponentFailedError) as raised,
        attribute_errors({"label": "", "path": "root.input"}),
    ):
        raise StreamerError("the file is gone; put it back")
    assert str(raised.value) == "root.input: the file is gone; put it back"
    assert pickle.loads(pickle.dumps(raised.value)).failure == raised.value.failure


def test_a_mark_that_is_cut_off_blames_nobody() -> None:
    assert ComponentFailure.from_error_text('streamer-failure {"text": "a", "lab') is None
    assert ComponentFailure.from_error_text("streamer-failure {}") is None


@pytest.mark.parametrize(
    ("error", "text", "path"),
    [
        (
            f"java.lang.OutOfMemoryError: Java heap space{STACK}",
            "Spark's JVM has no memory left (Java heap space): spark.conf.spark.driver.memory sets "
            "its heap",
            "root.input",
        ),
        (
            f"java.io.IOException: No space left on device{STACK}",
            f"the disk of the checkpoint {CHECKPOINT} is full: make room there",
            "root.buffer",
        ),
        (
            "Task 1 in stage 9.0 failed 4 times, most recent failure: Lost task 1.3 in stage 9.0 "
            "(TID 44) (10.0.0.3 executor 2): java.nio.file.FileSystemException: /srv/spark/x.data: "
            f"No space left on device{STACK}",
            "a disk of the worker 10.0.0.3 is full, or the disk of the checkpoint "
            f"{CHECKPOINT} is full: make room there",
            "root.buffer",
        ),
        (
            "Lost task 1.2 in stage 9.0 (TID 44) (laptop executor driver): java.io.IOException: "
            f"No space left on device{STACK}",
            f"the disk of the checkpoint {CHECKPOINT} is full: make room there",
            "root.buffer",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
            f"{STACK}Caused by: java.io.EOFException{STACK}",
            "a Python worker ended (killed, or out of memory): its work is repeated",
            "root.input",
        ),
        (
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): Fatal "
            "Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
            '  File "/x/fastavro/read.py", line 1 in f\n'
            '  File "/x/streamer/components/processors/avro.py", line 1 in from_bytes\n'
            f'  File "/x/streamer/components/processors/branch.py", line 1 in process\n{STACK}',
            "a Python worker ended (Segmentation fault, in the processor avro): its work is "
            "repeated",
            "root.input",
        ),
        (
            "org.apache.spark.SparkException: Python worker failed to connect back."
            f"{STACK}Caused by: java.net.SocketTimeoutException: Timed out while waiting for the "
            f"Python worker to connect back{STACK}",
            "a Python worker did not start in time: the machine has more to do than it can, or no "
            "memory left",
            "root.input",
        ),
        (
            "org.apache.spark.SparkException: EOFException occurred while reading the port number "
            f"from pyspark.daemon's stdout.{STACK}",
            "a Python worker ended (killed, or out of memory): its work is repeated",
            "root.input",
        ),
        (
            "Python worker exited unexpectedly (crashed)\n\tat "
            "org.apache.spark.sql.execution.python.streaming.TransformWithStateInPySparkExec(x)",
            "a Python worker ended (killed, or out of memory): its work is repeated",
            "root.buffer",
        ),
        (
            "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access "
            f"topics: [cars]{STACK}",
            "Kafka: Not authorized to access topics: [cars] (TopicAuthorization)",
            "root.input",
        ),
        (
            f"java.io.FileNotFoundException: File file:{CHECKPOINT}/spark/state/0/1/3.delta does "
            f"not exist{STACK}",
            GONE,
            "root.buffer",
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: "
            f"'{CHECKPOINT}/signals/driver.tmp'{STACK}",
            GONE,
            "root.buffer",
        ),
        (
            f"[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.{STACK}Caused by: "
            "java.io.IOException: error=0, Failed to exec spawn helper: pid: 7, exit value: 1"
            f"{STACK}",
            "Java can start no process any more: it was replaced while it ran, as by an upgrade; "
            "start the program again",
            "root.buffer",
        ),
        (
            f"[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.{STACK}Caused by: "
            'java.io.IOException: Cannot run program "chmod": error=11, Resource temporarily '
            f"unavailable{STACK}",
            "chmod cannot be started: error=11, Resource temporarily unavailable",
            "root.buffer",
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
            f"{STACK}Caused by: net.jpountz.lz4.LZ4Exception: Stream is corrupted{STACK}",
            f"what the checkpoint {CHECKPOINT} holds cannot be read: LZ4Exception: Stream is "
            "corrupted; if this persists, restore the checkpoint from a backup, or start again "
            "with another one",
            "root.buffer",
        ),
        (
            "py4j.protocol.Py4JJavaError: An error occurred while calling o280.getResult.\n"
            f"[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.{STACK}Caused by: "
            f"java.io.EOFException: at {CHECKPOINT}/spark/state/0/1/2_ab.changelog{STACK}",
            f"what {CHECKPOINT}/spark/state/0/1/2_ab.changelog holds cannot be read: EOFException: "
            f"at {CHECKPOINT}/spark/state/0/1/2_ab.changelog; if this persists, restore the "
            "checkpoint from a backup, or start again with another one",
            "root.buffer",
        ),
        (
            "[X] Please either use a new checkpoint location, or delete the existing data in the "
            f"checkpoint location. SQLSTATE: 42K03{STACK}",
            GONE,
            "root.buffer",
        ),
    ],
)
def test_what_the_machine_runs_into_is_said_in_a_sentence(error: str, text: str, path: str) -> None:
    found = diagnose(f"Task 0 in stage 3.0 failed 1 times: {error}{QUERY}", PLACES, CHECKPOINT)
    assert (found.text, found.place["path"]) == (text, path)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            'Traceback (most recent call last):\n  File "x", line 1, in f\nValueError: bad',
            "ValueError: bad",
        ),
        (f"x{STACK}Caused by: a.b.OffsetException: moved{STACK}", "OffsetException: moved"),
        (f"org.apache.spark.SparkException: it is over{STACK}", "SparkException: it is over"),
        (f"a.streamer.core.errors.StreamerError: mend it{STACK}", "mend it"),
        ("", "no reason given"),
    ],
)
def test_of_all_else_the_line_is_told_that_says_most(error: str, line: str) -> None:
    assert root_cause_line(error) == line


@pytest.mark.parametrize("window", ["", "buffer: { system_window: { size: 10s } }\n"])
def test_an_input_that_breaks_down_is_blamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "in", [1])
    run = Run(f"input: {{ label: src, file: {{ paths: [in] }} }}\n{window}")

    def broken(*_: object) -> Iterator[object]:
        raise OSError("the disk is broken")
        yield

    monkeypatch.setattr(type(run.source), "read", broken)
    with pytest.raises(ComponentFailedError) as raised:
        run.step(1_700_000_000 * 10**9)
    assert raised.value.failure == ComponentFailure(
        "OSError: the disk is broken", "src", "root.input"
    )


def test_what_inputs_wait_for_is_the_trouble_where_there_is_no_other_one():
    place = {"label": "a", "path": "root.input"}
    waits, other = Diagnosis("redis: refused", place), Diagnosis("output: full")
    inputs = WaitingInputs(place)
    assert inputs.update(NO_DIAGNOSIS, "redis: refused") == waits
    assert inputs.update(waits, "redis: reset").text == "redis: reset"
    assert inputs.update(Diagnosis("redis: reset", place), "") == NO_DIAGNOSIS
    assert inputs.update(other, "redis: refused") == other
    assert inputs.update(other, "") == other


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("OSError: [Errno 24] Too many open files: '/x'", "file descriptors"),
        ("java.io.IOException: No space left on device", "is full"),
        ("OSError: [Errno 12] Cannot allocate memory", "no memory left"),
        ("OutOfMemoryError: unable to create native thread", "no memory left"),
        ("Timed out while waiting for the Python worker to connect back", "did not start in time"),
    ],
)
def test_what_the_machine_lacks_may_pass(error, text):
    found = diagnose(error, PLACES, "/cp")
    assert found.is_transient and text in found.text
    assert found.is_overloaded == ("in time" in text)
