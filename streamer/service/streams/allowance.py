"""What configs that come by API may ask of this machine: neither its programs nor its files.

Whoever may deploy streams could otherwise do here whatever this program can: run commands, read
keys, write into home directories. So these are off unless the command line allows them. Configs
of files are those of the machine's own people, and may do all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from streamer import catalog
from streamer.bloblang import shut
from streamer.config import Config
from streamer.config.placeholders import find_variables
from streamer.errors import Lint
from streamer.spec import Field, Kind, Parsed, ParsedComponent
from streamer.spec.inside import inside

PROGRAMS: Final = frozenset({"command", "subprocess"})
"""Components that run programs, of whatever kind."""

FILES: Final = frozenset(
    {
        (Kind.INPUT, "file"),
        (Kind.INPUT, "csv"),
        (Kind.INPUT, "parquet"),
        (Kind.OUTPUT, "file"),
        (Kind.CACHE, "file"),
    }
)
"""Components that read or write files."""

FILE_FIELDS: Final = frozenset(
    {
        "cert_file",
        "key_file",
        "root_cas_file",
        "private_key_file",
        "init_files",
        "pattern_paths",
        "schema_path",
    }
)
"""Fields of other components that name files."""

# What these take over HTTP while they run is not looked at by anybody.
_UNSEEN: Final = frozenset({"dynamic"})
_FILE_DATABASES: Final = frozenset({"sqlite", "duckdb"})

_PROGRAMS_HINT: Final = "start the service with --allow-programs"
_LOCAL_HINT: Final = "start the service with --allow-local"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What configs that come by API may do.

    Attributes:
        programs: run programs.
        local: read and write files, and see the environment.
    """

    programs: bool = False
    local: bool = False

    def compiling(self) -> AbstractContextManager[None]:
        """Return what a config's mappings are compiled in."""
        return nullcontext() if self.local else shut()

    def of_text(self, text: str, name: str) -> Iterator[Lint]:
        """Return the findings about a config's text, before anything is put into it."""
        if not self.local:
            for variable in find_variables(text):
                line = text.count("\n", 0, variable.start) + 1
                column = variable.start - (text.rfind("\n", 0, variable.start) + 1) + 1
                yield Lint(
                    name,
                    line,
                    column,
                    "not_allowed",
                    f"the environment variable {variable.name} is out of reach for configs that "
                    "come by API",
                    _LOCAL_HINT,
                )

    def of_config(self, config: Config) -> Iterator[Lint]:
        """Return the findings about what a config is made of."""
        roots = (config.input, config.buffer, *config.processors, config.output)
        # Resources of the service are looked at where they come from.
        own = (one for one in config.resources.values() if one.file == config.path)
        seen: set[int] = set()
        for root in (*roots, *own):
            yield from self._of_component(root, seen)

    def _of_component(self, component: ParsedComponent, seen: set[int]) -> Iterator[Lint]:
        if id(component) in seen:
            return
        seen.add(id(component))
        for message, hint in self._problems(component):
            place = (component.line, component.column)
            yield Lint(component.file, *place, "not_allowed", message, hint)
        for child in (*component.processors, *inside(component)):
            yield from self._of_component(child, seen)

    def _problems(self, component: ParsedComponent) -> Iterator[tuple[str, str]]:
        name, what = component.name, f"{component.kind} {component.name}"
        off = "is off for configs that come by API"
        if name in PROGRAMS and not self.programs:
            yield f"{what} runs programs, which {off}", _PROGRAMS_HINT
        if name in _UNSEEN and not (self.programs and self.local):
            hint = "start the service with --allow-programs and --allow-local"
            yield f"{what} takes configs that nobody looks at, which {off}", hint
        if self.local:
            return
        if (component.kind, name) in FILES:
            yield f"{what} works with files of the service's machine, which {off}", _LOCAL_HINT
        config = component.config
        if isinstance(config, Parsed) and config.get("driver") in _FILE_DATABASES:
            yield f"{what} opens a database in a file, which {off}", _LOCAL_HINT
        spec = catalog.spec(component.kind, name)
        for field in _file_fields(spec.fields if spec is not None else (), config):
            yield f"field {field} of {what} names a file, which {off}", _LOCAL_HINT


def _file_fields(fields: tuple[Field, ...], value: Any) -> Iterator[str]:
    """Return the fields that name files, by their dotted paths."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(item, Mapping):
            continue
        for field in fields:
            inner = item.get(field.name)
            if field.shape == "map" and isinstance(inner, Mapping):
                inner = list(inner.values())
            if field.name in FILE_FIELDS and inner:
                yield field.name
            for path in _file_fields(field.children, inner):
                yield f"{field.name}.{path}"
