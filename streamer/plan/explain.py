"""Say in words what a plan will do: stages, shards, windows, and where each processor runs."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.durations import format_duration
from streamer.plan.origins import origins
from streamer.plan.plan import Plan, cores
from streamer.spec import ParsedComponent
from streamer.window.words import rules


def explain(plan: Plan, checkpoint: str) -> str:
    """Return the plan as lines of text.

    Args:
        plan: what would run.
        checkpoint: the checkpoint directory.
    """
    return "\n".join(_lines(plan, checkpoint))


def _lines(plan: Plan, checkpoint: str) -> Iterator[str]:
    yield f"stream {plan.name}"
    yield f"  master      {plan.master} ({_number(cores(plan.master), 'core')})"
    yield f"  checkpoint  {checkpoint}"
    yield from _window(plan)
    yield ""
    if plan.window is None:
        yield "stage 1 (workers): read, process, encode"
        yield from _read(plan)
        yield from _steps(None, plan.processors)
        yield from _output(plan)
    else:
        yield f"stage 1 (workers): read {plan.input.name}, pack by shard and pane"
        yield from _read(plan)
        yield f"    {_at(plan.buffer)} timestamp_mapping, once per message"
        if plan.key is not None:
            yield f"    {plan.key.source} its expression, once per message, for the shard"
        yield "shuffle: a few rows of packed messages per micro-batch"
        yield f"stage 2 (workers, {_number(plan.shards, 'shard')}): keep packs, release windows"
        yield from _steps(None, plan.processors)
        yield from _output(plan)
    yield "driver"
    for number, output in enumerate(plan.outputs):
        what = "late_output" if number else "output"
        yield f"    {_writes(output, what)}"


def _window(plan: Plan) -> Iterator[str]:
    window = plan.window
    wait = format_duration(plan.interval)
    if window is None:
        yield f"  buffer      {plan.buffer.name}; data waits {wait} at most for a micro-batch"
        return
    first, *others = rules(window)
    yield f"  window      {plan.buffer.name}: {first}"
    for rule in others:
        yield f"              {rule}"
    for name, text in (("filter", plan.filter), ("having", plan.having)):
        if text:
            yield f"  {name:<12}{' '.join(text.split())}"
    if plan.key is not None:
        by = f"{_number(plan.shards, 'shard')}, by {plan.key.text!r} of {plan.key.source}"
    else:
        by = (
            f"{_number(plan.shards, 'shard')}, of which one is used: a window is one batch, "
            "unless the first processor is a group_by_value or group_by that looks at one message"
        )
    yield f"  shards      {by}"
    folding = plan.folding
    if folding.text is None:
        yield f"  keeps       messages whole; {folding.obstacle}"
    else:
        kept = ", ".join(("the first message", *folding.parts))
        yield f"  keeps       of each group: {kept} (folded for {folding.source})"
    yield f"  data        waits {wait} at most for a micro-batch; windows close on time anyway"


def _read(plan: Plan) -> Iterator[str]:
    """Say what is read: an input with its processors; of a broker each one, with all of its own."""
    if plan.input.name == "broker":
        yield from _steps(plan.input)
    for origin in origins(plan.input, plan.resources):
        yield from _steps(origin, origin.processors)


def _steps(source: ParsedComponent | None, *groups: tuple[ParsedComponent, ...]) -> Iterator[str]:
    if source is not None:
        yield f"    {_at(source)} {source.name}"
    for group in groups:
        for component in group:
            yield f"    {_at(component)} {component.name}"


def _output(plan: Plan) -> Iterator[str]:
    for output in plan.outputs:
        yield from _steps(None, output.processors)
        yield f"    {_at(output)} {output.name}: encode"


def _writes(output: ParsedComponent, what: str) -> str:
    match output.name:
        case "stdout":
            return f"{what} stdout: prints; a micro-batch may repeat after a crash"
        case "file":
            return f"{what} file: appends, exactly once"
        case "drop":
            return f"{what} drop: nothing comes back"
        case name:
            return f"{what} {name}"


def _at(component: ParsedComponent) -> str:
    name = component.path or component.kind
    return f"{name} [{component.label}]" if component.label else name


def _number(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
