"""Stand-ins for compiled mappings: plain functions of the message, with their text beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.core.timestamps import Timestamp


@dataclass(frozen=True)
class Uses:
    now: bool = False


@dataclass(frozen=True)
class FakeMapping:
    """A mapping `text`, which `of` computes from the document and the clock."""

    text: str
    of: Callable[[Any, int], Any]
    uses: Uses = Uses()
    doc_fn: Callable[[Any], Any] | None = None
    gives_text: bool = False

    def query(self, batch: Batch, index: int, ex: Execution) -> Any:
        try:
            return self.of(batch[index].doc, ex.now())
        except (KeyError, TypeError) as e:
            raise MessageError(f"failed assignment (line 1): {e!r}") from None


@dataclass(frozen=True)
class FakeInterpolation:
    """An interpolation of one function of the document."""

    text: str
    of: Callable[[Any], str]
    fast: bool = True
    gives_text: bool = True

    @property
    def doc_fn(self) -> Callable[[Any], str] | None:
        return self.of if self.fast else None

    def query(self, batch: Batch, index: int, ex: Execution) -> str:
        try:
            return self.of(batch[index].doc)
        except (KeyError, TypeError) as e:
            raise MessageError(f"failed: {e!r}") from None


def field_mapping(name: str) -> FakeMapping:
    """`root = this.name`, as the compiler makes it."""
    return FakeMapping(
        f"root = this.{name}", lambda doc, now: doc.get(name), doc_fn=lambda doc: doc.get(name)
    )


def now_or(name: str) -> FakeMapping:
    """A field, or the time where it says "now"."""

    def of(doc: Any, now: int) -> Any:
        return Timestamp(now) if doc[name] == "now" else doc[name]

    return FakeMapping(f'root = if this.{name} == "now" {{ now() }} else {{ … }}', of, Uses(True))


NOW = FakeMapping("root = now()", lambda doc, now: Timestamp(now), Uses(now=True))


def field_text(name: str, fast: bool = True) -> FakeInterpolation:
    """`${! json("name") }`."""
    return FakeInterpolation(f'${{! json("{name}") }}', lambda doc: str(doc[name]), fast)


def execution(t: int, log: list[tuple[str, str]] | None = None) -> Execution:
    """A run whose clock stands still, and whose log is a list."""
    lines = [] if log is None else log
    return Execution(lambda: t, lambda level, text, fields: lines.append((level, text)))
