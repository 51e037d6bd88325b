"""The `file` input: messages of files, read once from the first to the last, as Benthos does.

Every micro-batch takes the next bytes of the files in the order of `paths`, cut at the ends of
messages, and the workers read them themselves: of lines several pieces of a file in parallel, of
anything else several files.
"""

from __future__ import annotations

from typing import Final

from streamer.connectors.files.file_fields import DELETE_FIELD, PATHS, paths_field
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.locations.file_input import URLS, location_problems, make_file_input
from streamer.connectors.locations.stores import location_packages
from streamer.connectors.objects.object_source import ObjectSource
from streamer.sdk.spec import BuildContext, Example, Kind, ParsedFields, Spec
from streamer.sdk.spec.on_replaced import REPLACED_FIELD
from streamer.sdk.spec.scanner_fields import SCANNER_FIELDS, build_scanner

SPEC: Final = Spec(
    kind=Kind.INPUT,
    name="file",
    summary="Reads files once, in the order of the paths, and cuts them into messages.",
    description=(
        "Adds the metadata `path`, `mod_time_unix` (seconds) and `mod_time` (RFC 3339) to "
        "each message. The checkpoint has the positions: a restart continues there. A part "
        "that a scanner cannot read is logged as an error, and the rest of that file is "
        f"skipped. {URLS}"
    ),
    fields=(
        paths_field("jsonl", "./data/*.jsonl"),
        DELETE_FIELD,
        REPLACED_FIELD,
        *SCANNER_FIELDS,
    ),
    check=location_problems,
    examples=(
        Example(
            "A directory of CSV files",
            "input:\n  file:\n    paths: [ ./data/*.csv ]\n    scanner:\n      csv: {}\n",
        ),
        Example(
            "Lines of objects in S3",
            "input:\n  file:\n    paths: [ 's3://events/2026/**/*.jsonl' ]\n",
        ),
    ),
    categories=("Local",),
    runs="worker",
    delivery="exactly once: read again from the same offsets",
    requires=location_packages(PATHS),
)


def build(parsed: ParsedFields, context: BuildContext) -> FileSource | ObjectSource:
    """Make the input; its files are listed by `open`, when the stream starts."""
    return make_file_input(parsed, context, build_scanner(parsed, context))
