"""Bundle for a driver on another machine: the config's files, and the command to run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from streamer.cli.options import Options
from streamer.config import Config
from streamer.config.placeholders import find_variables
from streamer.config.references import variable_name
from streamer.config.templates.template import INSTALLED_TEMPLATES
from streamer.connectors.secrets.lookup import URNS_VARIABLE, current_lookup
from streamer.plan.required_packages import list_requirements

if TYPE_CHECKING:
    from streamer.cli.service import ServiceOptions

_ROOT_FILE: Final = "service.yaml"
_STREAMS_DIRECTORY: Final = "streams"


@dataclass(frozen=True, slots=True)
class DriverBundle:
    """A command, and the files that it needs.

    Attributes:
        arguments: those of the program.
        files: texts, by their names below the directory of all of them.
        imported: files that mappings import, by their paths below the working directory.
        variables: the environment variables that mappings have read.
        requirements: packages that code of the configs needs.
    """

    arguments: tuple[str, ...]
    files: Mapping[str, str]
    imported: Mapping[str, bytes]
    variables: frozenset[str] = frozenset()
    requirements: tuple[str, ...] = ()

    def collect_variables(self) -> dict[str, str]:
        """Return the environment variables that the files and mappings ask for."""
        names = {
            variable_name(variable)
            for text in self.files.values()
            for variable in find_variables(text)
        }
        urns = current_lookup().urns
        names |= self.variables | _find_store_variables(urns)
        variables = {name: os.environ[name] for name in sorted(names) if name in os.environ}
        return {**variables, URNS_VARIABLE: " ".join(urns)} if urns else variables


def _find_store_variables(urns: Iterable[str]) -> set[str]:
    """Return the variables of stores of secrets that tell a driver where, and are no secrets.

    A driver logs in by itself: a token of this machine does not go into a file of the checkpoint.
    """
    names = set()
    for urn in map(urlsplit, urns):
        if urn.scheme.startswith("vault"):
            names |= {"VAULT_NAMESPACE"} if urn.netloc else {"VAULT_NAMESPACE", "VAULT_ADDR"}
            if "auth=approle" in urn.query:
                names.add("VAULT_ROLE_ID")
    return names


def bundle_config(config: Config, options: Options, name: str, prefix: str = "") -> DriverBundle:
    """Return what a run of a config takes along.

    Args:
        config: the config.
        options: what the command line says of it, all but its checkpoint.
        name: what the stream is called.
        prefix: stands before the names of files in the arguments.

    Raises:
        OSError: a file has gone.
    """
    files = {f"{name}.yaml": config.text}
    shared = _add_shared_files(options.resources, files, prefix)
    arguments = ["run", f"{prefix}{name}.yaml", *shared, *_format_options(options)]
    return _make_bundle(arguments, files, [config])


def bundle_service(
    options: ServiceOptions, root: Config, streams: Mapping[str, str], configs: Iterable[Config]
) -> DriverBundle:
    """Return what a service takes along.

    Args:
        options: what the command line says of it, all but its checkpoints.
        root: its own config.
        streams: the files of its streams, by their ids.
        configs: the configs of its streams.

    Raises:
        OSError: a file has gone.
    """
    files = {
        f"{_STREAMS_DIRECTORY}/{id}.yaml": Path(path).read_text() for id, path in streams.items()
    }
    if root.path:
        files[_ROOT_FILE] = root.text
    arguments = [
        "streams",
        *(("-o", _ROOT_FILE) if root.path else ()),
        *_add_shared_files(options.resources, files, ""),
        *_format_options(
            Options(sets=options.sets, log_level=options.level, chilled=options.chilled)
        ),
        *(() if options.api else ("--no-api",)),
        *(() if options.prefixed else ("--prefix-stream-endpoints", "false")),
        *(("--allow-programs",) if options.programs else ()),
        *(("--allow-python",) if options.python else ()),
        *(("--allow-local",) if options.local else ()),
        *("--restarts", str(options.restarts)),
        *(("--standby",) if options.standby else ()),
        *((_STREAMS_DIRECTORY,) if streams else ()),
    ]
    return _make_bundle(arguments, files, [root, *configs])


def _add_shared_files(resources: Iterable[str], files: dict[str, str], prefix: str) -> list[str]:
    """Add files of resources and templates; return the arguments that name them."""
    templates = dict.fromkeys(template.file for template in INSTALLED_TEMPLATES.get({}).values())
    arguments = []
    for option, paths in (("-r", resources), ("-t", templates)):
        for number, path in enumerate(paths):
            copy = f"{option[1:]}{number}-{Path(path).name}"
            files[copy] = Path(path).read_text()
            arguments += [option, f"{prefix}{copy}"]
    return arguments


def _format_options(options: Options) -> list[str]:
    return [
        *(word for text in options.sets for word in ("-s", text)),
        *(("--log.level", options.log_level) if options.log_level else ()),
        *(("--chilled",) if options.chilled else ()),
        *(("--no-impure",) if options.impure is False else ()),
    ]


def _make_bundle(
    arguments: Iterable[str], files: Mapping[str, str], configs: Iterable[Config]
) -> DriverBundle:
    """Return the bundle of a command, with what the mappings of its configs have read."""
    configs = list(configs)
    here, imported = Path.cwd(), dict[str, bytes]()
    variables: set[str] = set()
    for config in configs:
        variables |= config.inputs.variables.keys()
        for path in map(Path, config.inputs.files):
            if path.is_relative_to(here) and path.is_file():
                imported[str(path.relative_to(here))] = path.read_bytes()
    requirements = list_requirements(*configs)
    return DriverBundle(tuple(arguments), files, imported, frozenset(variables), requirements)
