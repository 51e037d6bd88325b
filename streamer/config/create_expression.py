"""The expression that `streamer create` takes: inputs, a buffer, processors and outputs.

`kafka_franz/tumbling_window/mapping/stdout`. The buffer may be left out, and so may what follows;
names tell what a part is of.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from streamer.components import catalog
from streamer.core.errors import StreamerError
from streamer.sdk.spec import Kind

_FORM: Final = "inputs/buffer/processors/outputs"
_EXAMPLE: Final = "stdin/tumbling_window/mapping,log/stdout"
_JOINS: Final = ("window_join", "table_join")


class CreatedParts(NamedTuple):
    """The components of a config that is to be created, by name.

    Attributes:
        inputs: the inputs.
        buffer: the buffer; empty for none.
        processors: the processors, in order.
        outputs: the outputs.
    """

    inputs: list[str]
    buffer: str
    processors: list[str]
    outputs: list[str]


def parse_create_expression(expression: str) -> CreatedParts:
    """Return the parts of an expression; names of components are not checked, but for buffers.

    Raises:
        StreamerError: there are too many parts, or a buffer stands where none can.

    Example:
        >>> parse_create_expression("stdin/tumbling_window/stdout")
        CreatedParts(inputs=['stdin'], buffer='tumbling_window', processors=[], outputs=['stdout'])
    """
    parts = [
        [name.strip() for name in part.split(",") if name.strip()] for part in expression.split("/")
    ]
    if len(parts) > 4:
        raise StreamerError(
            f"{expression!r} has {len(parts)} parts; expected {_FORM}, such as {_EXAMPLE}"
        )
    buffers = catalog.component_names(Kind.BUFFER)
    names_buffer = len(parts) == 4 or (
        len(parts) > 1 and len(parts[1]) == 1 and _is_buffer(parts[1][0])
    )
    buffer = parts.pop(1) if names_buffer else []
    for name in (one for part in (*parts, buffer[1:]) for one in part):
        if _is_buffer(name):
            raise StreamerError(
                f"{name} is a buffer: it stands alone behind the inputs; expected {_FORM}, "
                f"such as stdin/{name}/mapping/stdout"
            )
    if buffer and not _is_buffer(buffer[0]):
        raise StreamerError(
            f"{expression!r} names {buffer[0]} where the buffer stands; expected {_FORM}; "
            f"buffers are {', '.join(buffers)}"
        )
    if names_buffer and len(parts) == 2:
        # Of the three parts the last may be of either kind.
        is_output = all(name in catalog.component_names(Kind.OUTPUT) for name in parts[1])
        is_processor = all(name in catalog.component_names(Kind.PROCESSOR) for name in parts[1])
        parts.insert(2 if is_processor and not is_output else 1, [])
    inputs, processors, outputs = [*parts, [], []][:3]
    if buffer and buffer[0] in _JOINS and len(inputs) < 2:
        raise StreamerError(
            f"{buffer[0]} joins two inputs, and {expression!r} names {len(inputs)}; expected two, "
            f"such as generate,generate/{buffer[0]}/mapping/stdout"
        )
    return CreatedParts(inputs, buffer[0] if buffer else "", processors, outputs)


def _is_buffer(name: str) -> bool:
    return name in catalog.component_names(Kind.BUFFER)
