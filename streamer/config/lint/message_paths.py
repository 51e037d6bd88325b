"""Whether a message says where a file goes, with nothing that holds it back."""

from __future__ import annotations

from collections.abc import Iterator

from streamer.bloblang import BloblangError, compile_interpolation
from streamer.config.read_context import ReadContext
from streamer.core.errors import Lint
from streamer.sdk.spec import Kind, ParsedComponent, ParsedFields
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.component import Resources


def check_message_paths(context: ReadContext, parsed: ParsedFields, resources: Resources) -> None:
    """Add a warning about each output `file` whose path a message makes, without a `base`.

    Args:
        context: gets the findings.
        parsed: the config's top level.
        resources: by kind and label.
    """
    output = parsed["output"]
    for component in (*([output] if output is not None else []), *resources.values()):
        for one in _find_outputs(component):
            config = one.config
            if (
                one.name == "file"
                and not config.get("base")
                and _depends_on_message(config.get("path"))
            ):
                line, column = config.place("path")
                message = (
                    "the message says in path which file is written, and `../` in it leads to "
                    "any file of the machine"
                )
                hint = "set base to the directory that no path is to leave"
                lint = Lint(one.file, line, column, "message_path", message, hint)
                context.findings.add(lint)


def _find_outputs(component: ParsedComponent) -> Iterator[ParsedComponent]:
    if component.kind == Kind.OUTPUT and isinstance(component.config, ParsedFields):
        yield component
    for child in child_components(component):
        yield from _find_outputs(child)


def _depends_on_message(path: object) -> bool:
    if not isinstance(path, str):
        return False  # What is wrong with it has been said.
    try:
        uses = compile_interpolation(path).uses
    except BloblangError:
        return False
    return uses.document or uses.content or uses.meta or uses.error
