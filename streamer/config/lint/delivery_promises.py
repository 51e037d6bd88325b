"""Lints where in an output tree `transactional` and `dedupe_headers` are allowed.

`transactional` is about all that a task sends, so that nothing may stand around it; the numbers of
`dedupe_headers` are given at the end of the pipeline, and must be the messages' still.
"""

from __future__ import annotations

from typing import Final

from streamer.config.nodes import Mapping
from streamer.config.read_context import ReadContext
from streamer.core.errors import Lint
from streamer.sdk.processing.batching import BATCHING, PROCESSORS
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources

_TRANSACTIONAL_FIELD: Final = "transactional"
_DEDUPE_FIELD: Final = "dedupe_headers"
_RULE_CODE: Final = "output_place"


def check_delivery_promises(
    context: ReadContext, root: Mapping, parsed: ParsedFields, resources: Resources
) -> None:
    """Add a finding for each output that could not keep what it promises where it stands.

    Args:
        context: gets the findings.
        root: the config's tree.
        parsed: its top level.
        resources: by kind and label.
    """
    walk = _OutputWalk(context, root, resources)
    output = parsed["output"]
    if output is not None:
        walk.visit(output, at_end=True, renumbered="")
    for (kind, _), resource in resources.items():
        if kind == Kind.OUTPUT:
            walk.visit(resource, at_end=False, renumbered="")


class _OutputWalk:
    def __init__(self, context: ReadContext, root: Mapping, resources: Resources) -> None:
        self._findings = context.findings
        self._file = root.source.name
        self._resources = resources
        self._reported: set[tuple[str, str]] = set()
        self._open_resources: set[str] = set()

    def visit(self, output: ParsedComponent, *, at_end: bool, renumbered: str) -> None:
        """Check an output and those inside of it.

        Args:
            output: the output.
            at_end: whether it is the stream's own.
            renumbered: the output around it whose processors change messages; empty for none.
        """
        if output.name == "resource":
            resource = self._resources.get((Kind.OUTPUT, str(output.config)))
            if resource is not None and resource.path not in self._open_resources:
                self._open_resources.add(resource.path)
                self.visit(resource, at_end=False, renumbered=renumbered)
                self._open_resources.discard(resource.path)
            return
        if not isinstance(output.config, ParsedFields):
            self._visit_children(output, renumbered)
            return
        if output.config.get(_TRANSACTIONAL_FIELD) is True and not at_end:
            self._report(
                output,
                f"field {_TRANSACTIONAL_FIELD}: {output.name} is not the stream's `output` itself, "
                "and what stands around it could send messages elsewhere that are taken back here",
                "write it under `output`, with nothing around it, or take dedupe_headers",
            )
        if output.config.get(_DEDUPE_FIELD) is True and renumbered:
            self._report(
                output,
                f"field {_DEDUPE_FIELD}: the processors of {renumbered} change the messages on "
                f"their way to {output.name}, and the numbers of what they make would not be their "
                "own",
                "put the processors into pipeline.processors, or beside the stream's output",
            )
        self._visit_children(output, renumbered)

    def _visit_children(self, output: ParsedComponent, renumbered: str) -> None:
        batching = output.config.get(BATCHING) if isinstance(output.config, ParsedFields) else None
        if isinstance(batching, ParsedFields) and batching.get(PROCESSORS):
            renumbered = output.name
        for child in child_components(output):
            if child.kind == Kind.OUTPUT:
                own = child.name if child.processors else renumbered
                self.visit(child, at_end=False, renumbered=own)

    def _report(self, output: ParsedComponent, message: str, suggestion: str) -> None:
        if (output.path, message) not in self._reported:
            self._reported.add((output.path, message))
            place = self._file, output.line, output.column
            self._findings.add(Lint(*place, _RULE_CODE, message, suggestion))
