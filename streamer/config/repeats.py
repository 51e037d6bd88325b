"""Where an output may stand that promises what becomes of messages which come again.

`transactional` is about all that a task sends, so that nothing may stand around it; the numbers of
`dedupe_headers` are given at the end of the pipeline, and must be the messages' still.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from typing import Final

from streamer.config.nodes import Mapping
from streamer.config.reading import Reading
from streamer.errors import Lint
from streamer.pipeline.batching import BATCHING, PROCESSORS
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

_TRANSACTIONAL: Final = "transactional"
_DEDUPE: Final = "dedupe_headers"
_CODE: Final = "output_place"

Resources = MappingType[tuple[Kind, str], ParsedComponent]


def check_repeats(reading: Reading, root: Mapping, parsed: Parsed, resources: Resources) -> None:
    """Add a finding for each output that could not keep what it promises where it stands.

    Args:
        reading: gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    walk = _Walk(reading, root, resources)
    output = parsed["output"]
    if output is not None:
        walk.go(output, at_end=True, renumbered="")
    for (kind, _), resource in resources.items():
        if kind == Kind.OUTPUT:
            walk.go(resource, at_end=False, renumbered="")


class _Walk:
    def __init__(self, reading: Reading, root: Mapping, resources: Resources) -> None:
        self._findings = reading.findings
        self._file = root.source.name
        self._resources = resources
        self._seen: set[tuple[str, str]] = set()
        self._open: set[str] = set()

    def go(self, output: ParsedComponent, *, at_end: bool, renumbered: str) -> None:
        """Look at an output and those inside of it.

        Args:
            output: the output.
            at_end: whether it is the stream's own.
            renumbered: the output around it whose processors change messages; empty for none.
        """
        if output.name == "resource":
            found = self._resources.get((Kind.OUTPUT, str(output.config)))
            if found is not None and found.path not in self._open:
                self._open.add(found.path)
                self.go(found, at_end=False, renumbered=renumbered)
                self._open.discard(found.path)
            return
        if not isinstance(output.config, Parsed):
            self._below(output, renumbered)
            return
        if output.config.get(_TRANSACTIONAL) is True and not at_end:
            self._say(
                output,
                f"field {_TRANSACTIONAL}: {output.name} is not the stream's `output` itself, and "
                "what stands around it could send messages elsewhere that are taken back here",
                "write it under `output`, with nothing around it, or take dedupe_headers",
            )
        if output.config.get(_DEDUPE) is True and renumbered:
            self._say(
                output,
                f"field {_DEDUPE}: the processors of {renumbered} change the messages on their way "
                f"to {output.name}, and the numbers of what they make would not be their own",
                "put the processors into pipeline.processors, or beside the stream's output",
            )
        self._below(output, renumbered)

    def _below(self, output: ParsedComponent, renumbered: str) -> None:
        batching = output.config.get(BATCHING) if isinstance(output.config, Parsed) else None
        if isinstance(batching, Parsed) and batching.get(PROCESSORS):
            renumbered = output.name
        for child in inside(output):
            if child.kind == Kind.OUTPUT:
                own = child.name if child.processors else renumbered
                self.go(child, at_end=False, renumbered=own)

    def _say(self, output: ParsedComponent, message: str, suggestion: str) -> None:
        if (output.path, message) not in self._seen:
            self._seen.add((output.path, message))
            place = self._file, output.line, output.column
            self._findings.add(Lint(*place, _CODE, message, suggestion))
