"""The text of a run-time error, worked out from where in the generated code it was raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from streamer.bloblang.compiler import sites
from streamer.bloblang.compiler.sites import Site
from streamer.bloblang.errors import (
    BloblangError,
    NoContext,
    NotBoolean,
    OperandMismatch,
    Prefixed,
    QueryError,
    ToldError,
    TooDeep,
    TypeMismatch,
    UnplacedError,
)
from streamer.bloblang.runtime.text import go_text, go_type


@dataclass(slots=True)
class Finding:
    """An error's text on its way outwards.

    Attributes:
        text: what is known so far.
        error: the error that the text still stands for; None once something was put before it.
        sealed: whether the text already says what the value came from.
        context: the path and the reason when the message is no document.
        failed: the text of the failed assignment inside a named map, if one was passed.
        too_deep: what is told instead of all that stands between a map and too many of them.
        line: line of the outermost statement passed so far.
    """

    text: str
    error: BaseException | None
    sealed: bool = False
    context: tuple[str, str] | None = None
    failed: str | None = None
    too_deep: str = ""
    line: int = 0


Table = Mapping[str, Mapping[int, Site]]


_TOO_DEEP: Final = "the value is nested too deeply"


def explain(error: BaseException, table: Table) -> Finding:
    """Follow an exception's trace from the inside out and put its text together.

    Args:
        error: what was raised, with its traceback.
        table: the sites by generated line, by the name of the generated code.
    """
    try:
        finding = _start(error, table)
        for site, frame in reversed(_frames(error, table)):
            finding.line = site.line
            for step in site.steps:
                _apply(step, finding, frame)
    except RecursionError:  # a value that the text shows
        frames = _frames(error, table)
        finding = Finding(_TOO_DEEP, None, sealed=True, line=frames[0][0].line if frames else 0)
    return finding


def _start(error: BaseException, table: Table) -> Finding:
    if isinstance(error, Prefixed):
        finding = explain(error.cause, table)
        finding.text = error.prefix + finding.text
        finding.error = None
        return finding
    if isinstance(error, RecursionError):
        return Finding(_TOO_DEEP, None, sealed=True)
    if isinstance(error, MemoryError):
        return Finding("memory exhausted", None, sealed=True)
    if isinstance(error, NoContext):
        return Finding(str(error), error, context=("", error.reason))
    if isinstance(error, ToldError):
        return Finding(str(error), error if error.said else None, sealed=error.sealed)
    text = str(error) if isinstance(error, QueryError) else str(error) or type(error).__name__
    finding = Finding(text, error, isinstance(error, UnplacedError))
    if isinstance(error, TooDeep):
        finding.too_deep = finding.text
    return finding


def _frames(error: BaseException, table: Table) -> list[tuple[Site, FrameType]]:
    """Return the generated lines that the exception passed, outermost first."""
    found: list[tuple[Site, FrameType]] = []
    trace = error.__traceback__
    previous: int | None = None
    while trace is not None:
        frame = trace.tb_frame
        lines = table.get(frame.f_code.co_filename)
        if lines is not None:
            site = lines.get(trace.tb_lineno)
            nested = frame.f_code.co_name.startswith("<") and trace.tb_lineno == previous
            if site is not None and nested:
                found[-1] = (site, frame)
            elif site is not None:
                found.append((site, frame))
            previous = trace.tb_lineno
        trace = trace.tb_next
    return found


def _apply(step: sites.Step, finding: Finding, frame: FrameType) -> None:
    error = finding.error
    match step:
        case sites.From(origin=origin):
            _origin(finding, origin)
        case sites.Operands(left=left, right=right):
            if isinstance(error, OperandMismatch):
                finding.text = error.text(left, right)
            else:
                _origin(finding, right)
        case sites.Condition(origin=origin, of_document=of_document):
            if isinstance(error, NotBoolean):
                kind = go_type(error.value, of_document=of_document)
                shown = go_text(error.value)
                finding.text = f"{origin} resolved to a non-boolean value {shown} ({kind})"
                finding.error = None
        case sites.Prefix(text=text):
            finding.text = text + finding.text
            finding.error = None
        case sites.PrefixElement():
            finding.text = step.text.format(_element(step, frame.f_locals)) + finding.text
            finding.error = None
        case sites.PrefixKey(text=text, variable=variable):
            finding.text = text.format(frame.f_locals.get(variable, "")) + finding.text
            finding.error = None
        case sites.Context(path=path):
            if isinstance(error, NoContext) and finding.context is not None:
                finding.context = (path, finding.context[1])
                if path:
                    finding.text += f", unable to reference `{path}`"
        case sites.Failed(line=line):
            if finding.failed is None:
                finding.text = finding.too_deep or finding.text
                finding.failed = f"failed assignment (line {line}): {finding.text}"
            finding.text = finding.failed
            finding.error = None


def _origin(finding: Finding, origin: str) -> None:
    error = finding.error
    if isinstance(error, TypeMismatch):
        error.origin = error.origin or origin
        finding.text = str(error)
    elif not finding.sealed and not isinstance(error, OperandMismatch | NoContext | ToldError):
        finding.text = f"{origin}: {finding.text}"
        finding.sealed = True
        finding.error = None


def _element(step: sites.PrefixElement, variables: Mapping[str, Any]) -> Any:
    """Return the index or key of the element that an iterator is at."""
    iterator = variables.get(step.iterator, variables.get(".0"))
    reduced: tuple[Any, ...] = iterator.__reduce__() if iterator is not None else ()
    place = reduced[2] - 1 if len(reduced) > 2 else 0
    keys = variables.get(step.keys)
    return keys[place] if keys else place


def assignment_error(error: BaseException, table: Table) -> str:
    """Return the text of a mapping's failure (`failed assignment (line 1): …`)."""
    finding = explain(error, table)
    text = finding.text
    if finding.context is not None:
        path, reason = finding.context
        reference = f"this.{path}" if path else "this"
        parse = reason if reason == "message is empty" else f"parse as json: {reason}"
        text = f"unable to reference message as structured (with '{reference}'): {parse}"
    return f"failed assignment (line {finding.line}): {text}"


def caret(error: BloblangError, text: str) -> str:
    """Show where a mapping could not be read: the line, and a mark under the place."""
    lines = text.split("\n")
    line = lines[error.line - 1] if error.line <= len(lines) else ""
    number = str(error.line)
    margin = " " * len(number)
    return f"{error}\n{margin} |\n{number} | {line}\n{margin} | {' ' * (error.column - 1)}^---"
