"""The text of a run-time error, worked out from where in the generated code it was raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from streamer.bloblang.compiler import error_sites
from streamer.bloblang.compiler.error_sites import Site
from streamer.bloblang.errors import (
    MapRecursionError,
    NoContextError,
    NotBooleanError,
    OperandMismatch,
    PrefixedError,
    QueryError,
    RecordedError,
    TypeMismatch,
    UnplacedError,
)
from streamer.bloblang.golib.text import go_text, go_type


@dataclass(slots=True)
class Finding:
    """An error's text on its way outwards.

    Attributes:
        text: what is known so far.
        error: the error that the text still stands for; None once something was put before it.
        sealed: whether the text already says what the value came from.
        context: the path and the reason when the message is no document.
        failed_assignment: the text of the failed assignment inside a named map, if one was passed.
        too_deep: what is told instead of all that stands between a map and too many of them.
        line: line of the outermost statement passed so far.
    """

    text: str
    error: BaseException | None
    sealed: bool = False
    context: tuple[str, str] | None = None
    failed_assignment: str | None = None
    too_deep: str = ""
    line: int = 0


SiteTable = Mapping[str, Mapping[int, Site]]


_TOO_DEEP_TEXT: Final = "the value is nested too deeply"


def explain_error(error: BaseException, table: SiteTable) -> Finding:
    """Follow an exception's trace from the inside out and put its text together.

    Args:
        error: what was raised, with its traceback.
        table: the sites by generated line, by the name of the generated code.
    """
    try:
        finding = _start_finding(error, table)
        for site, frame in reversed(_generated_frames(error, table)):
            finding.line = site.line
            for step in site.steps:
                _apply_step(step, finding, frame)
    except RecursionError:  # a value that the text shows
        frames = _generated_frames(error, table)
        finding = Finding(
            _TOO_DEEP_TEXT, None, sealed=True, line=frames[0][0].line if frames else 0
        )
    return finding


def _start_finding(error: BaseException, table: SiteTable) -> Finding:
    if isinstance(error, PrefixedError):
        finding = explain_error(error.cause, table)
        finding.text = error.prefix + finding.text
        finding.error = None
        return finding
    if isinstance(error, RecursionError):
        return Finding(_TOO_DEEP_TEXT, None, sealed=True)
    if isinstance(error, MemoryError):
        return Finding("memory exhausted", None, sealed=True)
    if isinstance(error, NoContextError):
        return Finding(str(error), error, context=("", error.reason))
    if isinstance(error, RecordedError):
        return Finding(str(error), error if error.is_mismatch else None, sealed=error.sealed)
    text = str(error) if isinstance(error, QueryError) else str(error) or type(error).__name__
    finding = Finding(text, error, isinstance(error, UnplacedError))
    if isinstance(error, MapRecursionError):
        finding.too_deep = finding.text
    return finding


def _generated_frames(error: BaseException, table: SiteTable) -> list[tuple[Site, FrameType]]:
    """Return the generated lines that the exception passed, outermost first."""
    frames: list[tuple[Site, FrameType]] = []
    trace = error.__traceback__
    previous: int | None = None
    while trace is not None:
        frame = trace.tb_frame
        lines = table.get(frame.f_code.co_filename)
        if lines is not None:
            site = lines.get(trace.tb_lineno)
            nested = frame.f_code.co_name.startswith("<") and trace.tb_lineno == previous
            if site is not None and nested:
                frames[-1] = (site, frame)
            elif site is not None:
                frames.append((site, frame))
            previous = trace.tb_lineno
        trace = trace.tb_next
    return frames


def _apply_step(step: error_sites.Step, finding: Finding, frame: FrameType) -> None:
    error = finding.error
    match step:
        case error_sites.ValueOrigin(origin=origin):
            _add_origin(finding, origin)
        case error_sites.Operands(left=left, right=right):
            if isinstance(error, OperandMismatch):
                finding.text = error.describe(left, right)
            else:
                _add_origin(finding, right)
        case error_sites.Condition(origin=origin, of_document=of_document):
            if isinstance(error, NotBooleanError):
                kind = go_type(error.value, of_document=of_document)
                value_text = go_text(error.value)
                finding.text = f"{origin} resolved to a non-boolean value {value_text} ({kind})"
                finding.error = None
        case error_sites.Prefix(text=text):
            finding.text = text + finding.text
            finding.error = None
        case error_sites.PrefixElement():
            finding.text = step.text.format(_current_element(step, frame.f_locals)) + finding.text
            finding.error = None
        case error_sites.PrefixKey(text=text, variable=variable):
            finding.text = text.format(frame.f_locals.get(variable, "")) + finding.text
            finding.error = None
        case error_sites.Context(path=path):
            if isinstance(error, NoContextError) and finding.context is not None:
                finding.context = (path, finding.context[1])
                if path:
                    finding.text += f", unable to reference `{path}`"
        case error_sites.FailedAssignment(line=line):
            if finding.failed_assignment is None:
                finding.text = finding.too_deep or finding.text
                finding.failed_assignment = f"failed assignment (line {line}): {finding.text}"
            finding.text = finding.failed_assignment
            finding.error = None


def _add_origin(finding: Finding, origin: str) -> None:
    error = finding.error
    if isinstance(error, TypeMismatch):
        error.origin = error.origin or origin
        finding.text = str(error)
    elif not finding.sealed and not isinstance(
        error, OperandMismatch | NoContextError | RecordedError
    ):
        finding.text = f"{origin}: {finding.text}"
        finding.sealed = True
        finding.error = None


def _current_element(step: error_sites.PrefixElement, variables: Mapping[str, Any]) -> Any:
    """Return the index or key of the element that an iterator is at."""
    iterator = variables.get(step.iterator, variables.get(".0"))
    reduced: tuple[Any, ...] = iterator.__reduce__() if iterator is not None else ()
    place = reduced[2] - 1 if len(reduced) > 2 else 0
    keys = variables.get(step.keys)
    return keys[place] if keys else place


def explain_assignment_error(error: BaseException, table: SiteTable) -> str:
    """Return the text of a mapping's failure (`failed assignment (line 1): …`)."""
    finding = explain_error(error, table)
    text = finding.text
    if finding.context is not None:
        path, reason = finding.context
        reference = f"this.{path}" if path else "this"
        parse = reason if reason == "message is empty" else f"parse as json: {reason}"
        text = f"unable to reference message as structured (with '{reference}'): {parse}"
    return f"failed assignment (line {finding.line}): {text}"
