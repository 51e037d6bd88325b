"""Metrics renamed, labelled and dropped by mappings, as Benthos does it.

In such a mapping `this` is the name, metadata are the labels, and the new name is `root`. Those of
the templates that have made a component run first, from the innermost to the outermost; then that
of the `metrics` section runs. A metric on which one fails keeps its name and loses its labels.
A metric is mapped when it is seen first, and keeps what that makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang import Mapping as Bloblang
from streamer.durations import MILLISECOND
from streamer.errors import MessageError
from streamer.limits import DEFAULT_LIMITS, stream_limits
from streamer.message import Execution, Message
from streamer.service.samples import Sample, samples
from streamer.service.view import MetricName, StreamView
from streamer.spec import MetricsMapping
from streamer.value import dump_json

_TIME_LIMIT: Final = 100 * MILLISECOND
"""How long a mapping may work on one metric, which it sees once."""


def mapped(view: StreamView) -> Iterator[Sample]:
    """Return the metrics of a stream as its mappings make them, each of which they see once."""
    text = view.config.metrics.mapping
    last = (compile_mapping(text),) if text.strip() else ()
    # Taken once: another config gets another one, which this must not fill.
    known, ex = view.mapped_names, view.mapping_run
    for component, sample in samples(view):
        inner = component.mappings if component is not None else ()
        if not inner and not last:
            yield sample
            continue
        key = inner, sample.name, tuple(sample.labels.items())
        if key in known:
            found = known[key]
        else:
            found = known.setdefault(key, _mapped(inner, last, sample, ex))
        if found is not None:
            yield sample._replace(name=found.name, labels=found.labels)


def _mapped(
    inner: Sequence[MetricsMapping], last: Sequence[Bloblang], sample: Sample, ex: Execution
) -> MetricName | None:
    found: MetricName | None = MetricName(sample.name, sample.labels)
    for mapping in (*map(_of_template, inner), *last):
        found = _apply(mapping, found, ex) if found is not None else None
    return found


def labelled(views: Mapping[str, StreamView]) -> Iterator[Sample]:
    """Return the metrics of streams by id, each with the label `stream` unless that is empty."""
    for stream_id, view in views.items():
        more = {"stream": stream_id} if stream_id else {}
        for sample in mapped(view):
            yield sample._replace(labels={**sample.labels, **more})


@lru_cache(maxsize=256)
def _of_template(mapping: MetricsMapping) -> Bloblang:
    given = f"let label = {dump_json(mapping.label).decode()}\n"
    try:
        return compile_mapping(given + mapping.text)
    except BloblangError:
        # A mapping may be one expression, when it stands alone.
        return compile_mapping(f"{given}root = {mapping.text}")


def _apply(mapping: Bloblang, metric: MetricName, ex: Execution) -> MetricName | None:
    try:
        # Who asks for metrics waits meanwhile, and asks for those of other streams too.
        with stream_limits(DEFAULT_LIMITS._replace(time=_TIME_LIMIT)):
            made = mapping.apply([Message.of(metric.name, metric.labels)], 0, ex)
    except MessageError:
        return metric._replace(labels={})
    if made is None:
        return None
    # A mapping's text is a message's bytes.
    name: Any = made.doc if made.has_doc() else made.raw.decode()
    labels = {key: str(value) for key, value in sorted(made.meta.items())}
    return MetricName(name, labels) if isinstance(name, str) else metric
