"""The public interface: its names, which stay; nothing of Spark comes with them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import streamer.sdk as sdk
import streamer.sdk.testing as testing
from streamer.sdk.api_version import find_version_problem

ADDED_IN_1_1 = {"bloblang_function", "bloblang_method"}
TESTING_ADDED_IN_1_1 = {"BufferContract", "ScannerContract"}
# Names of version 1.0: a name leaves this list with a new major version only.
VERSION_1_0 = set(
    [
        "API_VERSION",
        "Access",
        "BATCHING_FIELD",
        "Batch",
        "BatchPolicy",
        "BuildContext",
        "BulkOutput",
        "ByteStream",
        "Cache",
        "CacheError",
        "ComponentRef",
        "Example",
        "Execution",
        "Field",
        "InputContext",
        "Interpolation",
        "KeyAlreadyExistsError",
        "KeyNotFoundError",
        "Kind",
        "LatestOffset",
        "Limit",
        "Mapping",
        "Message",
        "MessageError",
        "MessageReceiver",
        "MessageSpool",
        "MetricSample",
        "MetricsExporter",
        "NO_FIELDS",
        "NotConnectedError",
        "NotPermittedError",
        "Offset",
        "OpenableInput",
        "Output",
        "ParsedComponent",
        "ParsedFields",
        "PerMessageProcessor",
        "Permissions",
        "Processor",
        "REQUIRED",
        "RateLimit",
        "RateLimitError",
        "RawMessages",
        "ReceivedInput",
        "ReplayableSource",
        "ScanInput",
        "ScanMark",
        "ScannedCut",
        "Scanner",
        "SendError",
        "Spec",
        "StreamerError",
        "SupportsPreflight",
        "SupportsProbe",
        "TraceExporter",
        "TraceSpan",
        "WakingSource",
        "WindowBuffer",
        "batching_problems",
        "build_buffer",
        "compile_interpolation",
        "compile_mapping",
        "current_permissions",
        "duration_field",
        "event_time_fields",
        "find_grid_problems",
        "make_invalid_rejection",
        "max_in_flight_field",
        "output_policy",
        "read_grid",
        "wait_for_access",
    ]
)
TESTING_1_0 = set(
    [
        "CacheContract",
        "ComponentContract",
        "InputContract",
        "InputReader",
        "LoggedLine",
        "OutputContract",
        "ProcessorContract",
        "RateLimitContract",
        "RecordedExecution",
        "RecordedRequest",
        "RequestRecorder",
        "ScriptedClock",
        "TestedComponent",
        "make_batch",
        "make_message",
        "read_input",
        "record_requests",
        "run_processor",
        "send_batches",
        "use_component",
    ]
)


def test_the_names_of_the_version_are_all_there() -> None:
    assert sdk.API_VERSION == "1.1"
    assert set(sdk.__all__) == VERSION_1_0 | ADDED_IN_1_1
    assert set(testing.__all__) == TESTING_1_0 | TESTING_ADDED_IN_1_1
    for name in sdk.__all__:
        assert getattr(sdk, name) is not None
    assert set(sdk.__all__) <= set(dir(sdk))


def test_type_checkers_see_the_names_that_there_are() -> None:
    tree = ast.parse(Path(sdk.__file__).read_text())
    [block] = [one for one in tree.body if isinstance(one, ast.If)]
    imported = {
        alias.name: one.module
        for one in block.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
    }
    assert imported == sdk._MODULES
    assert sorted(imported) == sorted(sdk.__all__)


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'streamer.sdk' has no attribute 'nothing'"):
        sdk.nothing  # noqa: B018


@pytest.mark.parametrize("module", ["streamer.sdk", "streamer.sdk.testing"])
def test_importing_it_imports_no_spark(module: str) -> None:
    code = (
        f"import sys, {module} as one; [getattr(one, name) for name in one.__all__]; "
        "print([name for name in ('pyspark', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ("1.0", ""),
        ("1.1", ""),
        ("1.2", "it was built for version 1.2 of streamer.sdk; expected 1.1, or an earlier 1.x"),
        ("2.0", "built for version 2.0"),
        ("0.9", "built for version 0.9"),
        (None, "it declares no API_VERSION"),
        ((1, 0), "its API_VERSION is (1, 0); expected a text"),
        ("1", "its API_VERSION is '1'"),
        ("1.0.0", "its API_VERSION is '1.0.0'"),
    ],
)
def test_a_version_that_does_not_fit_is_named(declared: object, problem: str) -> None:
    found = find_version_problem(declared)
    assert problem in found and bool(found) == bool(problem)
