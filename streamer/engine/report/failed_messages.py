"""Samples of failed messages: taken in tasks, and the newest kept on the driver.

Each task takes a few of each component, whether anybody watches or not: a failure is seen after it
has happened. What is counted is in the metrics; this only shows what such messages look like.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from streamer.core.json.dump import dump_json
from streamer.core.message import Message
from streamer.engine.report.message_sampler import sample_message
from streamer.engine.report.rejected_messages import RejectedMessages
from streamer.engine.report.repeated_lines import RepeatCounter

MAX_PER_TASK: Final = 3
"""Failed messages of a component, or of one of its expectations, that a task takes."""

MAX_KEPT_PER_COMPONENT: Final = 50
"""Failed messages of a component, or of one of its expectations, that are kept."""

MAX_COMPONENTS: Final = 40
"""Components, or expectations, of which some are kept; of further ones, none are."""

_SampleOwner = tuple[str, str]
"""The path of a component, and the name of an expectation; empty for the component itself."""

_MAX_COMPONENTS_PER_TASK: Final = 20
_KAFKA_PLACE: Final = {
    "topic": "kafka_topic",
    "partition": "kafka_partition",
    "offset": "kafka_offset",
}


class FailureSampler:
    """Takes samples of the messages that fail in one task; see `Execution.failures`."""

    def __init__(self) -> None:
        """Begin with none."""
        self._counts: dict[_SampleOwner, int] = {}
        self._samples: list[dict[str, Any]] = []
        self._lines = RepeatCounter()

    def add(
        self, fate: str, fields: Mapping[str, str], error: str, messages: Sequence[Message]
    ) -> None:
        """Take the first of some messages, if there is room.

        Args:
            fate: what becomes of them: `marked` where they go on with the error, `fallback`
                where another output takes them, or `expectation_dropped`, `expectation_warned`.
            fields: label and path of the component that they have failed in, and the name of the
                `expectation` where it was one.
            error: the text of the failure.
            messages: as the component got them.
        """
        owner = _owner_of(fields)
        count = self._counts.get(owner, 0)
        if count >= MAX_PER_TASK or not messages:
            return
        if not count and len(self._counts) >= _MAX_COMPONENTS_PER_TASK:
            return
        self._counts[owner] = count + 1
        self._samples.append(
            {
                **fields,
                "fate": fate,
                **sample_message(messages[0].with_error(error)),
                "messages": len(messages),
            }
        )

    def is_new_line(self, text: str, fields: Mapping[str, str]) -> bool:
        """Return whether a line is the first of its kind, which shows the message; count it."""
        return self._lines.count("ERROR", text, fields)

    def encode_samples(self) -> bytes | None:
        """Return the samples as JSON, or None when there are none."""
        return dump_json(self._samples) if self._samples else None


class FailedMessages:
    """The newest samples of one stream's failed messages. Threads may share it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._number = 0
        self._kept: dict[_SampleOwner, deque[dict[str, Any]]] = {}

    def record(
        self,
        batch: int,
        at: int,
        bodies: Iterable[bytes] = (),
        rejected: Iterable[RejectedMessages] = (),
    ) -> None:
        """Take the failed messages of a micro-batch; when it comes again, in place of the earlier.

        Args:
            batch: its number.
            at: the time, Unix ns.
            bodies: what its tasks have taken, see `FailureSampler.encode_samples`.
            rejected: what outputs have rejected.
        """
        samples = [sample for body in bodies for sample in orjson.loads(body)]
        samples += [_describe_rejected(one) for one in rejected if one.batch]
        with self._lock:
            for kept in self._kept.values():
                left = [one for one in kept if one["micro_batch"] != batch]
                if len(left) < len(kept):
                    kept.clear()
                    kept.extend(left)
            for sample in samples:
                self._add(_owner_of(sample), {**sample, "micro_batch": batch, "time": at})

    def _add(self, owner: _SampleOwner, sample: dict[str, Any]) -> None:
        if owner not in self._kept and len(self._kept) >= MAX_COMPONENTS:
            return
        self._number += 1
        kept = self._kept.setdefault(owner, deque(maxlen=MAX_KEPT_PER_COMPONENT))
        kept.append({"number": self._number, **sample, "source": find_kafka_place(sample)})

    def newest_samples(
        self, path: str | None = None, limit: int = 200, expectation: str | None = None
    ) -> list[dict[str, Any]]:
        """Return samples, newest first.

        Args:
            path: of the component; None for all.
            limit: how many at most.
            expectation: the name of an expectation; None for all samples.
        """
        with self._lock:
            samples = [
                one
                for (of, name), kept in self._kept.items()
                if path in (None, of) and expectation in (None, name)
                for one in kept
            ]
        return sorted(samples, key=lambda one: -one["number"])[:limit]


def _owner_of(fields: Mapping[str, Any]) -> _SampleOwner:
    return fields["path"], fields.get("expectation", "")


def find_kafka_place(sample: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return topic, partition and offset of a message, if its metadata has them."""
    metadata = sample.get("metadata", {})
    if not all(name in metadata for name in _KAFKA_PLACE.values()):
        return None
    return {name: metadata[of] for name, of in _KAFKA_PLACE.items()}


def _describe_rejected(one: RejectedMessages) -> dict[str, Any]:
    component = {}
    if one.source:
        name, label, path = one.source
        component = {"cause": {"name": name, "label": label, "path": f"root.{path}"}}
    return {
        **one.labels,
        "fate": str(one.fate),
        "reason": one.reason,
        **component,
        **sample_message(one.batch[0].with_error(one.text)),
        "messages": max(one.messages, 1),
    }
