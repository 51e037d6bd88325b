"""One thing that a stream needs of its machine: its state, and the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from streamer.core.errors import StreamerError


class Severity(StrEnum):
    """Severity of a diagnosis; `none` is for a part that is missing, and that few need."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of one check.

    Attributes:
        name: what was checked: `java`, `checkpoint`, `port`, ….
        severity: how bad it is.
        detail: what was found.
        remedy: what to do; empty where nothing is to be done.
    """

    name: str
    severity: Severity
    detail: str
    remedy: str = ""


def diagnose(name: str, check: Callable[[], Iterable[Diagnosis]]) -> Iterator[Diagnosis]:
    """Run a check; an error of it is a diagnosis too."""
    try:
        yield from check()
    except StreamerError as e:
        yield Diagnosis(name, Severity.ERROR, str(e))
    except MemoryError:
        raise
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        yield Diagnosis(name, Severity.ERROR, f"{where}{(e.strerror or str(e)).lower()}")
