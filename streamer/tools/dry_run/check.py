"""One thing that a stream needs, and whether it is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamer.core.errors import StreamerError


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of one check.

    Attributes:
        name: what it is: `java`, `checkpoint`, `input: file`, ….
        ok: whether it is as it should be; None when it was not looked at.
        detail: what was found, or what is wrong.
    """

    name: str
    ok: bool | None
    detail: str


def run_check(name: str, check: Callable[[], str]) -> CheckResult:
    """Run a check; its error is the result's text."""
    try:
        return CheckResult(name, True, check())
    except StreamerError as e:
        return CheckResult(name, False, str(e))
    except MemoryError:
        raise
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        return CheckResult(name, False, f"{where}{(e.strerror or str(e)).lower()}")
    except Exception as e:  # one check that breaks down must not keep the others from being made
        text = " ".join(f"{type(e).__name__}: {e}".split())
        return CheckResult(
            name, False, f"the check broke down, which is a bug in the program: {text}"
        )
