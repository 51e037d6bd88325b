"""Takes secrets out of the traceback that an exception leaves which nobody has caught."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from streamer.core.redaction import Redaction

_secrets: Final[dict[str, str]] = {}
_lock: Final = threading.Lock()


def hide_in_crash_output(secrets: Mapping[str, str]) -> None:
    """Let no traceback of this process show secrets, from now on to its end.

    Args:
        secrets: texts that must not be seen, by what is shown instead.
    """
    with _lock:
        _secrets.update(secrets)
        sys.excepthook = _print_exception
        sys.unraisablehook = _print_unraisable
        threading.excepthook = _print_thread_exception


def format_crash(error: BaseException) -> str:
    """Return the traceback of an exception, without the secrets that are known."""
    with _lock:
        redaction = Redaction(dict(_secrets))
    return redaction.redact_text("".join(traceback.format_exception(error)))


def _print_exception(
    kind: type[BaseException], error: BaseException, place: TracebackType | None
) -> None:
    if error.__traceback__ is None:
        error = error.with_traceback(place)
    _write(format_crash(error))


def _print_thread_exception(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_value is None or crash.exc_type is SystemExit:
        return
    name = crash.thread.name if crash.thread is not None else "unknown"
    _write(f"Exception in thread {name}:\n{format_crash(crash.exc_value)}")


def _print_unraisable(crash: Any) -> None:
    if crash.exc_value is not None:
        _write(f"{crash.err_msg or 'Exception ignored'}:\n{format_crash(crash.exc_value)}")


def _write(text: str) -> None:
    # At the end of the interpreter, and in a program without a terminal, there is none.
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
