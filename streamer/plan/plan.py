"""The plan of a stream: frozen, free of Spark, small enough to be sent to every worker."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from streamer.bloblang import Luggage, luggage
from streamer.caching.shared import Host, host
from streamer.catalog import build_context, makes_windows, spec
from streamer.config import Config
from streamer.durations import MILLISECOND, SECOND
from streamer.errors import StreamerError
from streamer.lasting import forget, lasting_of, new_run
from streamer.limits import DEFAULT_LIMITS, Limits
from streamer.plan.collecting import period_of
from streamer.plan.fold import Folding
from streamer.plan.key import Key
from streamer.plan.resources import Resources, resolved, resource_of
from streamer.plan.spark_read import spark_read
from streamer.plan.windowing import windowing_of
from streamer.plan.written import written_inside
from streamer.spec import BuildContext, Kind, ParsedComponent
from streamer.window.words import AnyWindow, retention

WINDOW_INTERVAL = 2 * SECOND
DIRECT_INTERVAL = SECOND // 2
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Plan:
    """What a stream is made of.

    Attributes:
        name: the stream's name, from the config's file.
        input: the source of messages; its `processors` run before the buffer.
        buffer: the buffer as the config has it.
        window: the windows' settings, or None when there is no window buffer.
        timestamp: the mapping that gives a message's time; empty without windows, and for those
            that know no time.
        filter: the mapping that keeps a message; empty for all.
        having: the mapping that lets a window's batch go on; empty for all.
        key: what messages are sharded by, or None when all go to shard 0.
        folding: whether windows keep messages, or what the pipeline's mapping makes of them.
        processors: the pipeline.
        output: where results go; its `processors` run last.
        late_output: where dropped messages go, or None.
        resources: components that others refer to, by kind and label.
        master: the Spark master's URL.
        shards: how many shards the state has; 0 without windows.
        interval: how long data may wait for a micro-batch, ns; windows close on time all the same.
        limit_bytes: the most bytes of messages in a micro-batch.
        level: the log level, which decides what workers send.
        luggage: what the config's mappings have read from files and the environment.
        spool_limit: bytes that may wait in the spool of an input.
        strict: whether a message on which a processor fails must not be delivered.
        run: names this run of the stream, and no other: workers keep by it what outlives tasks.
        live: where tasks say what they wait for; empty for nowhere.
        traced: whether tasks say what they do when, for a tracer.
        limits: what one message may come to.
        wait_budget: how long a task waits for outputs before what is unsent goes to the driver,
            which sends it again, ns; 0 for ever.
        seed: the directory of what the shards begin with; empty where they begin with nothing.
    """

    name: str
    input: ParsedComponent
    buffer: ParsedComponent
    window: AnyWindow | None
    timestamp: str
    filter: str
    having: str
    key: Key | None
    folding: Folding
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent
    late_output: ParsedComponent | None
    resources: Resources
    master: str
    shards: int
    interval: int
    limit_bytes: int
    level: str
    luggage: Luggage
    spool_limit: int
    strict: bool = False
    run: str = field(default="", compare=False)
    live: str = field(default="", compare=False)
    traced: bool = field(default=False, compare=False)
    seed: str = field(default="", compare=False)
    limits: Limits = DEFAULT_LIMITS
    wait_budget: int = field(default=0, compare=False)

    def context(self, component: ParsedComponent | None = None) -> BuildContext:
        """Return a context that builds components of this stream, for a task.

        Args:
            component: what is being built, for components that are built by hand.
        """
        return build_context(self.resources, component, lasting_of(self.run))

    def host_caches(self) -> Host | None:
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
            if kind == Kind.CACHE and (found := spec(kind, component.name)) and found.in_memory
        ]
        if not in_memory or not self.master.startswith("local"):
            return None
        context = build_context(self.resources)
        try:
            directory = lasting_of(self.run).shared_directory()
            return host(directory, lambda label: context.resource(Kind.CACHE, label).cache)
        except OSError as error:
            raise StreamerError(f"caches in memory cannot be shared by workers: {error}") from None

    def forget(self) -> None:
        """Forget what this process has kept for the run, which has ended."""
        forget(self.run)

    @property
    def outputs(self) -> tuple[ParsedComponent, ...]:
        """The outputs by number: the output, then `late_output` when there is one."""
        return (self.output,) if self.late_output is None else (self.output, self.late_output)

    @property
    def written(self) -> tuple[ParsedComponent, ...]:
        """What the driver writes, by number: the outputs, then those inside of them that it can.

        An output that sends everything from the workers leaves it nothing to write.
        """
        return (*self.outputs, *written_inside(self.outputs, self.resources))

    @property
    def written_numbers(self) -> dict[str, int]:
        """The numbers of what the driver writes, by path."""
        return {output.path: number for number, output in enumerate(self.written)}

    @property
    def retention(self) -> int | None:
        """How long results are kept for queries, ns; None for not at all."""
        return None if self.window is None else retention(self.window)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What a checkpoint's state and offsets are bound to."""
        return {
            "input": self._bound_input,
            "window": self.window.fingerprint if self.window else self.buffer.name,
            "key": self.key.text if self.key else None,
            "shards": self.shards,
        }

    @property
    def _bound_input(self) -> str:
        """The input in words: what Spark reads of it has its place in Spark's checkpoint."""
        name, within = self.input.name, spark_read(self.input, self.resources)
        return name if within in ([], [name]) else f"{name} with {', '.join(within)}"


_ON_YARN: Final = 2
"""Executors that Spark asks YARN for when nothing says how many."""


def cores(master: str, conf: Mapping[str, Any] = NO_SETTINGS) -> int:
    """Return how many cores a stream is promised; the machine's where nothing says it.

    Args:
        master: Spark's master URL.
        conf: the user's Spark settings, which may say how much of a cluster is wanted.
    """
    if not master.startswith("local"):
        wanted = _wanted(conf, _ON_YARN if master == "yarn" else 0)
        if wanted:
            return wanted
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if master == "local":
        return 1
    named = re.match(r"local\[(\d+)", master)
    return int(named.group(1)) if named else available or 1


def guesses_shards(config: Config, plan: Plan) -> bool:
    """Tell whether the shards are as many as the driver's machine has cores, for want of better.

    Only where that matters: windows with a key, on a cluster of which nobody has said the size.
    """
    if plan.key is None or plan.master.startswith("local") or config.spark["shards"]:
        return False
    return not _wanted(config.spark["conf"], _ON_YARN if plan.master == "yarn" else 0)


def _wanted(conf: Mapping[str, Any], executors: int) -> int:
    """Return how many cores of a cluster the settings ask for; 0 where they do not say it.

    Args:
        conf: the settings.
        executors: how many there are when nothing says it; 0 for as many as find a place.
    """

    def number(name: str, default: int) -> int:
        text = str(conf.get(name, default))
        return int(text) if text.isdecimal() else default

    asked = number("spark.executor.instances", executors) * number("spark.executor.cores", 1)
    return number("spark.cores.max", 0) or asked


def make_plan(config: Config, level: str = "INFO") -> Plan:
    """Make the plan of a config that lint has found to be right.

    Args:
        config: the config.
        level: the log level of the run.

    Raises:
        StreamerError: the config asks for something that cannot be run; the text says what.
    """
    resources = config.resources
    context = build_context(resources)
    processors = tuple(resolved(one, resources) for one in config.processors)
    windowing, late_output = None, None
    interval, limit_bytes = DIRECT_INTERVAL, 256 << 20
    if makes_windows(config.buffer):
        buffer = context.build(config.buffer)
        windowing = windowing_of(buffer, config.buffer, processors)
        interval = WINDOW_INTERVAL
        if buffer.late_output:
            late_output = resolved(
                resource_of(resources, Kind.OUTPUT, buffer.late_output), resources
            )
    elif config.buffer.name == "memory":
        buffer = context.build(config.buffer)
        limit_bytes = min(limit_bytes, buffer.limit)
        interval = max(interval, getattr(buffer.policy, "period", None) or 0)
    if windowing is None:
        interval = max(interval, period_of(config.output, resources))
    if config.spark["trigger_interval"] is not None:
        interval = config.spark["trigger_interval"]
    master = config.spark["master"]
    spark_read(config.input, resources)
    return Plan(
        name=Path(config.path).stem or "stdin",
        input=resolved(config.input, resources),
        buffer=config.buffer,
        window=windowing.window if windowing else None,
        timestamp=windowing.timestamp if windowing else "",
        filter=windowing.filter if windowing else "",
        having=windowing.having if windowing else "",
        key=windowing.key if windowing else None,
        folding=windowing.folding if windowing else Folding(None),
        processors=processors,
        output=resolved(config.output, resources),
        late_output=late_output,
        resources=resources,
        master=master,
        shards=(config.spark["shards"] or cores(master, config.spark["conf"])) if windowing else 0,
        interval=max(interval, MILLISECOND),
        limit_bytes=limit_bytes,
        level=level,
        luggage=luggage(),
        spool_limit=config.spark["spool_limit"],
        strict=config.error_handling["strict"],
        run=new_run(),
        traced=config.tracer.name != "none",
        limits=Limits(**{name: config.limits[name] or 0 for name in config.limits}),
    )
