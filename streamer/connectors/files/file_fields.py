"""Fields of the inputs that read files, and the source that they describe."""

from __future__ import annotations

from typing import Final

from streamer.connectors.files.file_source import FileSource
from streamer.sdk.input.scanning import Scanner
from streamer.sdk.spec import Access, Field, ParsedFields
from streamer.sdk.spec.on_replaced import FIELD_ON_REPLACED, RESTART

PATHS: Final = "paths"
DELETE_ON_FINISH: Final = "delete_on_finish"
BATCH_COUNT: Final = "batch_count"


def paths_field(ending: str, *examples: str) -> Field:
    """Return the field of the files' paths.

    Args:
        ending: of the files, for the description.
        examples: a list of paths.
    """
    return Field(
        PATHS,
        "string",
        f"Paths of files, or globs such as `./data/*.{ending}` (`**` goes into directories).",
        access=Access.FILE,
        shape="array",
        examples=(examples,),
    )


DELETE_FIELD: Final = Field(
    DELETE_ON_FINISH,
    "bool",
    "Delete a file once all of it is safe in the checkpoint.",
    default=False,
    advanced=True,
)

BATCH_COUNT_FIELD: Final = Field(
    BATCH_COUNT,
    "int",
    "The rows of a batch; the last one of a file may be smaller.",
    default=1,
    advanced=True,
    check=lambda count: None if count >= 1 else f"is {count}; expected 1 or more",
)


def make_source(parsed: ParsedFields, scanner: Scanner) -> FileSource:
    """Make the input; its files are listed by `open`, when the stream starts."""
    return FileSource(
        tuple(parsed[PATHS]),
        scanner,
        parsed.get(DELETE_ON_FINISH, False),
        permissions=parsed.permissions,
        restarts=parsed[FIELD_ON_REPLACED] == RESTART,
    )
