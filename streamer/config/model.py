"""A config that was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from streamer.bloblang import MappingInputs
from streamer.core.errors import Lint
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields


@dataclass(frozen=True)
class Config:
    """A config that has no error. It can be pickled.

    Attributes:
        input: where messages come from; `stdin` when the config names none.
        buffer: the buffer; `none` when the config names none. Of several, the first.
        processors: those of `pipeline`; those of the first of several buffers.
        output: where messages go; `stdout` when the config names none. Buffers without an output of
            their own send there.
        buffers: the buffers of the `buffers` section, each with its place; empty without one.
        resources: components of the `*_resources` sections, by kind and label.
        logger: the `logger` section.
        bloblang: the `bloblang` section, or None.
        redpanda: the `redpanda` section, or None.
        http: the `http` section.
        spark: the `spark` section: `master`, `shards`, `trigger_interval` (ns or None),
            `checkpoint`, `spool_limit` (bytes), `conf`, `jars_directory`.
        metrics: where metrics go.
        tracer: where traces go.
        error_handling: the `error_handling` section.
        limits: the `limits` section.
        shutdown_delay: nanoseconds.
        shutdown_timeout: nanoseconds.
        threads: `pipeline.threads`; -1 when the config leaves it to the program.
        tests: the `tests` section.
        path: the file's name as the user wrote it; empty without a file.
        text: the file's text as it is on disk, without the values of variables.
        secrets: texts that nobody may see, by what is shown instead of them: values of secret
            fields and of environment variables, and passwords of URLs.
        inputs: what its mappings have read from files and the environment.
        lints: findings that it runs with all the same, since it was asked to.
    """

    input: ParsedComponent
    buffer: ParsedComponent
    processors: tuple[ParsedComponent, ...]
    output: ParsedComponent
    resources: Mapping[tuple[Kind, str], ParsedComponent]
    logger: ParsedFields
    http: ParsedFields
    spark: ParsedFields
    metrics: ParsedComponent
    tracer: ParsedComponent
    error_handling: ParsedFields
    limits: ParsedFields
    shutdown_delay: int
    shutdown_timeout: int
    threads: int = -1
    bloblang: ParsedFields | None = None
    redpanda: ParsedFields | None = None
    tests: tuple[ParsedFields, ...] = ()
    path: str = ""
    buffers: tuple[ParsedComponent, ...] = ()
    text: str = field(default="", repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    inputs: MappingInputs = field(default_factory=MappingInputs, repr=False, compare=False)
    lints: tuple[Lint, ...] = ()

    @property
    def components(self) -> tuple[ParsedComponent, ...]:
        """The components that messages go through, in order; those inside of others are not."""
        if not self.buffers:
            return (self.input, self.buffer, *self.processors, self.output)
        through: list[ParsedComponent] = [self.input]
        for buffer in self.buffers:
            assert buffer.place is not None
            through += [buffer, *buffer.place.processors]
        return (*through, *self.outputs)

    @property
    def late_outputs(self) -> tuple[str, ...]:
        """The labels of the output resources that get what windows drop, each once."""
        named = (
            one.config.get("late_output")
            for one in self.buffers or (self.buffer,)
            if isinstance(one.config, ParsedFields)
        )
        return tuple(dict.fromkeys(label for label in named if label))

    @property
    def outputs(self) -> tuple[ParsedComponent, ...]:
        """The outputs that results go to: one, or those of several buffers, each once."""
        if not self.buffers:
            return (self.output,)
        outputs = [output_of(buffer, self.buffers, self.output) for buffer in self.buffers]
        return tuple({one.path: one for one in outputs if one is not None}.values())


def output_of(
    buffer: ParsedComponent, buffers: tuple[ParsedComponent, ...], default: ParsedComponent
) -> ParsedComponent | None:
    """Return the output of one of several buffers; None where only other buffers take its results.

    Args:
        buffer: the buffer.
        buffers: all of them.
        default: the output of the top level.
    """
    place = buffer.place
    assert place is not None
    if place.output is not None:
        return place.output
    is_taken = any(buffer.label in source_labels_of(one) for one in buffers)
    return None if is_taken else default


JOIN_SIDES: Final = {"window_join": ("left", "right"), "table_join": ("stream", "table")}
"""By buffer with two sides, the fields with their labels: of the left side, then the right one."""


def source_labels_of(buffer: ParsedComponent) -> tuple[str, ...]:
    """Return the labels of what one of several buffers takes: other buffers, or inputs.

    Args:
        buffer: the buffer.

    Returns:
        Of a join both sides, without those that the config lacks; else one label, which is empty
        for the input.
    """
    if buffer.name in JOIN_SIDES:
        fields = buffer.config if isinstance(buffer.config, ParsedFields) else ParsedFields({})
        return tuple(fields[side] for side in JOIN_SIDES[buffer.name] if fields.get(side))
    return (buffer.place.source if buffer.place is not None else "",)
