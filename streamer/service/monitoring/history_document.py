"""The history of a stream as the API answers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from streamer.core.durations import SECOND, parse_duration
from streamer.core.errors import StreamerError
from streamer.core.timestamps import format_unix_seconds, parse_rfc3339
from streamer.engine.report.figure_history import (
    FIGURES,
    NODE_PREFIXES,
    PARTITION_PREFIX,
)
from streamer.service.monitoring.stream_figures import StreamFigures

NODES: Final = "nodes"
PARTITIONS: Final = "partitions"
FIGURE_NAMES: Final = (*(one.name for one in FIGURES), NODES, PARTITIONS)

_DEFAULT_SPAN: Final = "15m"
_MAX_TEXT_CHARACTERS: Final = 1_000


class HistoryQueryError(StreamerError):
    """A query for the history is not right; the text says what it is, and what was expected."""


class HistoryQuery(NamedTuple):
    """A query for the history.

    Attributes:
        since: where to begin, Unix s.
        now: where to end, Unix s.
        names: the figures; those of nodes and partitions are one each.
    """

    since: float
    now: float
    names: frozenset[str]

    @classmethod
    def parse(cls, query: Mapping[str, str], now: float) -> HistoryQuery:
        """Parse the parameters `from` and `figures`.

        Args:
            query: the parameters.
            now: the time, Unix s.

        Raises:
            HistoryQueryError: one of them is something else.
        """
        since = _parse_since(query.get("from", _DEFAULT_SPAN), now)
        text = query.get("figures", "")[:_MAX_TEXT_CHARACTERS]
        names = [name.strip() for name in text.split(",") if name.strip()]
        unknown = next((name for name in names if name not in FIGURE_NAMES), None)
        if unknown is not None:
            expected = ", ".join(FIGURE_NAMES)
            raise HistoryQueryError(
                f"figures has {unknown[:40]!r}; expected some of {expected}, separated by commas"
            )
        return cls(since, now, frozenset(names or FIGURE_NAMES))

    def selects(self, name: str) -> bool:
        """Return whether a figure of the history is asked for."""
        if name.startswith(NODE_PREFIXES):
            return NODES in self.names
        if name.startswith(PARTITION_PREFIX):
            return PARTITIONS in self.names
        return name in self.names


def describe_history(figures: StreamFigures, query: HistoryQuery) -> dict[str, Any]:
    """Return the history of a stream, for JSON.

    Of each figure there is a number for each slot of `step` seconds, the first of which begins at
    `from`; null where nobody knows it. The last slot is not over yet.
    """
    document = describe_slots(figures, query)
    nodes: dict[str, dict[str, Any]] = {}
    partitions: dict[str, Any] = {}
    for name in [one for one in document["figures"] if ":" in one]:
        values = document["figures"].pop(name)
        kind, _, place = name.partition(":")
        if name.startswith(PARTITION_PREFIX):
            partitions[place] = values
        elif place in figures.node_order:
            nodes.setdefault(place, {})[kind] = values
    order = figures.node_order
    document["nodes"] = {path: nodes[path] for path in sorted(nodes, key=lambda one: order[one])}
    document["partitions"] = dict(sorted(partitions.items()))
    document["markers"] = [
        {
            "at": format_unix_seconds(one.at),
            "kind": str(one.kind),
            "text": one.text,
            "times": one.times,
        }
        for one in figures.markers()
        if one.at >= query.since
    ]
    return document


def describe_slots(figures: StreamFigures, query: HistoryQuery) -> dict[str, Any]:
    """Return the figures of a stream with their slots, for JSON."""
    reading = figures.history.read(query.since, query.now, query.selects)
    return {
        "now": format_unix_seconds(query.now),
        "from": format_unix_seconds(reading.start),
        "step": reading.step,
        "figures": reading.values,
    }


def _parse_since(text: str, now: float) -> float:
    """Return the time that is a duration ago, or that a text says, Unix s."""
    try:
        return now - max(parse_duration(text), 0) / SECOND
    except ValueError:
        pass
    try:
        return min(parse_rfc3339(text).ns / SECOND, now)
    except ValueError:
        raise HistoryQueryError(
            f"from is {text[:40]!r}; expected a duration such as 15m, or a time such as "
            "2026-01-02T15:04:05Z"
        ) from None
