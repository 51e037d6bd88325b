"""The `file` input: messages of files, read once from the first to the last, as Benthos does.

Every micro-batch takes the next bytes of the files in the order of `paths`, cut at the ends of
messages, and the workers read them themselves: of lines several pieces of a file in parallel, of
anything else several files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamer.connectors.files.file_source import FileSource
from streamer.sdk.spec import Access, BuildContext, Example, Field, Kind, ParsedFields, Spec
from streamer.sdk.spec.on_replaced import FIELD_ON_REPLACED, REPLACED_FIELD, RESTART
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

FIELD_PATHS: Final = "paths"
FIELD_DELETE_ON_FINISH: Final = "delete_on_finish"


def _check(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    if not parsed[FIELD_PATHS]:
        yield FIELD_PATHS, "is an empty list; expected at least one path or glob"


SPEC: Final = Spec(
    kind=Kind.INPUT,
    name="file",
    summary="Reads files once, in the order of the paths, and cuts them into messages.",
    description=(
        "Adds the metadata `path`, `mod_time_unix` (seconds) and `mod_time` (RFC 3339) to each "
        "message. Positions are kept in the checkpoint: a restart goes on where it was. What a "
        "scanner cannot read is logged as an error, and the rest of that file is left out."
    ),
    fields=(
        Field(
            FIELD_PATHS,
            "string",
            "Paths of files, or globs such as `./data/*.jsonl` (`**` goes into directories).",
            access=Access.FILE,
            shape="array",
            examples=(("./data/*.jsonl",),),
        ),
        Field(
            FIELD_DELETE_ON_FINISH,
            "bool",
            "Delete a file once all of it is safe in the checkpoint.",
            default=False,
            advanced=True,
        ),
        REPLACED_FIELD,
        *SCANNER_FIELDS,
    ),
    check=_check,
    examples=(
        Example(
            "A directory of CSV files",
            "input:\n  file:\n    paths: [ ./data/*.csv ]\n    scanner:\n      csv: {}\n",
        ),
    ),
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
)


def build(parsed: ParsedFields, context: BuildContext) -> FileSource:
    """Make the input; its files are listed by `opened`, when the stream starts."""
    scanner = build_scanner(parsed, context)
    paths, delete = tuple(parsed[FIELD_PATHS]), parsed[FIELD_DELETE_ON_FINISH]
    restarts = parsed[FIELD_ON_REPLACED] == RESTART
    return FileSource(paths, scanner, delete, permissions=parsed.permissions, restarts=restarts)
