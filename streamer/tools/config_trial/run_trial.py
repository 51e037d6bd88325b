"""Runs a trial of a config, and hands out what it finds piece by piece, as plain values.

A piece is handed out as soon as it is known: of a trial that is stopped, the rest can be shown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamer.config.secrets import add_variable_values
from streamer.config.templates.installation import install_templates
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.core.limits import set_limits
from streamer.core.message import Batch, Message, describe_failure
from streamer.core.permissions import limit_permissions
from streamer.core.redaction import Redaction
from streamer.core.timestamps import format_rfc3339
from streamer.plan import Plan, make_plan
from streamer.sdk.spec import ParsedComponent
from streamer.tools.config_trial.request import TrialRequest, UnitTestTexts

if TYPE_CHECKING:
    from streamer.tools.unit_tests.suite import CaseResult

Emit = Callable[[dict[str, Any]], None]

MAX_SHOWN_CHARS: Final = 4_000
"""Characters of a message, of a value of metadata, or of a line that are shown."""

_MAX_SHOWN_MESSAGES: Final = 50
_MAX_METADATA: Final = 50
_MAX_TAP_MESSAGES: Final = 10
_MAX_WINDOWS: Final = 300
_MAX_LOG_LINES: Final = 50
_MAX_FAILURES: Final = 20
_MAX_FAILURE_LINES: Final = 60


def run_trial(request: TrialRequest, directory: str, emit: Emit) -> None:
    """Run a trial; a `problem` that keeps it from being run is a piece as well.

    Args:
        request: the trial.
        directory: an empty directory of its own.
        emit: takes the pieces.
    """
    run = {"tests": _run_tests, "timeline": _run_timeline, "tap": _run_tap, "dry-run": _run_checks}
    try:
        with limit_permissions(request.permissions):
            run[request.kind](request, directory, emit)
    except StreamerError as e:
        emit({"problem": _make_redaction(request).redact_text(str(e))})
    except MemoryError:
        emit({"problem": "it takes more memory than is given to it here"})
    except RecursionError:
        emit({"problem": "it is nested too deeply"})
    except Exception as e:  # a component that breaks down must not look like a lack of memory
        text = shorten(f"{type(e).__name__}: {e}")
        emit({"problem": _make_redaction(request).redact_text(text)})


def _make_redaction(request: TrialRequest) -> Redaction:
    config = request.config
    return Redaction(add_variable_values(config.secrets, config.inputs))


def write_files(files: UnitTestTexts, directory: str) -> None:
    """Write the texts of tests into a directory, where they are read as files are."""
    for name, text in {**files.definitions, files.name: files.text}.items():
        (Path(directory) / os.path.basename(name)).write_text(text, encoding="utf-8")


def _run_tests(request: TrialRequest, directory: str, emit: Emit) -> None:
    from streamer.tools.unit_tests.suite import find_suites, run_case
    from streamer.tools.unit_tests.suite_environment import SuiteEnvironment

    files = request.tests
    if files is None:
        raise StreamerError("there is no text that tests could be read from")
    path = os.path.join(directory, os.path.basename(files.name))
    environment = SuiteEnvironment(path, files.resources, files_directory=files.directory)
    redaction = _make_redaction(request)
    with install_templates(files.templates, lambda lint: None):
        definitions = [one for suite in find_suites([path]) for one in suite.definitions]
        for one in definitions:
            name = "" if one.file == path else os.path.basename(one.file)
            for lint in one.lints:
                text = redaction.redact_text(lint.message)
                emit({"lint": {"file": name, "line": lint.line, "text": shorten(text)}})
            for case in one.cases:
                emit({"begins": case.parsed["name"] or f"the test of line {case.line}"})
                result = run_case(case, one.file, environment)
                document = _describe_result(result, name, directory)
                emit({"test": redaction.redact_value(document)})


def _describe_result(result: CaseResult, file: str, directory: str) -> dict[str, Any]:
    failures = [
        [
            {"text": shorten(line.text, directory), "tone": line.tone}
            for line in failure[:_MAX_FAILURE_LINES]
        ]
        for failure in result.failures[:_MAX_FAILURES]
    ]
    return {
        "name": shorten(result.name),
        "file": file,
        "line": result.line,
        "passed": not result.failures,
        "error": result.error,
        "seconds": round(result.seconds, 4),
        "failures": failures,
    }


def _run_timeline(request: TrialRequest, directory: str, emit: Emit) -> None:
    from streamer.engine.offline.arrival_clock import ArrivalTimes
    from streamer.tools.timeline.model import WindowSpan, format_numbers
    from streamer.tools.timeline.simulate_results import simulate_buffer
    from streamer.tools.timeline.svg import draw_timeline

    plan = _make_plan(request)
    arrivals = ArrivalTimes(request.clock, request.step)
    timeline = simulate_buffer(plan, request.buffer, _make_sample(request), arrivals, time.time_ns)
    timeline.redact(_make_redaction(request).redact_text)
    for event in timeline.events:
        # The drawing has no more of it than fits into a row.
        event.text = event.text[:MAX_SHOWN_CHARS]
    numbers = {id(span): number for number, span in enumerate(timeline.spans, 1)}

    def describe_window(span: WindowSpan) -> dict[str, Any]:
        return {
            "number": numbers[id(span)],
            "key": None if span.key is None else shorten(span.key),
            "start": _format_time(span.start),
            "end": _format_time(span.end),
            "closed": _format_time(span.closed),
            "messages": len(span.numbers),
            "numbers": shorten(format_numbers(span.numbers)),
            **({} if span.retracted is None else {"retracted": _format_time(span.retracted)}),
        }

    for event in timeline.events:
        inside = [numbers[id(span)] for span in (*event.windows, *event.waiting)]
        emit(
            {
                "message": {
                    "number": event.number,
                    "content": shorten(event.text)[:300],
                    "arrived": _format_time(event.arrived),
                    "time": _format_time(event.time),
                    "windows": inside[:_MAX_WINDOWS],
                    "dropped": event.dropped,
                    "why": event.why or event.failed,
                }
            }
        )
    for span in timeline.spans[:_MAX_WINDOWS]:
        emit({"window": describe_window(span)})
    if len(timeline.spans) <= _MAX_WINDOWS:
        emit({"svg": draw_timeline(timeline)})


def _run_tap(request: TrialRequest, directory: str, emit: Emit) -> None:
    from streamer.engine.offline.sample_input import read_input_sample
    from streamer.sdk.lookup_table import use_local_tables
    from streamer.tools.tap.stages import tap

    plan = _make_plan(request)
    sample = _make_sample(request)
    if not sample:
        sample = read_input_sample(plan, _MAX_TAP_MESSAGES, Execution(time.time_ns))
    redaction = _make_redaction(request)
    with use_local_tables(plan.resources, plan.context()):
        for stage in tap(plan, sample):
            shown = _MAX_SHOWN_MESSAGES
            batches = []
            for batch in stage.batches:
                if shown <= 0:
                    break
                batches.append([_describe_message(one) for one in batch[:shown]])
                shown -= len(batch)
            emit(
                {
                    "stage": redaction.redact_value(
                        {
                            "path": stage.path,
                            "component": stage.name,
                            "label": stage.label,
                            "note": stage.note,
                            "messages": sum(map(len, stage.batches)),
                            "batch_count": len(stage.batches),
                            "batches": batches,
                            "dropped_count": len(stage.dropped),
                            "dropped": [
                                _describe_message(one)
                                for one in stage.dropped[:_MAX_SHOWN_MESSAGES]
                            ],
                            "logged": [
                                {"level": level, "text": shorten(text)}
                                for level, text, _ in stage.logged[:_MAX_LOG_LINES]
                            ],
                        }
                    )
                }
            )


def _run_checks(request: TrialRequest, directory: str, emit: Emit) -> None:
    from streamer.tools.dry_run.components import check_components

    def announce(component: ParsedComponent) -> bool:
        emit({"begins": f"{component.path or component.kind}: {component.name}"})
        return True

    redaction = _make_redaction(request)
    for check in check_components(_make_plan(request), announce):
        emit(
            {
                "check": {
                    "name": shorten(redaction.redact_text(check.name)),
                    "ok": check.ok,
                    "detail": shorten(redaction.redact_text(check.detail)),
                }
            }
        )


def _make_plan(request: TrialRequest) -> Plan:
    plan = make_plan(replace(request.config, path=request.config.path or "config"), "OFF")
    set_limits(plan.limits)
    return plan


def _make_sample(request: TrialRequest) -> list[Batch]:
    return [[Message(one)] for one in request.messages]


def _describe_message(message: Message) -> dict[str, Any]:
    raw = message.raw
    metadata = {
        shorten(name): shorten(value if isinstance(value, str) else repr(value))
        for name, value in _first_items(dict(message.meta))
    }
    return {
        "content": raw[: 4 * MAX_SHOWN_CHARS].decode(errors="replace")[:MAX_SHOWN_CHARS],
        "bytes": len(raw),
        "metadata": metadata,
        "failed": "" if message.error is None else shorten(describe_failure(message.error)),
    }


def _first_items(values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(values.items()):
        if number >= _MAX_METADATA:
            return
        yield item


def shorten(text: str, directory: str = "") -> str:
    """Return a text of at most `MAX_SHOWN_CHARS`, without the directory that the trial was in."""
    if directory:
        text = text.replace(f"{directory}{os.sep}", "")
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _format_time(at: int | None) -> str | None:
    return None if at is None else format_rfc3339(at)
