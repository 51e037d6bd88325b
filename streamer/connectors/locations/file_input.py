"""Inputs of files, whose paths may be URLs of objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from streamer.connectors.files.file_fields import DELETE_ON_FINISH, PATHS, make_source
from streamer.connectors.files.file_source import FileSource
from streamer.connectors.locations.pattern_store import PatternStore
from streamer.connectors.locations.ranged_file import open_ranged
from streamer.connectors.objects.object_source import ObjectSource
from streamer.core.locations import is_location, location_problem
from streamer.sdk.input.scanning import (
    MAX_CUT_MESSAGES,
    START_MARK,
    ScanInput,
    ScanMark,
    ScannedCut,
    Scanner,
    expansion_of,
)
from streamer.sdk.spec import BuildContext, ParsedFields
from streamer.sdk.spec.on_replaced import FIELD_ON_REPLACED, RESTART

URLS: Final = (
    "A path may be a URL of an object or a glob of objects: see [Places](../../places.md)."
)
"""The part of a page that says that paths may be URLs."""


def location_problems(parsed: ParsedFields) -> Iterator[tuple[str, str]]:
    """Give what is wrong with paths of which some are URLs."""
    paths = parsed[PATHS]
    if not paths:
        yield PATHS, "is an empty list; expected at least one path or glob"
    urls = [path for path in paths if is_location(path)]
    for url in urls:
        if problem := location_problem(url):
            yield PATHS, problem
    if urls and len(urls) < len(paths):
        yield (
            PATHS,
            "has paths of files beside URLs of objects; use an input for each, in a broker or a "
            "sequence",
        )


def has_locations(parsed: ParsedFields) -> bool:
    """Return whether the paths of an input are URLs."""
    return any(map(is_location, parsed[PATHS]))


def make_file_input(
    parsed: ParsedFields, context: BuildContext, scanner: Scanner, *, seeks: bool = False
) -> FileSource | ObjectSource:
    """Make an input of files or objects.

    Args:
        parsed: has the paths.
        context: keeps clients of stores.
        scanner: cuts them into messages.
        seeks: whether the scanner reads a file anywhere, and not from its beginning on.
    """
    if not has_locations(parsed):
        return make_source(parsed, scanner)
    store = PatternStore(parsed[PATHS], parsed.permissions, context.deferred_worker_resource)
    return ObjectSource(
        store,
        SeekingScanner(scanner, store) if seeks else scanner,
        deletes=parsed.get(DELETE_ON_FINISH, False),
        stops_on_replaced=parsed[FIELD_ON_REPLACED] != RESTART,
    )


@dataclass(frozen=True)
class SeekingScanner:
    """Gives a scanner objects that it can read anywhere.

    Attributes:
        scanner: cuts them.
        store: has them.
    """

    scanner: Scanner
    store: PatternStore

    @property
    def expansion(self) -> int:
        """About how many bytes are in one of an object."""
        return expansion_of(self.scanner)

    def scan_stream(
        self, source: ScanInput, since: ScanMark = START_MARK, max_messages: int = MAX_CUT_MESSAGES
    ) -> Iterator[ScannedCut]:
        """Cut an object; see `Scanner`."""
        with closing(open_ranged(self.store, source.name, source.ex)) as file:
            anywhere = replace(source, stream=file)
            yield from self.scanner.scan_stream(anywhere, since, max_messages)
