"""From the fields of the top level to a `Config`."""

from __future__ import annotations

from collections.abc import Mapping as MappingType

from streamer.config.model import Config
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields


def assemble_config(
    parsed: ParsedFields,
    resources: MappingType[tuple[Kind, str], ParsedComponent],
    name: str,
    text: str,
    secrets: MappingType[str, str],
) -> Config:
    """Return the config of a top level in which nothing was found to be wrong.

    Args:
        parsed: the top level's fields.
        resources: by kind and label.
        name: the file's name.
        text: the file's text.
        secrets: what must not be seen, by what is shown instead.
    """
    buffers = parsed["buffers"] or ()
    first, processors = parsed["buffer"], parsed["pipeline"]["processors"]
    if buffers:
        first, processors = buffers[0], buffers[0].place.processors
    return Config(
        input=parsed["input"],
        buffer=first,
        processors=processors,
        output=parsed["output"],
        resources=resources,
        logger=parsed["logger"],
        http=parsed["http"],
        spark=parsed["spark"],
        metrics=parsed["metrics"],
        tracer=parsed["tracer"],
        error_handling=parsed["error_handling"],
        limits=parsed["limits"],
        shutdown_delay=parsed["shutdown_delay"] or 0,
        shutdown_timeout=parsed["shutdown_timeout"] or 0,
        threads=parsed["pipeline"]["threads"],
        tests=parsed["tests"] or (),
        path=name,
        buffers=buffers,
        text=text,
        secrets=dict(secrets),
    )
