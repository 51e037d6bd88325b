"""The table of all components: where each runs, what it promises about delivery, and its limits.

A spec says so where what holds for its kind does not hold for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from streamer.components import catalog
from streamer.config.known_names import REFUSED_COMPONENTS
from streamer.sdk.spec import Kind, Runs, Spec

PAGE_NAME: Final = "at-a-glance.md"


class Guarantees(NamedTuple):
    """The properties of a component that the table shows.

    Attributes:
        runs: where.
        delivery: what becomes of a message when something fails.
    """

    runs: Runs
    delivery: str


# What holds for the components of a kind that say nothing else.
_KIND_GUARANTEES: Final[Mapping[Kind, Guarantees]] = {
    Kind.INPUT: Guarantees(
        "driver", "at least once from the driver's disk on, where messages are kept"
    ),
    Kind.BUFFER: Guarantees("Spark", "exactly once into Spark's state"),
    Kind.PROCESSOR: Guarantees("worker", "runs again when its micro-batch is replayed"),
    Kind.OUTPUT: Guarantees("worker", "at least once: sent again until it is taken"),
    Kind.CACHE: Guarantees("worker", "a replayed micro-batch finds what it has stored before"),
    Kind.RATE_LIMIT: Guarantees("worker", ""),
    Kind.TABLE: Guarantees("driver", "a replayed micro-batch looks up the version that it had"),
    Kind.SCANNER: Guarantees("worker", ""),
    Kind.METRICS: Guarantees("driver", "counts are exact, also after retries"),
    Kind.TRACER: Guarantees("driver", ""),
}

_INTRODUCTION: Final = """\
# Components at a glance

Made from the program itself by `streamer docs --write`, like the pages of the components.

Where a component **runs**:

- *Spark*: as an operator of Spark, with Spark's state and checkpoint.
- *worker*: in the Python processes of Spark's executors, several at once. What it talks to must be
  within reach of every executor; connections last as long as the process.
- *driver*: in the program that was started. What it reads is on the driver's disk before anybody
  is told that it was taken, and goes on to the workers from there.
- *children*: wherever the components within it run.

**Delivery** says what becomes of messages when something fails. Nothing is skipped: a micro-batch
that has failed is replayed from the same offsets."""

_REFUSALS: Final = """\
## Refused

What makes no sense on Spark, `streamer lint` refuses, in these words:"""


def get_guarantees(spec: Spec) -> Guarantees:
    """Return what holds for a component."""
    usual = _KIND_GUARANTEES[spec.kind]
    # What is promised of a kind holds where that kind usually runs.
    delivery = spec.delivery or (usual.delivery if spec.runs in ("", usual.runs) else "")
    return Guarantees(spec.runs or usual.runs, delivery)


def format_component_table(plurals: Mapping[str, Kind]) -> str:
    """Return the page.

    Args:
        plurals: the kinds, by the names of the folders that the components' pages are in.
    """
    parts = [_INTRODUCTION]
    for plural, kind in plurals.items():
        rows = [
            (f"[{spec.name}]({plural}/{spec.name}.md)", *get_guarantees(spec), spec.limits)
            for spec in catalog.kind_specs(kind)
            if not spec.distribution
        ]
        title = plural.replace("-", " ").capitalize()
        parts.append(f"## {title}\n\n{_format_table(('', 'runs', 'delivery', 'limits'), rows)}")
    refused = [
        (f"`{name}` ({kind})", reason)
        for (kind, name), reason in sorted(REFUSED_COMPONENTS.items())
    ]
    parts += [_REFUSALS, _format_table(("", "why, and what to use instead"), refused)]
    return "\n\n".join(parts) + "\n"


def _format_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)
