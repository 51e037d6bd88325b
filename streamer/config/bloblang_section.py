"""The section `bloblang`: modules with functions and methods for the mappings of a config."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streamer.bloblang.environment import current_inputs
from streamer.config.nodes import Mapping, Scalar, Sequence
from streamer.config.read_context import ReadContext
from streamer.connectors.python.modules import read_modules
from streamer.core.permissions import current_permissions
from streamer.sdk.spec import Access, BadTextError, Field, ParsedFields, SourcedText

SECTION: Final = "bloblang"
FUNCTIONS: Final = "functions"
_CODE: Final = "bad_python"


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.strip().split("."))


def _check_modules(names: Iterable[str]) -> str | None:
    bad = next((name for name in names if not _is_module(name)), None)
    if bad is None:
        return None
    return f"has {bad!r}; expected names of modules, such as package.module"


BLOBLANG_SECTION: Final = Field(
    SECTION,
    "object",
    "Functions and methods in Python for the mappings of this config.",
    optional=True,
    advanced=True,
    children=(
        Field(
            FUNCTIONS,
            "string",
            "Modules, as `package.module`, beside the config or installed. Their functions with "
            "the decorators `bloblang_function` and `bloblang_method` of `streamer.sdk` can be "
            "called in every mapping; see [Python in a pipeline](python.md).",
            default=(),
            shape="array",
            access=Access.PYTHON,
            check=_check_modules,
            examples=(["shop.prices"],),
        ),
    ),
)


def load_functions(context: ReadContext, root: Mapping) -> None:
    """Load the functions of a config, before its mappings are read.

    What is wrong becomes a finding. Nothing is loaded where Python is not permitted: another
    finding says so.
    """
    items = [one for one in _find_items(root) if _is_module(one.text)]
    permissions = current_permissions()
    if not items or not permissions.python:
        return
    # Imported here: few configs name functions.
    from streamer.connectors.python.mapping_functions import ModuleError, load_extension

    texts: list[SourcedText] = []
    try:
        for item in items:
            line = item.source.locate(item.start).line
            name = item.text.strip()
            texts.append(
                read_modules(name, item.source.name, [line], [name], local=permissions.local)
            )
        extension = load_extension(texts)
    except BadTextError as e:
        context.findings.add_at(items[len(texts)], _CODE, f"{FUNCTIONS} {e.message}")
        return
    except ModuleError as e:
        context.findings.add_at(items[e.place], _CODE, f"{FUNCTIONS} {e}")
        return
    current_inputs().extension = extension


def add_sources(parsed: ParsedFields | None) -> ParsedFields | None:
    """Return the section with the files of its modules, by which a change of code is seen."""
    extension = current_inputs().extension
    if parsed is None or not extension.source:
        return parsed
    (modules,) = extension.source
    return ParsedFields({**parsed, FUNCTIONS: tuple(modules)}, {FUNCTIONS: parsed.place(FUNCTIONS)})


def _find_items(root: Mapping) -> list[Scalar]:
    """Return the names of modules as they are written."""
    _, section = root.entries.get(SECTION, (None, None))
    if not isinstance(section, Mapping):
        return []
    _, names = section.entries.get(FUNCTIONS, (None, None))
    items = names.items if isinstance(names, Sequence) else [names]
    return [item for item in items if isinstance(item, Scalar)]
