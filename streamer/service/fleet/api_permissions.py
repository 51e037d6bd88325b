"""Permissions of configs that come by API: neither this machine's programs nor its files.

Whoever may deploy streams could otherwise do here whatever this program can: run commands, read
keys, write into home directories. So these are off unless the command line allows them. Configs
of files are those of the machine's own people, and may do all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from streamer.components import catalog
from streamer.config import Config
from streamer.config.placeholders import find_variables
from streamer.config.references import describe_reference
from streamer.config.sections import SECTIONS
from streamer.core.errors import Lint
from streamer.core.permissions import Permissions
from streamer.sdk.spec import ParsedComponent
from streamer.sdk.spec.children import child_components
from streamer.sdk.spec.machine_access import component_access_problems, fields_access_problems

SERVICE_SPARK_FIELDS: Final = ("master", "environment", "conf", "checkpoint")
"""The fields of the section `spark` that a stream takes from the service, whatever it says."""

_LOCAL_HINT: Final = "start the service with --allow-local"


@dataclass(frozen=True, slots=True)
class ApiPermissions:
    """The permissions of configs that come by API.

    Attributes:
        programs: run programs.
        local: read and write files, see the environment, and look up secrets.
        python: run code in Python.
    """

    programs: bool = False
    local: bool = False
    python: bool = False

    @property
    def component_permissions(self) -> Permissions:
        """The permissions of such configs' components, wherever they are built."""
        return Permissions(self.local, self.programs, self.python)

    def lint_text(self, text: str, name: str) -> Iterator[Lint]:
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
                    f"{describe_reference(variable)} is out of reach for configs that come by API",
                    _LOCAL_HINT,
                )

    def lint_config(self, config: Config) -> Iterator[Lint]:
        """Return the findings about what a config is made of."""
        roots = (*config.components, config.output)
        # Resources of the service are looked at where they come from.
        own = (one for one in config.resources.values() if one.file == config.path)
        seen: set[int] = set()
        for root in (*roots, *own):
            yield from self._lint_component(root, seen)
        spark = {
            name: config.spark[name] for name in config.spark if name not in SERVICE_SPARK_FIELDS
        }
        for message, hint in fields_access_problems(
            SECTIONS,
            {"spark": spark, "redpanda": config.redpanda},
            "the config",
            self.component_permissions,
        ):
            yield Lint(config.path, 0, 0, "not_allowed", message, hint)

    def _lint_component(self, component: ParsedComponent, seen: set[int]) -> Iterator[Lint]:
        if id(component) in seen:
            return
        seen.add(id(component))
        spec = catalog.find_spec(component.kind, component.name)
        for message, hint in component_access_problems(component, spec, self.component_permissions):
            place = (component.line, component.column)
            yield Lint(component.file, *place, "not_allowed", message, hint)
        for child in (*component.processors, *child_components(component)):
            yield from self._lint_component(child, seen)
