"""Samples of the messages that pass a component, for those who watch: none unless they are asked.

A sample is what went into a component at once and what came out of it, as plain values. A few are
taken in each task, and a few more of what failed, which is looked for first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from streamer.message import Batch, Execution, Message

LONGEST: Final = 4_000
"""Letters of a payload that are shown; an ellipsis stands for the others."""

WANTED: Final[ContextVar[int]] = ContextVar("samples", default=0)
"""How many samples the task in hand takes of each component. It is set when each task begins."""

_LONGEST_VALUE: Final = 500
_MOST_ENTRIES: Final = 50
_MOST_OF_BATCH: Final = 5

Key = tuple[str, str, str]
"""Kind, label and path of a component, as of `Execution.tallies`."""


class Sampler:
    """Takes the samples of one task.

    Attributes:
        most: how many of a component, and how many more of what failed in it.
        found: the samples by component.
    """

    def __init__(self, most: int) -> None:
        """Begin with none."""
        self.most = most
        self.found: dict[Key, list[dict[str, Any]]] = {}
        self._taken: dict[tuple[Key, bool], int] = {}

    def around(
        self, process: Callable[[Batch, Execution], list[Batch]], key: Key
    ) -> Callable[[Batch, Execution], list[Batch]]:
        """Return what processes a batch, and takes a sample of it."""

        def sampled(batch: Batch, ex: Execution) -> list[Batch]:
            if not self._wants(key, True):
                return process(batch, ex)
            before = [message.copy() for message in batch]
            made = process(batch, ex)
            failed = _newly_failed(before, made)
            if failed or self._wants(key, False):
                count, total = len(before), sum(map(len, made))
                shown, came = _failed_first(before, made) if failed else (before, made)
                self._take(key, failed, shown, count, came, total)
            return made

        return sampled

    def around_each(
        self, process_each: Callable[[list[Message], Execution], list[Message]], key: Key
    ) -> Callable[[list[Message], Execution], list[Message]]:
        """Return the same for what takes many batches of one: samples are processed singly."""

        def sampled(messages: list[Message], ex: Execution) -> list[Message]:
            made: list[Message] = []
            done = 0
            while done < len(messages) and self._wants(key, False):
                made += self._single(process_each, messages[done], key, ex)
                done += 1
            rest = messages[done:]
            if not rest or not self._wants(key, True):
                return made + process_each(rest, ex) if rest else made
            before = [message.copy() for message in rest]
            came = process_each(rest, ex)
            if len(came) == len(before):
                for one, other in zip(before, came, strict=True):
                    if _newly_failed([one], [[other]]) and self._wants(key, True):
                        self._take(key, True, [one], 1, [[other]])
            return made + came

        return sampled

    def _single(self, process_each: Any, message: Message, key: Key, ex: Execution) -> Batch:
        before = [message.copy()]
        made: list[Message] = process_each([message], ex)
        batches = [[one] for one in made]
        self._take(key, _newly_failed(before, batches), before, 1, batches)
        return made

    def given(self, batches: Iterable[Batch], key: Key, side: str) -> Iterator[Batch]:
        """Return batches, and take samples of them: what goes into an end, or comes out of it.

        Args:
            batches: that pass.
            key: the component.
            side: `before` or `after` it.
        """
        for batch in batches:
            self.note(batch, key, side)
            yield batch

    def note(self, batch: Sequence[Message], key: Key, side: str) -> None:
        """Take a sample of one batch, if there is room; see `given`."""
        failed = any(message.error is not None for message in batch[:_MOST_OF_BATCH])
        if batch and (self._wants(key, False) or (failed and self._wants(key, True))):
            self._count(key, failed)
            shown = [_plain(message) for message in batch[:_MOST_OF_BATCH]]
            one = {side: [shown], f"{side}_messages": len(batch), "failed": failed}
            self.found.setdefault(key, []).append(one)

    def _wants(self, key: Key, failed: bool) -> bool:
        return self._taken.get((key, failed), 0) < self.most

    def _count(self, key: Key, failed: bool) -> None:
        self._taken[key, failed] = self._taken.get((key, failed), 0) + 1

    def _take(
        self,
        key: Key,
        failed: bool,
        before: Batch,
        count: int,
        made: Sequence[Batch],
        total: int | None = None,
    ) -> None:
        self._count(key, failed)
        after = [[_plain(one) for one in batch[:_MOST_OF_BATCH]] for batch in made[:_MOST_OF_BATCH]]
        self.found.setdefault(key, []).append(
            {
                "before": [[_plain(message) for message in before[:_MOST_OF_BATCH]]],
                "before_messages": count,
                "after": after,
                "after_messages": sum(map(len, made)) if total is None else total,
                "failed": failed,
            }
        )


def _newly_failed(before: Batch, made: Sequence[Batch]) -> bool:
    known = {message.error for message in before}
    found = {message.error for batch in made for message in batch}
    return bool(found - known - {None})


def _failed_first(before: Batch, made: Sequence[Batch]) -> tuple[Batch, Sequence[Batch]]:
    """Return what is shown of a large batch in which some have failed: those."""
    known = {message.error for message in before} | {None}
    failed = [[one for one in batch if one.error not in known] for batch in made]
    came = [batch for batch in failed if batch]
    if len(made) == 1 and len(made[0]) == len(before):
        pairs = zip(before, made[0], strict=True)
        return [one for one, other in pairs if other.error not in known], came
    return before, came


def _plain(message: Message) -> dict[str, Any]:
    try:
        text = message.raw.decode(errors="replace")
    except Exception as e:  # a document that no JSON can hold
        text = f"({type(e).__name__}: {e})"
    found: dict[str, Any] = {"content": _cut(text, LONGEST)}
    if message.meta:
        found["metadata"] = _entries(message.meta)
    if message.error is not None:
        found["error"] = _cut(str(message.error), LONGEST)
    return found


def _entries(meta: Mapping[str, Any]) -> dict[str, str]:
    named = list(meta.items())[:_MOST_ENTRIES]
    return {
        _cut(str(name)): _cut(value if isinstance(value, str) else _text(value))
        for name, value in named
    }


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _cut(text: str, longest: int = _LONGEST_VALUE) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
