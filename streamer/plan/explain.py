"""Explains a plan in words: stages, shards, windows, and where each processor runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streamer.components import catalog
from streamer.core.durations import format_duration
from streamer.plan.buffer_chain import (
    find_readers,
    level_count,
    plan_of_buffer,
    times_of_results,
)
from streamer.plan.component_lookup import DRIVER_WRITTEN, leaf_inputs, resolve_resource
from streamer.plan.plan import Plan, count_cores
from streamer.sdk.processing.batching import BYTE_SIZE, CHECK, COUNT, PERIOD
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components

_MAPPING_CALL: Final = "bloblang "
_EVENT_CLOCK: Final = "largest event time"

DRIVER_OUTPUTS: Final = DRIVER_WRITTEN | {"drop"}
"""Outputs that give bytes, or nothing, to the driver."""
_SENT_TOGETHER: Final = frozenset({"sql_insert"})


def explain(plan: Plan, checkpoint: str) -> str:
    """Return the plan as lines of text.

    Args:
        plan: what would run.
        checkpoint: the checkpoint directory.
    """
    return "\n".join(_plan_lines(plan, checkpoint))


def _plan_lines(plan: Plan, checkpoint: str) -> Iterator[str]:
    yield f"stream {plan.name}"
    given = "a cluster, with the cores it gives"
    if plan.master.startswith("local"):
        given = _format_count(count_cores(plan.master), "core")
    yield f"  master      {plan.master} ({given})"
    yield f"  checkpoint  {checkpoint}"
    yield from _code_lines(plan)
    if plan.buffers:
        yield from _buffers_lines(plan)
    else:
        yield from _window_lines(plan)
        # Imported here: no other command needs it.
        from streamer.plan.buffer_mappings import describe_reading

        if reading := describe_reading(plan):
            yield f"  reads       {reading}"
    yield ""
    if plan.buffers:
        yield from _level_lines(plan)
    elif plan.window is None:
        yield "stage 1 (workers): read, process, encode"
        yield from _input_lines(plan)
        yield from _step_lines(None, plan.processors)
        yield from _output_lines(plan)
    else:
        yield f"stage 1 (workers): read {plan.input.name}, pack by shard and pane"
        yield from _input_lines(plan)
        if plan.timestamp:
            yield f"    {_format_place(plan.buffer)} timestamp_mapping, once per message"
        if plan.key is not None:
            yield f"    {plan.key.source} its expression, once per message, for the shard"
        yield "shuffle: a few rows of packed messages per micro-batch"
        shards = _format_count(plan.shards, "shard")
        yield f"stage 2 (workers, {shards}): keep packs, release windows"
        yield from _step_lines(None, plan.processors)
        yield from _output_lines(plan)
    yield "driver"
    number = len(plan.outputs)
    named = [*zip(("output", "late_output"), plan.outputs, strict=False)]
    if plan.buffers:
        named = [(output.path, output) for output in plan.outputs]
    named += [(output.path, output) for output in plan.driver_outputs[number:]]
    # An output that sends everything from the workers leaves nothing to be written.
    lines = [
        _describe_writer(output, what) for what, output in named if output.name in DRIVER_OUTPUTS
    ]
    if plan.retention is not None:
        lines.append(
            f"results for queries, for {format_duration(plan.retention)} after the end of their "
            "window, exactly once, beside the checkpoint"
        )
    for line in (*(lines or ["nothing to write"]), *plan.event_topics):
        yield f"    {line}"
    for _, output in named:
        yield from _own_lines(output)
    for (kind, label), component in plan.resources.items():
        if kind == Kind.TABLE:
            yield f"    {_describe_table(label, component)}"


def _code_lines(plan: Plan) -> Iterator[str]:
    """Describe functions of mappings in Python: packages with versions, and a digest of code.

    Components of other packages have theirs beside them.
    """
    for plugin, package in plan.plugins:
        if plugin.startswith(_MAPPING_CALL):
            yield f"  plugin      {plugin}: {package}"
    extension = plan.captured_inputs.extension
    if extension.source:
        names = [*sorted(extension.functions), *(f".{name}" for name in sorted(extension.methods))]
        modules = ", ".join(text.strip() for text in extension.source[0])
        yield f"  functions   {', '.join(names)} of {modules}, code {extension.digest}"


def _buffers_lines(plan: Plan) -> Iterator[str]:
    """Describe several buffers: of each, what it takes and gives, and its windows."""
    for number, one in enumerate(plan.buffers):
        source = describe_sources(plan, number)
        readers = [plan.buffers[reader].label for reader in find_readers(plan, number)]
        to = [_format_place(one.output)] if one.output is not None else []
        before = " or ".join(plan.buffers[at].label for at in one.sources)
        yield f"  buffer      {one.label}: from {source} to {', '.join([*readers, *to])}"
        mine = [*_window_lines(plan_of_buffer(plan, number))]
        for line in mine[:-1]:
            yield (
                line.replace(_EVENT_CLOCK, f"earliest result that {before} may yet give")
                if one.sources
                else line
            )
        window = one.windows.window
        if one.sources and not one.has_own_times and window is not None and not window.count_based:
            for at in one.sources:
                yield f"  times       of results: {_result_time_text(plan, number, at)}"
    wait = format_duration(plan.interval)
    yield f"  data        waits {wait} at most for a micro-batch; windows close on time anyway"


def describe_sources(plan: Plan, number: int) -> str:
    """Return what a buffer takes, in words: the input, an input of it, or buffers.

    Args:
        plan: the stream's.
        number: the buffer's.
    """
    one = plan.buffers[number]
    window = one.windows.window
    if window is not None and window.join is not None:
        return f"{window.join.left} and {window.join.right}"
    return plan.buffers[one.sources[0]].label if one.sources else "the input"


def _result_time_text(plan: Plan, number: int, source: int) -> str:
    label = plan.buffers[source].label
    if times_of_results(plan, number, source) == "event":
        return f"the event time of those of {label}, of pairs the later one"
    return f"the last instant of the window of {label}"


def _level_lines(plan: Plan) -> Iterator[str]:
    """Describe the stages of several buffers."""
    yield f"stage 1 (workers): read {plan.input.name}, pack by buffer, shard and pane"
    yield from _input_lines(plan)
    for level in range(level_count(plan)):
        numbers = [number for number, one in enumerate(plan.buffers) if one.level == level]
        for number in numbers:
            one = plan.buffers[number]
            if one.windows.timestamp:
                each = "message" if one.takes_input else "result"
                yield f"    {_format_place(one.component)} timestamp_mapping, once per {each}"
            if one.windows.key is not None:
                yield f"    {one.windows.key.source} its expression, for the shard"
        what = "messages" if level == 0 else "results, and the clock of the windows before,"
        yield f"shuffle: a few rows of packed {what} per micro-batch"
        shards = _format_count(plan.shards, "shard")
        labels = " and ".join(plan.buffers[number].label for number in numbers)
        yield f"stage {level + 2} (workers, {shards} each): keep packs, release windows of {labels}"
        for number in numbers:
            one = plan.buffers[number]
            yield from _step_lines(None, one.processors)
            for output in (one.output, one.late_output):
                if output is not None:
                    yield from _step_lines(None, output.processors)
                    yield from _send_lines(output, plan, ())


def _window_lines(plan: Plan) -> Iterator[str]:
    window = plan.window
    wait = format_duration(plan.interval)
    if window is None:
        yield f"  buffer      {plan.buffer.name}; data waits {wait} at most for a micro-batch"
        return
    first, *others = window.describe_rules()
    # The name of the buffer says the kind.
    first = first.replace(f", {plan.buffer.name.removesuffix('_window')},", ",")
    yield f"  window      {plan.buffer.name}: {first}"
    for rule in others:
        yield f"              {rule}"
    conditions = (
        *(("filter", plan.filter), ("gap", plan.gap)),
        *(*plan.conditions._asdict().items(), ("having", plan.having)),
    )
    for name, text in conditions:
        if text:
            yield f"  {name:<12}{' '.join(text.split())}"
    if plan.key is not None:
        by = f"{_format_count(plan.shards, 'shard')}, by {plan.key.text!r} of {plan.key.source}"
    else:
        by = (
            f"{_format_count(plan.shards, 'shard')}, of which one is used: a window is one batch, "
            "unless the first processor is a group_by_value or group_by that looks at one message"
        )
    yield f"  shards      {by}"
    aggregation = plan.aggregation
    if aggregation.text is None:
        whole = "the latest message of each id" if window.unbounded else "messages whole"
        yield f"  keeps       {whole}; {aggregation.obstacle}"
    else:
        head = [] if window.holds_nothing else ["the first message"]
        kept = ", ".join((*head, *aggregation.aggregates))
        yield f"  keeps       of each group: {kept} (pre-aggregated for {aggregation.source})"
    yield from _keyed_state_lines(plan)
    yield f"  data        waits {wait} at most for a micro-batch; windows close on time anyway"


def _keyed_state_lines(plan: Plan) -> Iterator[str]:
    """Describe what the pipeline keeps of each key."""
    state = plan.keyed_state
    if not state.users:
        return
    whose = "of each key" if plan.key is not None else "of the stream, which has no key"
    ttl = "for ever; state_ttl of the buffer bounds it"
    if state.ttl is not None:
        ttl = f"for {format_duration(state.ttl)} after it was last written"
    yield f"  state       {whose}, {ttl}"
    for user in state.users:
        name = f"{user.path} ({user.label})" if user.label else user.path
        yield f"              {name}: {', '.join(user.calls)}"


def _input_lines(plan: Plan) -> Iterator[str]:
    """Describe what is read: an input with its processors; of a broker each one, with its own."""
    if plan.input.name == "broker":
        yield from _step_lines(plan.input)
    for origin in leaf_inputs(plan.input, plan.resources):
        yield from _step_lines(origin)
        yield from _component_lines(origin)
        yield from _step_lines(None, origin.processors)


def _component_lines(component: ParsedComponent) -> Iterator[str]:
    """Describe an input by its own text, and its batches."""
    yield from _own_lines(component)
    batching = catalog.find_input_batching(component)
    if batching is not None:
        yield f"      batches      {_describe_policy(batching)}"


def _own_lines(component: ParsedComponent) -> Iterator[str]:
    spec = catalog.find_spec(component.kind, component.name)
    if spec is not None and spec.explains is not None:
        for line in spec.explains(component.config):
            yield f"      {line}"


def _processor_lines(component: ParsedComponent) -> Iterator[str]:
    """Describe a processor by its own text, and those inside of it that have one."""
    yield from _own_lines(component)
    for child in child_components(component):
        lines = [*_processor_lines(child)] if child.kind == Kind.PROCESSOR else []
        if lines:
            yield f"      {_format_place(child)} {child.name}"
            yield from lines


def _describe_policy(batching: ParsedFields) -> str:
    """Describe when a batch of an input is closed."""
    limits = [
        f"{batching[COUNT]:,} messages" if batching[COUNT] else "",
        f"{batching[BYTE_SIZE]:,} bytes" if batching[BYTE_SIZE] else "",
        "when check is true" if batching[CHECK] else "",
    ]
    text = ", ".join([*filter(None, limits), "the end of a micro-batch"])
    if batching[PERIOD]:
        text += f"; collects for {format_duration(batching[PERIOD])}"
    return f"of one partition each, closed by {text}"


def _step_lines(
    source: ParsedComponent | None, *groups: tuple[ParsedComponent, ...]
) -> Iterator[str]:
    if source is not None:
        yield f"    {_format_place(source)} {_format_name(source)}"
    for group in groups:
        for component in group:
            yield f"    {_format_place(component)} {_format_name(component)}"
            yield from _processor_lines(component)


def _output_lines(plan: Plan) -> Iterator[str]:
    for output in plan.outputs:
        yield from _step_lines(None, output.processors)
        yield from _send_lines(output, plan, ())


def _send_lines(output: ParsedComponent, plan: Plan, visited: tuple[str, ...]) -> Iterator[str]:
    """Describe what becomes of messages in an output, and in those that it passes them on to."""
    inner = [one for one in child_components(output) if one.kind == Kind.OUTPUT]
    if output.name in DRIVER_OUTPUTS:
        what, inner = "encode", []
    elif inner:
        what = f"passes on{_describe_case_order(output, inner)}"
    else:
        config = output.config
        once = isinstance(config, ParsedFields) and config.get("transactional")
        what = "sends, exactly once, in transactions" if once else "sends, at least once"
        if output.name in _SENT_TOGETHER:
            what += "; all rows at hand in one transaction"
        elif isinstance(output.config, ParsedFields) and output.config.get("max_in_flight"):
            what += f"; {output.config['max_in_flight']} batches at once"
    yield f"    {_format_place(output)} {_format_name(output)}: {what}"
    for child in inner:
        one = resolve_resource(child, plan.resources)
        if one.path not in visited:
            yield from _step_lines(None, one.processors)
            yield from _send_lines(one, plan, (*visited, one.path))


def _describe_case_order(output: ParsedComponent, cases: Sequence[ParsedComponent]) -> str:
    """Return whether cases that send keep the order among each other; of other outputs nothing."""
    sending = [one for one in cases if one.name not in DRIVER_OUTPUTS]
    if output.name != "switch" or len(sending) < 2:
        return ""
    config = output.config
    limits = [
        one.config.get("max_in_flight", 1) if isinstance(one.config, ParsedFields) else None
        for one in sending
    ]
    goes_on = any(case["continue"] for case in config["cases"])
    if not config["keep_order"] or goes_on or limits.count(1) < 2:
        return "; its cases keep no order among each other"
    return "; cases that send one batch at a time keep the order among each other"


def _describe_table(label: str, component: ParsedComponent) -> str:
    interval = component.config.get("refresh_interval")
    often = f"looked at every {format_duration(interval)}" if interval else "loaded at a start only"
    return f"table {label}: {component.name}, {often}; a micro-batch looks up one version of it"


def _describe_writer(output: ParsedComponent, what: str) -> str:
    match output.name:
        case "stdout":
            return f"{what} stdout: prints; a micro-batch may repeat after a crash"
        case "delta" | "iceberg":
            return f"{what} {output.name}: commits rows, exactly once"
        case "parquet":
            return f"{what} parquet: makes files, exactly once"
        case "file":
            return f"{what} file: appends, exactly once"
        case "http_server":
            return f"{what} http_server: waits until all is fetched; a micro-batch may repeat"
        case "inproc":
            return f"{what} inproc: waits until an input of this program has all on its disk"
        case "dynamic":
            return f"{what} dynamic: sends to all outputs that there are, at least once"
        case "drop":
            return f"{what} drop: nothing comes back"
        case name:
            return f"{what} {name}"


def _format_place(component: ParsedComponent) -> str:
    name = component.path or component.kind
    return f"{name} [{component.label}]" if component.label else name


def _format_name(component: ParsedComponent) -> str:
    """Return a component's name; that of a plugin with its package."""
    spec = catalog.find_spec(component.kind, component.name)
    if spec is None or not spec.distribution:
        return component.name
    return f"{component.name} (from {spec.distribution})"


def _format_count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
