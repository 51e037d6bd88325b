"""`archive`: puts all messages of a batch into one.

It "archives all the messages of a batch into a single message according to the selected archive
format". That message has the metadata of the batch's first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from streamer.bloblang import Interpolation, compile_interpolation
from streamer.errors import MessageError
from streamer.failure import Origin
from streamer.formats.archives import Item, write_binary, write_tar, write_zip
from streamer.message import Batch, Execution, Message
from streamer.spec import Access, BuildContext, Example, Field, Kind, Parsed, Spec

FORMAT: Final = "format"
PATH: Final = "path"

_JOINED: Final[Mapping[str, Callable[[list[bytes]], bytes]]] = {
    "binary": write_binary,
    "concatenate": b"".join,
    "lines": b"\n".join,
}
_WITH_PATHS: Final[Mapping[str, Callable[[list[Item], int], bytes]]] = {
    "tar": write_tar,
    "zip": write_zip,
}
FORMATS: Final = (*_JOINED, "json_array", *_WITH_PATHS)

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

    def __init__(self, form: str, path: Interpolation, origin: Origin) -> None:
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
            return [[first.with_bytes(self._bytes(batch, ex))]]
        except MessageError as error:
            line = f"Failed to create archive: {error}"
            failed = [self._origin.fail(first, str(error), ex, line)]
            mark = failed[0].error
            return [failed + [message.with_error(mark) for message in batch[1:]]]

    def process_each(self, messages: list[Message], ex: Execution) -> list[Message]:
        """Make one of each message that is a batch by itself."""
        return [made for message in messages for [made] in self.process([message], ex)]

    def _bytes(self, batch: Batch, ex: Execution) -> bytes:
        joined = _JOINED.get(self._form)
        if joined is not None:
            return joined([message.raw for message in batch])
        items = [(self._name(batch, at, ex), message.raw) for at, message in enumerate(batch)]
        return _WITH_PATHS[self._form](items, ex.now())

    def _name(self, batch: list[Message], index: int, ex: Execution) -> str:
        try:
            return self._path.text_of(batch, index, ex)
        except MessageError as error:
            self._origin.log(ex, "ERROR", f"Name interpolation error: {error}")
            return ""


def build(parsed: Parsed, context: BuildContext) -> ArchiveProcessor:
    """Compile the path."""
    path = compile_interpolation(parsed[PATH])
    return ArchiveProcessor(parsed[FORMAT].lower(), path, Origin(context.component))
