"""The lines of a report of costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.tools.cost.estimate import CostReport, LoadCost

MIN_MEASURED_MESSAGES: Final = 500
"""Messages of a sample from which on its CPU time is known."""


def format_report(report: CostReport) -> Iterator[str]:
    """Give the lines of a report."""
    cost, usual = report.sample, report.usual
    size = cost.size / max(cost.messages, 1)
    yield f"cost by a sample of {cost.messages:,} messages, {size:,.0f} bytes each"
    digits = 0 if report.rate >= 10 else 4
    rate = f"{report.rate:,.{digits}f} messages/s" if report.rate else "not known: give --rate"
    yield f"  rate        {rate}"
    is_measured = cost.messages >= MIN_MEASURED_MESSAGES
    if not is_measured:
        yield f"  CPU         not known: needs a sample of {MIN_MEASURED_MESSAGES} messages"
    elif report.cores:
        yield f"  cores       {report.cores:,.2f} at that rate"
    if report.live is not None:
        yield "at that rate"
        yield from _format_load(report.live, is_measured)
    yield f"with a backlog of {report.backlog_messages:,.0f} messages"
    yield from _format_load(report.backlog, is_measured)
    if cost.buffers:
        yield "state at that rate" if report.live is not None else "state"
        yield from _format_state(report, usual)
    for warning in report.warnings:
        yield f"  warning     {warning}"
    for advice in report.advice:
        yield f"  advice      {advice}"


def _format_load(load: LoadCost, is_measured: bool) -> Iterator[str]:
    yield f"  batches     {load.batch_messages:,.0f} messages in a micro-batch"
    if is_measured:
        yield f"  CPU         {load.cpu_seconds:,.1f} s for a million messages"
    yield f"  memory      {format_size(load.memory_bytes)}"
    yield f"  state       {format_size(load.state_bytes)}, {load.held:,.0f} messages held"
    yield f"  checkpoint  {format_size(load.checkpoint_bytes)}"


def _format_state(report: CostReport, load: LoadCost) -> Iterator[str]:
    for label, peak in load.by_buffer.items():
        name = f"{label}: " if label else ""
        each = peak.size / max(peak.held, 1)
        yield f"  a message   {name}{each:,.1f} bytes of state"
    keys = report.facts.keys
    if keys.seen:
        each = load.state_bytes / keys.seen
        total = f", {keys.total:,.0f} in all" if keys.total > keys.seen else ""
        yield f"  keys        {keys.seen:,} in the sample{total}, {format_size(each)} of state each"
    for one in report.sample.buffers:
        name = f"{one.label}: " if one.label else ""
        yield f"  shards      {name}{one.shards} of {one.plan.shards} get messages"
        if one.table_rows:
            yield f"  table       {name}{one.table_rows:,} rows in the sample"


def format_size(size: float) -> str:
    """Format a number of bytes.

    >>> format_size(1536)
    '1.5 KiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
