"""Sample messages of a program: values, texts, payloads, messages, and frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamer.core.errors import StreamerError
from streamer.core.message import Message
from streamer.tools.component_kit.components import Content, make_message

if TYPE_CHECKING:
    from streamer.engine.offline.scripted import ScriptedMessage

Sample = Iterable[Content] | Any
"""Messages: an iterable of JSON values, texts, payloads and messages, or a frame of rows."""

SampleMessages = Sample | Mapping[str, Sample]
"""Messages of one input, or of several by the labels of the inputs."""


def read_sample(messages: SampleMessages) -> list[ScriptedMessage]:
    """Return messages as an input gives them.

    A value becomes a JSON payload. A frame (`pyarrow.Table`, `pandas.DataFrame`,
    `polars.DataFrame`, or another with Arrow's stream interface) gives a message for each row.

    Args:
        messages: of one input; a dict has those of several inputs, by label.

    Raises:
        StreamerError: it is none of these, or a value has no form as JSON.

    Example:
        >>> [one.message.raw for one in read_sample([{"n": 1}, "plain", b"raw"])]
        [b'{"n": 1}', b'plain', b'raw']
    """
    # It brings numpy and pyarrow along, which checks of configs need not wait for.
    from streamer.engine.offline.scripted import ScriptedMessage

    if isinstance(messages, Mapping):
        return [
            ScriptedMessage(message, input=str(label))
            for label, some in messages.items()
            for message in _read_messages(some)
        ]
    return [ScriptedMessage(message) for message in _read_messages(messages)]


def _read_messages(sample: Any) -> Iterator[Message]:
    if hasattr(sample, "__arrow_c_stream__"):
        yield from _read_frame(sample)
        return
    if isinstance(sample, str | bytes | Mapping | Message) or not isinstance(sample, Iterable):
        raise StreamerError(
            f"messages are {_describe(sample)}; expected a list of dicts, texts or bytes, or a "
            "frame"
        )
    for number, content in enumerate(sample, 1):
        try:
            yield make_message(content)
        except (TypeError, ValueError, RecursionError) as e:
            raise StreamerError(
                f"message {number} is {_describe(content)}, which has no form as JSON: {e}"
            ) from None


def _describe(value: Any) -> str:
    return f"an object of the type {type(value).__name__}"


def _read_frame(frame: Any) -> Iterator[Message]:
    import pyarrow as pa

    from streamer.connectors.tables.batch_table import make_row_documents

    try:
        table = frame if isinstance(frame, pa.Table) else pa.table(frame)
        documents = make_row_documents(table)
    except (ValueError, TypeError, pa.ArrowException) as e:
        raise StreamerError(f"the frame has no form as messages: {e}") from None
    for document in documents:
        yield Message.from_value(document)
