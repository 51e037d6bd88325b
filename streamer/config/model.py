"""A config that was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamer.bloblang import MappingInputs
from streamer.core.errors import Lint
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields


@dataclass(frozen=True)
class Config:
    """A config that has no error. It can be pickled.

    Attributes:
        input: where messages come from; `stdin` when the config names none.
        buffer: the buffer; `none` when the config names none.
        processors: those of `pipeline`.
        output: where messages go; `stdout` when the config names none.
        resources: components of the `*_resources` sections, by kind and label.
        logger: the `logger` section.
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
    tests: tuple[ParsedFields, ...] = ()
    path: str = ""
    text: str = field(default="", repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    inputs: MappingInputs = field(default_factory=MappingInputs, repr=False, compare=False)
    lints: tuple[Lint, ...] = ()
