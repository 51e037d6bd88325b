"""Whether a message says where a file goes, with nothing that holds it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamer.bloblang import BloblangError, compile_interpolation
from streamer.config.reading import Reading
from streamer.errors import Lint
from streamer.spec import Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

Resources = Mapping[tuple[Kind, str], ParsedComponent]


def check_message_paths(reading: Reading, parsed: Parsed, resources: Resources) -> None:
    """Add a warning about each output `file` whose path a message makes, without a `base`.

    Args:
        reading: gets the findings.
        parsed: the config's top level.
        resources: by kind and label.
    """
    output = parsed["output"]
    for component in (*([output] if output is not None else []), *resources.values()):
        for one in _outputs(component):
            config = one.config
            if one.name == "file" and not config.get("base") and _is_of_message(config.get("path")):
                line, column = config.place("path")
                message = (
                    "the message says in path which file is written, and `../` in it leads to "
                    "any file of the machine"
                )
                hint = "set base to the directory that no path is to leave"
                lint = Lint(one.file, line, column, "message_path", message, hint)
                reading.findings.add(lint)


def _outputs(component: ParsedComponent) -> Iterator[ParsedComponent]:
    if component.kind == Kind.OUTPUT and isinstance(component.config, Parsed):
        yield component
    for child in inside(component):
        yield from _outputs(child)


def _is_of_message(path: object) -> bool:
    if not isinstance(path, str):
        return False  # What is wrong with it has been said.
    try:
        uses = compile_interpolation(path).uses
    except BloblangError:
        return False
    return uses.document or uses.content or uses.meta or uses.error
