"""Metrics renamed, labelled and dropped by mappings, as Benthos does it.

In such a mapping `this` is the name, metadata are the labels, and the new name is `root`. Those of
the templates that have made a component run first, from the innermost to the outermost; then that
of the `metrics` section runs, which knows the name as `$path` too: in Benthos such a mapping fails.
A metric on which one fails keeps its name and loses its labels. A metric is mapped when it is seen
first, and keeps what that makes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from streamer.bloblang import BloblangError, compile_mapping
from streamer.bloblang import Mapping as Bloblang
from streamer.core.durations import MILLISECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.json.dump import dump_json
from streamer.core.limits import DEFAULT_LIMITS, stream_limits
from streamer.core.message import Message
from streamer.sdk.spec import MetricsMapping
from streamer.service.monitoring.metric_samples import Sample, collect_samples
from streamer.service.monitoring.stream_view import MetricName, StreamView

_TIME_LIMIT: Final = 100 * MILLISECOND
"""How long a mapping may work on one metric, which it sees once."""


def map_samples(view: StreamView) -> Iterator[Sample]:
    """Return the metrics of a stream as its mappings make them, each of which they see once."""
    text = view.config.metrics.mapping
    last = (_compile_mapping("let path = this", text),) if text.strip() else ()
    # Taken once: another config gets another one, which this must not fill.
    mapped_names, ex = view.mapped_names, view.mapping_run
    for component, sample in collect_samples(view):
        inner = component.mappings if component is not None else ()
        if not inner and not last:
            yield sample
            continue
        key = inner, sample.name, tuple(sample.labels.items())
        if key in mapped_names:
            metric_name = mapped_names[key]
        else:
            metric_name = mapped_names.setdefault(key, _map_name(inner, last, sample, ex))
        if metric_name is not None:
            yield sample._replace(name=metric_name.name, labels=metric_name.labels)


def _map_name(
    inner: Sequence[MetricsMapping], last: Sequence[Bloblang], sample: Sample, ex: Execution
) -> MetricName | None:
    metric_name: MetricName | None = MetricName(sample.name, sample.labels)
    for mapping in (*map(_compile_template_mapping, inner), *last):
        metric_name = _apply_mapping(mapping, metric_name, ex) if metric_name is not None else None
    return metric_name


def label_samples(views: Mapping[str, StreamView]) -> Iterator[Sample]:
    """Return the metrics of streams by id, each with the label `stream` unless that is empty."""
    for stream_id, view in views.items():
        more = {"stream": stream_id} if stream_id else {}
        for sample in map_samples(view):
            yield sample._replace(labels={**sample.labels, **more})


@lru_cache(maxsize=256)
def _compile_template_mapping(mapping: MetricsMapping) -> Bloblang:
    return _compile_mapping(f"let label = {dump_json(mapping.label).decode()}", mapping.text)


@lru_cache(maxsize=64)
def _compile_mapping(before: str, text: str) -> Bloblang:
    """Return a mapping of metrics, with a statement before it."""
    try:
        return compile_mapping(f"{before}\n{text}")
    except BloblangError:
        # A mapping may be one expression, when it stands alone.
        return compile_mapping(f"{before}\nroot = {text}")


def _apply_mapping(mapping: Bloblang, metric: MetricName, ex: Execution) -> MetricName | None:
    try:
        # Who asks for metrics waits meanwhile, and asks for those of other streams too.
        with stream_limits(DEFAULT_LIMITS._replace(time=_TIME_LIMIT)):
            result = mapping.apply([Message.from_value(metric.name, metric.labels)], 0, ex)
    except MessageError:
        return metric._replace(labels={})
    if result is None:
        return None
    # A mapping's text is a message's bytes.
    name: Any = result.doc if result.has_doc() else result.raw.decode()
    labels = {key: str(value) for key, value in sorted(result.meta.items())}
    return MetricName(name, labels) if isinstance(name, str) else metric
