"""Samples of the messages that pass a component, for those who watch: none unless they are asked.

A sample is what went into a component at once and what came out of it, as plain values. A few are
taken in each task, and a few more of what failed, which is looked for first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

from streamer.core.execution import Execution
from streamer.core.message import Batch, Message

MAX_PAYLOAD_CHARS: Final = 4_000
"""Letters of a payload that are shown; an ellipsis stands for the others."""

SAMPLES_PER_COMPONENT: Final[ContextVar[int]] = ContextVar("samples", default=0)
"""How many samples the task in hand takes of each component. It is set when each task begins."""

_MAX_VALUE_CHARS: Final = 500
_MAX_METADATA_ENTRIES: Final = 50
_MAX_BATCH_MESSAGES: Final = 5

SampleKey = tuple[str, str, str]
"""Kind, label and path of a component, as of `Execution.component_stats`."""


class Sampler:
    """Takes the samples of one task.

    Attributes:
        max_samples: how many of a component, and how many more of what failed in it.
        samples: the samples by component.
    """

    def __init__(self, max_samples: int) -> None:
        """Begin with none."""
        self.max_samples = max_samples
        self.samples: dict[SampleKey, list[dict[str, Any]]] = {}
        self._counts: dict[tuple[SampleKey, bool], int] = {}

    def wrap(
        self, process: Callable[[Batch, Execution], list[Batch]], key: SampleKey
    ) -> Callable[[Batch, Execution], list[Batch]]:
        """Wrap `process` so that some of the batches it handles are sampled."""

        def process_and_sample(batch: Batch, ex: Execution) -> list[Batch]:
            if not self._has_capacity(key, True):
                return process(batch, ex)
            before = [message.copy() for message in batch]
            made = process(batch, ex)
            failed = _has_new_failure(before, made)
            if failed or self._has_capacity(key, False):
                count, total = len(before), sum(map(len, made))
                shown, shown_results = _select_failed(before, made) if failed else (before, made)
                self._add_sample(key, failed, shown, count, shown_results, total)
            return made

        return process_and_sample

    def wrap_each(
        self, process_each: Callable[[list[Message], Execution], list[Message]], key: SampleKey
    ) -> Callable[[list[Message], Execution], list[Message]]:
        """Return the same for what takes many batches of one: samples are processed singly."""

        def process_each_and_sample(messages: list[Message], ex: Execution) -> list[Message]:
            made: list[Message] = []
            done = 0
            while done < len(messages) and self._has_capacity(key, False):
                made += self._process_single(process_each, messages[done], key, ex)
                done += 1
            rest = messages[done:]
            if not rest or not self._has_capacity(key, True):
                return made + process_each(rest, ex) if rest else made
            before = [message.copy() for message in rest]
            results = process_each(rest, ex)
            if len(results) == len(before):
                for one, other in zip(before, results, strict=True):
                    if _has_new_failure([one], [[other]]) and self._has_capacity(key, True):
                        self._add_sample(key, True, [one], 1, [[other]])
            return made + results

        return process_each_and_sample

    def _process_single(
        self, process_each: Any, message: Message, key: SampleKey, ex: Execution
    ) -> Batch:
        before = [message.copy()]
        made: list[Message] = process_each([message], ex)
        batches = [[one] for one in made]
        self._add_sample(key, _has_new_failure(before, batches), before, 1, batches)
        return made

    def tap(self, batches: Iterable[Batch], key: SampleKey, side: str) -> Iterator[Batch]:
        """Return batches, and take samples of them: what goes into an end, or comes out of it.

        Args:
            batches: that pass.
            key: the component.
            side: `before` or `after` it.
        """
        for batch in batches:
            self.sample(batch, key, side)
            yield batch

    def sample(self, batch: Sequence[Message], key: SampleKey, side: str) -> None:
        """Take a sample of one batch, if there is room."""
        failed = any(message.error is not None for message in batch[:_MAX_BATCH_MESSAGES])
        if batch and (self._has_capacity(key, False) or (failed and self._has_capacity(key, True))):
            self._count(key, failed)
            shown = [sample_message(message) for message in batch[:_MAX_BATCH_MESSAGES]]
            one = {side: [shown], f"{side}_messages": len(batch), "failed": failed}
            self.samples.setdefault(key, []).append(one)

    def _has_capacity(self, key: SampleKey, failed: bool) -> bool:
        return self._counts.get((key, failed), 0) < self.max_samples

    def _count(self, key: SampleKey, failed: bool) -> None:
        self._counts[key, failed] = self._counts.get((key, failed), 0) + 1

    def _add_sample(
        self,
        key: SampleKey,
        failed: bool,
        before: Batch,
        count: int,
        results: Sequence[Batch],
        total: int | None = None,
    ) -> None:
        self._count(key, failed)
        after = [
            [sample_message(one) for one in batch[:_MAX_BATCH_MESSAGES]]
            for batch in results[:_MAX_BATCH_MESSAGES]
        ]
        self.samples.setdefault(key, []).append(
            {
                "before": [[sample_message(message) for message in before[:_MAX_BATCH_MESSAGES]]],
                "before_messages": count,
                "after": after,
                "after_messages": sum(map(len, results)) if total is None else total,
                "failed": failed,
            }
        )


def _has_new_failure(before: Batch, results: Sequence[Batch]) -> bool:
    known = {message.error for message in before}
    errors = {message.error for batch in results for message in batch}
    return bool(errors - known - {None})


def _select_failed(before: Batch, results: Sequence[Batch]) -> tuple[Batch, Sequence[Batch]]:
    """Return what is shown of a large batch in which some have failed: those."""
    known = {message.error for message in before} | {None}
    failed = [[one for one in batch if one.error not in known] for batch in results]
    shown = [batch for batch in failed if batch]
    if len(results) == 1 and len(results[0]) == len(before):
        pairs = zip(before, results[0], strict=True)
        return [one for one, other in pairs if other.error not in known], shown
    return before, shown


def sample_message(message: Message) -> dict[str, Any]:
    """Return a message as plain values, each of them shortened."""
    try:
        text = message.raw.decode(errors="replace")
    except Exception as e:  # a document that no JSON can hold
        text = f"({type(e).__name__}: {e})"
    sample: dict[str, Any] = {"content": _truncate(text, MAX_PAYLOAD_CHARS)}
    if message.meta:
        sample["metadata"] = _metadata_sample(message.meta)
    if message.error is not None:
        sample["error"] = _truncate(str(message.error), MAX_PAYLOAD_CHARS)
    return sample


def _metadata_sample(meta: Mapping[str, Any]) -> dict[str, str]:
    named = list(meta.items())[:_MAX_METADATA_ENTRIES]
    return {
        _truncate(str(name)): _truncate(value if isinstance(value, str) else _as_text(value))
        for name, value in named
    }


def _as_text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _truncate(text: str, max_chars: int = _MAX_VALUE_CHARS) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"
