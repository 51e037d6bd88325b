"""The plan of a stream: frozen, free of Spark, small enough to be sent to every worker."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from streamer.bloblang import CapturedInputs
from streamer.components.catalog import build_context, find_spec, makes_windows
from streamer.config import Config
from streamer.config.model import output_of, source_labels_of
from streamer.config.secrets import list_references, name_secrets
from streamer.config.sections import LOG_LEVELS
from streamer.connectors.kafka.redpanda_section import (
    LOGS_LEVEL,
    LOGS_TOPIC,
    explain_event_topics,
)
from streamer.core.durations import MILLISECOND, SECOND
from streamer.core.errors import StreamerError
from streamer.core.limits import DEFAULT_LIMITS, Limits
from streamer.plan.batching_period import longest_batching_period
from streamer.plan.component_lookup import find_driver_outputs, get_resource, resolve_resource
from streamer.plan.kafka_positions import find_worker_inputs
from streamer.plan.keyed_state import NO_KEYED_STATE, KeyedStatePlan, make_keyed_state_plan
from streamer.plan.stream_buffers import StreamBuffer, describe_state, find_level, outputs_of
from streamer.plan.used_plugins import list_used_plugins
from streamer.plan.window_plan import (
    NO_WINDOWS,
    Aggregation,
    ShardKey,
    WindowConditions,
    WindowPlan,
    describe_window_state,
    make_window_plan,
)
from streamer.sdk.cache.shared import CacheServer, start_server
from streamer.sdk.spec import BuildContext, Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.component import Resources
from streamer.sdk.worker_resources import forget_run, new_run_id, resources_of_run
from streamer.window.settings.event_time_window import EventWindow
from streamer.window.settings.window import Window

WINDOW_INTERVAL_NS = 2 * SECOND
STATELESS_INTERVAL_NS = SECOND // 2
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plan:
    """A stream that can run: all that is decided once, frozen.

    Attributes:
        name: the stream's name, from the config's file.
        input: the source of messages; its `processors` run before the buffer.
        buffer: the buffer as the config has it.
        window: the windows' settings; None without a window buffer.
        timestamp: the mapping that gives a message's time; empty without windows, and for those
            that know no time.
        filter: the mapping that keeps a message; empty for all.
        gap: the mapping that gives the gap of a message's session; empty without one.
        conditions: the queries that let a message begin or emit a window.
        having: the mapping that lets a window's batch go on; empty for all.
        key: what messages are sharded by, or None when all go to shard 0.
        aggregation: whether windows keep messages, or what the pipeline's mapping makes of them.
        processors: the pipeline.
        output: where results go; its `processors` run last.
        late_output: where dropped messages go, or None.
        resources: components that others refer to, by kind and label.
        master: the Spark master's URL.
        shards: how many shards the state has; 0 without windows.
        interval: how long data may wait for a micro-batch, ns; windows close on time all the same.
        is_interval_fixed: whether that is the shortest distance of micro-batches too: the config
            says so, or each of them emits changes; else their cost paces the stream.
        batching_period: how long data is collected at least, ns.
        limit_bytes: the most bytes of messages in a micro-batch.
        level: the log level, which decides what workers send.
        captured_inputs: what the config's mappings have read from files and the environment.
        spool_limit: bytes that may wait in the spool of an input.
        strict: whether a message on which a processor fails must not be delivered.
        run: names this run of the stream, and no other: workers keep by it what outlives tasks.
        task_log_address: where tasks say what they wait for; empty for nowhere.
        traced: whether tasks say what they do when, for a tracer.
        limits: the largest message.
        wait_budget: how long a task waits for outputs before what is unsent goes to the driver,
            which sends it again, ns; 0 for ever.
        initial_state_dir: the directory of what the shards begin with; empty where they begin with
            nothing.
        buffers: where there are several, all of them; what is said above of the buffer and what
            comes after it is then of the first.
        stream_outputs: of the plan of one of several buffers: the outputs of all of them.
        keyed_state: what the pipeline keeps of each key.
        event_topics: where the log and the status of the stream go, in lines.
        plugins: the components of other packages, each with its package and version.
        secret_references: kept in the place of the plan's secrets.
        right_timestamp: the mapping that gives the time of a message of the right side of a join,
            where it has one of its own; else empty.
    """

    name: str
    input: ParsedComponent
    buffer: ParsedComponent
    window: Window | None
    timestamp: str
    filter: str
    gap: str
    conditions: WindowConditions
    having: str
    key: ShardKey | None
    aggregation: Aggregation
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent
    late_output: ParsedComponent | None
    resources: Resources
    master: str
    shards: int
    interval: int
    limit_bytes: int
    level: str
    captured_inputs: CapturedInputs
    spool_limit: int
    strict: bool = False
    run: str = field(default="", compare=False)
    task_log_address: str = field(default="", compare=False)
    traced: bool = field(default=False, compare=False)
    initial_state_dir: str = field(default="", compare=False)
    keyed_state: KeyedStatePlan = NO_KEYED_STATE
    limits: Limits = DEFAULT_LIMITS
    wait_budget: int = field(default=0, compare=False)
    buffers: tuple[StreamBuffer, ...] = ()
    stream_outputs: tuple[ParsedComponent, ...] = ()
    is_interval_fixed: bool = False
    event_topics: tuple[str, ...] = field(default=(), compare=False)
    batching_period: int = 0
    plugins: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    secret_references: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    right_timestamp: str = ""

    def context(self, component: ParsedComponent | None = None) -> BuildContext:
        """Return a context that builds components of this stream, for a task.

        Args:
            component: what is being built, for components that are built by hand.
        """
        return build_context(self.resources, component, resources_of_run(self.run))

    def host_caches(self) -> CacheServer | None:
        """Keep caches in memory for the workers, where they all are on this machine.

        Returns:
            What is to be closed at the end; None where there is no such cache, or every worker
            has to keep its own.

        Raises:
            StreamerError: workers could not reach them.
        """
        in_memory = [
            label
            for (kind, label), component in self.resources.items()
            if kind == Kind.CACHE
            and (component_spec := find_spec(kind, component.name))
            and component_spec.in_memory
        ]
        if not in_memory or not self.master.startswith("local"):
            return None
        context = build_context(self.resources)
        try:
            directory = resources_of_run(self.run).shared_directory()
            return start_server(directory, lambda label: context.resource(Kind.CACHE, label).cache)
        except OSError as error:
            raise StreamerError(f"caches in memory cannot be shared by workers: {error}") from None

    def forget(self) -> None:
        """Forget what this process has kept for the run, which has ended."""
        forget_run(self.run)

    @property
    def outputs(self) -> tuple[ParsedComponent, ...]:
        """The outputs by number: the output, then `late_output` when there is one.

        Of several buffers: those of all, each place in the config once.
        """
        if self.buffers:
            return outputs_of(self.buffers)
        return (self.output,) if self.late_output is None else (self.output, self.late_output)

    @property
    def driver_outputs(self) -> tuple[ParsedComponent, ...]:
        """The outputs that the driver writes, by number: first the outputs, then those in them.

        An output that sends everything from the workers leaves it nothing to write.
        """
        outputs = self.stream_outputs or self.outputs
        return (*outputs, *find_driver_outputs(outputs, self.resources))

    @property
    def driver_output_numbers(self) -> dict[str, int]:
        """The numbers of what the driver writes, by path."""
        return {output.path: number for number, output in enumerate(self.driver_outputs)}

    @property
    def own_output_numbers(self) -> tuple[int, ...]:
        """The numbers of `outputs` among those of the stream."""
        if not self.stream_outputs:
            return tuple(range(len(self.outputs)))
        paths = [output.path for output in self.stream_outputs]
        return tuple(paths.index(one.path) if one.path in paths else -1 for one in self.outputs)

    @property
    def aggregation_identity(self) -> str:
        """The identity of the mappings that windows pre-aggregate for; empty for none."""
        identities = [one.windows.aggregation.identity for one in self.buffers]
        if not any(identities):
            return self.aggregation.identity
        return hashlib.blake2b(" ".join(identities).encode(), digest_size=8).hexdigest()

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows of the buffer, or of each of several; none without a window buffer."""
        of_buffers = tuple(one.windows.window for one in self.buffers) or (self.window,)
        return tuple(window for window in of_buffers if window is not None)

    @property
    def shard_count(self) -> int:
        """The number of shards of all buffers."""
        return self.shards * max(len(self.buffers), 1)

    @property
    def all_processors(self) -> tuple[ParsedComponent, ...]:
        """The processors behind the buffer, or behind all of several."""
        if not self.buffers:
            return self.processors
        return tuple(processor for one in self.buffers for processor in one.processors)

    @property
    def all_buffers(self) -> tuple[ParsedComponent, ...]:
        """The buffer, or all of several."""
        return tuple(one.component for one in self.buffers) or (self.buffer,)

    @property
    def retention(self) -> int | None:
        """Time that results are kept for queries, ns; None for not at all."""
        return None if self.window is None else self.window.retention

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The settings that a checkpoint's state and offsets are bound to."""
        window, key = self.buffer.name, self.key.text if self.key else None
        if self.window is not None:
            window = describe_window_state(self.window, self.aggregation)
        if self.buffers:
            window, key = describe_state(self.buffers)
        if self.secret_references:
            window, key = name_secrets([window, key], self.secret_references)
        return {"input": self._bound_input, "window": window, "key": key, "shards": self.shards}

    @property
    def _bound_input(self) -> str:
        """The input in words: what workers read of it has its place in Spark's checkpoint."""
        name, within = self.input.name, find_worker_inputs(self.input, self.resources)
        return name if within in ([], [name]) else f"{name} with {', '.join(within)}"


_YARN_DEFAULT_EXECUTORS: Final = 2
"""Executors that Spark asks YARN for when nothing says how many."""


def count_cores(master: str, conf: Mapping[str, Any] = NO_SETTINGS) -> int:
    """Return how many cores a stream is promised; the machine's where nothing says it.

    Args:
        master: Spark's master URL.
        conf: the user's Spark settings, which may say how much of a cluster is wanted.
    """
    if not master.startswith("local"):
        requested = _requested_cores(conf, _YARN_DEFAULT_EXECUTORS if master == "yarn" else 0)
        if requested:
            return requested
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if master == "local":
        return 1
    named = re.match(r"local\[(\d+)", master)
    return int(named.group(1)) if named else available or 1


def guesses_shards(config: Config, plan: Plan) -> bool:
    """Return whether the shards are as many as the driver's machine has cores, for want of better.

    Only where that matters: windows with a key, on a cluster of which nobody has said the size.
    """
    if plan.key is None or plan.master.startswith("local") or config.spark["shards"]:
        return False
    return not _requested_cores(
        config.spark["conf"], _YARN_DEFAULT_EXECUTORS if plan.master == "yarn" else 0
    )


def _requested_cores(conf: Mapping[str, Any], executors: int) -> int:
    """Return how many cores of a cluster the settings ask for; 0 where they do not say it.

    Args:
        conf: the settings.
        executors: how many there are when nothing says it; 0 for as many as find a place.
    """

    def number(name: str, default: int) -> int:
        text = str(conf.get(name, default))
        return int(text) if text.isdecimal() else default

    from_executors = number("spark.executor.instances", executors) * number(
        "spark.executor.cores", 1
    )
    return number("spark.cores.max", 0) or from_executors


class _BufferPlan(NamedTuple):
    """The decisions of a config's buffer.

    Attributes:
        windows: the windows.
        late_output: where dropped messages go, or None.
        interval: how long data may wait for a micro-batch, ns.
        period: how long the buffer collects messages for a batch, ns.
        limit_bytes: the most bytes of messages in a micro-batch.
    """

    windows: WindowPlan = NO_WINDOWS
    late_output: ParsedComponent | None = None
    interval: int = STATELESS_INTERVAL_NS
    period: int = 0
    limit_bytes: int = 256 << 20


def make_plan(config: Config, level: str = "INFO", name: str = "") -> Plan:
    """Make the plan of a config that lint has found to be right.

    Args:
        config: the config.
        level: the log level of the run.
        name: the stream's; that of the config's file when it is empty.

    Raises:
        StreamerError: the config asks for something that cannot be run; the text says what.

    Example:
        >>> from streamer.config import parse_config
        >>> plan = make_plan(parse_config("buffer: {system_window: {size: 10s}}"))
        >>> plan.window.size // SECOND, plan.input.name
        (10, 'stdin')
    """
    processors = tuple(resolve_resource(one, config.resources) for one in config.processors)
    with config.inputs.active():
        buffer, buffers = _plan_buffer(config, processors), _plan_buffers(config)
        find_worker_inputs(config.input, config.resources)
    windows, spark = buffer.windows, config.spark
    return Plan(
        name=name or Path(config.path).stem or "stdin",
        input=resolve_resource(config.input, config.resources),
        buffer=config.buffer,
        window=windows.window,
        timestamp=windows.timestamp,
        right_timestamp=windows.right_timestamp,
        filter=windows.filter,
        gap=windows.gap,
        conditions=windows.conditions,
        having=windows.having,
        key=windows.key,
        aggregation=windows.aggregation,
        processors=processors,
        output=resolve_resource(config.output, config.resources),
        late_output=buffer.late_output,
        resources=config.resources,
        master=spark["master"],
        shards=_count_shards(spark) if windows.window is not None else 0,
        interval=_choose_interval(config, buffer),
        is_interval_fixed=_is_interval_fixed(config, windows, buffers),
        batching_period=_find_batching_period(config, buffer),
        limit_bytes=buffer.limit_bytes,
        level=_choose_level(config, level),
        captured_inputs=config.inputs.capture(),
        spool_limit=spark["spool_limit"],
        strict=config.error_handling["strict"],
        run=new_run_id(),
        traced=config.tracer.name != "none",
        keyed_state=make_keyed_state_plan(config.buffer, processors, config.resources)
        if windows.window is not None
        else NO_KEYED_STATE,
        limits=Limits(**{name: config.limits[name] or 0 for name in config.limits}),
        buffers=buffers,
        event_topics=explain_event_topics(config.redpanda),
        plugins=list_used_plugins(config),
        secret_references=list_references(config),
    )


def _count_shards(spark: ParsedFields) -> int:
    shards: int = spark["shards"] or count_cores(spark["master"], spark["conf"])
    return shards


def _choose_level(config: Config, level: str) -> str:
    """Return the level of the lines that workers send: the lower of the log's and its topic's."""
    section = config.redpanda
    if section is None or not section[LOGS_TOPIC]:
        return level
    topic_level: str = section[LOGS_LEVEL].upper()
    names = (*LOG_LEVELS[-2::-1], "NONE")
    known = level.upper() if level.upper() in names else "INFO"
    return min(known, topic_level, key=names.index)


def _choose_interval(config: Config, buffer: _BufferPlan) -> int:
    """Return how long data may wait for a micro-batch, ns."""
    setting: int | None = config.spark["trigger_interval"]
    if setting is not None:
        return max(setting, MILLISECOND)
    return max(buffer.interval, _find_batching_period(config, buffer))


def _is_interval_fixed(
    config: Config, windows: WindowPlan, buffers: Sequence[StreamBuffer]
) -> bool:
    """Return whether the interval is the shortest distance of micro-batches too."""
    of_all = (windows.window, *(one.windows.window for one in buffers))
    return config.spark["trigger_interval"] is not None or any(
        isinstance(window, EventWindow) and window.time.emit == "changes" for window in of_all
    )


def _find_batching_period(config: Config, buffer: _BufferPlan) -> int:
    """Return how long data is collected for the batches of a stream without windows, ns."""
    if buffer.windows.window is not None:
        return 0
    period = longest_batching_period(config.input, config.output, config.resources)
    return max(buffer.period, period)


def _plan_buffers(config: Config) -> tuple[StreamBuffer, ...]:
    """Return the buffers of a list of them."""
    numbers = {one.label: number for number, one in enumerate(config.buffers)}
    named = [source_labels_of(one) for one in config.buffers]
    sources = [tuple(numbers[label] for label in one if label in numbers) for one in named]
    planned: list[StreamBuffer] = []
    for component, labels, mine in zip(config.buffers, named, sources, strict=True):
        assert component.place is not None
        processors = tuple(
            resolve_resource(one, config.resources) for one in component.place.processors
        )
        one = _plan_buffer(replace(config, buffer=component), processors)
        output = output_of(component, config.buffers, config.output)
        windows = one.windows
        has_own_times = component.config.is_given("timestamp_mapping")
        if windows.window is not None and windows.window.join is not None:
            has_own_times = False  # The mapping is for messages of the input.
        elif mine and not has_own_times:
            windows = replace(windows, timestamp="")
        planned.append(
            StreamBuffer(
                component,
                windows,
                processors,
                None if output is None else resolve_resource(output, config.resources),
                one.late_output,
                mine,
                len(mine) < len(labels),
                find_level(sources, mine),
                has_own_times,
                make_keyed_state_plan(component, processors, config.resources),
            )
        )
    return tuple(planned)


def _plan_buffer(config: Config, processors: Sequence[ParsedComponent]) -> _BufferPlan:
    plan = _BufferPlan()
    if makes_windows(config.buffer):
        buffer = build_context(config.resources).build(config.buffer)
        late_output = buffer.late_output and resolve_resource(
            get_resource(config.resources, Kind.OUTPUT, buffer.late_output), config.resources
        )
        windows = make_window_plan(buffer, config.buffer, processors)
        interval = WINDOW_INTERVAL_NS
        if windows.window is not None and windows.window.passes_messages:
            interval = STATELESS_INTERVAL_NS
        return _BufferPlan(windows, late_output or None, interval)
    if config.buffer.name == "memory":
        buffer = build_context(config.resources).build(config.buffer)
        return plan._replace(
            limit_bytes=min(plan.limit_bytes, buffer.limit),
            period=getattr(buffer.policy, "period", None) or 0,
        )
    return plan
