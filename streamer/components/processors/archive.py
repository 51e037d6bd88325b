"""`archive`: puts all messages of a batch into one.

It "archives all the messages of a batch into a single message according to the selected archive
format". That message has the metadata of the batch's first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.connectors.formats.archives import Item, write_binary, write_tar, write_zip
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch, Message
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec

FORMAT: Final = "format"
PATH: Final = "path"

_JOINING_FORMATS: Final[Mapping[str, Callable[[list[bytes]], bytes]]] = {
    "binary": write_binary,
    "concatenate": b"".join,
    "lines": b"\n".join,
}
_PATH_FORMATS: Final[Mapping[str, Callable[[list[Item], int], bytes]]] = {
    "tar": write_tar,
    "zip": write_zip,
}
FORMATS: Final = (*_JOINING_FORMATS, "json_array", *_PATH_FORMATS)

SPEC: Final = Spec(
    Kind.PROCESSOR,
    "archive",
    "Puts all messages of a batch into one message.",
    description=(
        "`concatenate` puts the payloads behind one another, `lines` with a line break between, "
        "`binary` each with its length before it; `json_array` makes an array of the documents, "
        "`tar` and `zip` an archive with a file for each. To go back use `unarchive`, and `split` "
        "behind it."
    ),
    fields=(
        Field(FORMAT, "string", "The format.", options=FORMATS),
        Field(
            PATH,
            "string",
            "The path of each message in a `tar` or `zip`. Paths should differ.",
            access=Access.NONE,
            default="",
            interpolated=True,
            examples=('${! count("files") }-${! timestamp_unix_nano() }.txt', "${! this.id }.json"),
        ),
    ),
    examples=(
        Example(
            "A file for each document",
            "pipeline:\n"
            "  processors:\n"
            "    - archive:\n"
            "        format: tar\n"
            "        path: ${! this.doc.id }.json\n",
        ),
    ),
    limits="the archive has to fit into a worker's memory",
    categories=("Parsing", "Utility"),
)


class ArchiveProcessor:
    """Makes one message of a batch."""

    def __init__(self, form: str, path: Interpolation, origin: ComponentRef) -> None:
        """Take the format and the path, and who speaks."""
        self._form = form
        self._path = path
        self._origin = origin

    def process(self, batch: Batch, ex: Execution) -> list[Batch]:
        """Return a batch of one; on failure the batch as it was, every message marked."""
        first = batch[0]
        try:
            if self._form == "json_array":
                documents: list[Any] = [message.doc for message in batch]
                return [[first.with_doc(documents)]]
            return [[first.with_bytes(self._pack(batch, ex))]]
        except MessageError as error:
            line = f"Failed to create archive: {error}"
            failed = [self._origin.fail(first, str(error), ex, line)]
            mark = failed[0].error
            return [failed + [message.with_error(mark) for message in batch[1:]]]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Make one of each message that is a batch by itself."""
        return [made for message in messages for [made] in self.process([message], ex)]

    def _pack(self, batch: Batch, ex: Execution) -> bytes:
        joined = _JOINING_FORMATS.get(self._form)
        if joined is not None:
            return joined([message.raw for message in batch])
        items = [(self._file_name(batch, at, ex), message.raw) for at, message in enumerate(batch)]
        return _PATH_FORMATS[self._form](items, ex.now())

    def _file_name(self, batch: list[Message], index: int, ex: Execution) -> str:
        try:
            return self._path.text_of(batch, index, ex)
        except MessageError as error:
            self._origin.log(ex, "ERROR", f"Name interpolation error: {error}")
            return ""


def build(parsed: ParsedFields, context: BuildContext) -> ArchiveProcessor:
    """Compile the path."""
    path = compile_interpolation(parsed[PATH])
    return ArchiveProcessor(parsed[FORMAT].lower(), path, ComponentRef(context.component))
