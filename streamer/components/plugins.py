"""Plugins: components of other packages, which are loaded when a config names one.

A plugin is what an entry point of `entry_points.GROUP` refers to, usually a module: it has `SPEC`,
`build(parsed, context)`, and `API_VERSION`, the version of `streamer.sdk` that it was built for.
One that cannot be loaded is left out, and reported once in a process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, NamedTuple

from streamer.bloblang.plugin_functions import forget_plugin_functions, list_plugin_functions
from streamer.components.component_names import COMPONENTS
from streamer.components.plugin_index import PluginEntry, read_plugin_index
from streamer.core.errors import StreamerError
from streamer.sdk.api_version import find_version_problem
from streamer.sdk.spec import Kind, Spec

Report = Callable[[str], None]
"""Takes the reason why a plugin is left out, in a sentence."""

_MAX_REASON_CHARACTERS: Final = 300


class LoadedPlugin(NamedTuple):
    """A plugin that is loaded.

    Attributes:
        spec: its spec; its code raises nothing.
        build: makes the component, of the parsed body and the context.
    """

    spec: Spec
    build: Callable[[Any, Any], Any]


def _print_warning(text: str) -> None:
    print(f"streamer: warning: {text}", file=sys.stderr)


class _Reports:
    """Reports why plugins are left out: each once."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        with self._lock:
            if text in self.texts:
                return
            self.texts[text] = None
        _print_warning(text)


_reports: Final = _Reports()
_provided: Final[dict[tuple[Kind, str], LoadedPlugin]] = {}
_failures: Final[dict[tuple[Kind, str], str]] = {}


def report_name_problems(report: Report) -> None:
    """Report those plugins that are left out for their names; nothing is imported.

    Args:
        report: takes each reason, also one that the standard error stream has.
    """
    for text in read_plugin_index().problems:
        report(text)


def warn_of_name_problems() -> None:
    """Print a warning of each plugin that is left out for its name, once in a process."""
    for text in read_plugin_index().problems:
        _reports.add(text)


def plugin_names(kind: Kind) -> frozenset[str]:
    """Return the names of the plugins of a kind, without those that have turned out to be bad.

    Nothing is imported: a module that has not been imported yet may prove bad later.
    """
    index = read_plugin_index()
    warn_of_name_problems()
    if not index.entries and not _provided:
        return frozenset()
    known = {*index.entries, *_provided} - _failures.keys()
    return frozenset(name for of, name in known if of == kind)


def find_plugin(kind: Kind, name: str) -> LoadedPlugin | None:
    """Return a plugin, imported; None when there is none, or it is bad, which is reported."""
    if (kind, name) in _provided:
        return _provided[kind, name]
    entry = read_plugin_index().entries.get((kind, name))
    return _load_entry(entry) if entry is not None else None


@contextmanager
def provide_plugin(target: Any, distribution: str = "this process") -> Iterator[Spec]:
    """Have a plugin in this process that need not be installed, for tests of it.

    Args:
        target: the object that an entry point would refer to.
        distribution: the name of its package.

    Raises:
        StreamerError: it is bad; the text has the reason.
    """
    spec = getattr(target, "SPEC", None)
    kind, name = getattr(spec, "kind", Kind.PROCESSOR), getattr(spec, "name", "")
    problem: LoadedPlugin | str = f"{kind} {name!r} is a component of streamer itself"
    if name not in COMPONENTS[kind]:
        problem = _check_plugin(kind, name, distribution, target)
    if not isinstance(problem, LoadedPlugin):
        raise StreamerError(f"the component cannot be used: {problem}")
    before = _provided.get((kind, name))
    _provided[kind, name] = problem
    try:
        yield problem.spec
    finally:
        del _provided[kind, name]
        if before is not None:
            _provided[kind, name] = before


def describe_plugin_problem(kind: Kind, name: str) -> str:
    """Return the reason why a plugin of this name is left out; "" when there is none."""
    return _failures.get((kind, name)) or read_plugin_index().left_out.get((kind, name), "")


def list_plugin_problems() -> tuple[str, ...]:
    """Return the reasons why plugins are left out, after all were loaded."""
    index = read_plugin_index()
    for entry in index.entries.values():
        _load_entry(entry)
    return (*index.problems, *_failures.values(), *list_plugin_functions()[1])


def list_plugins() -> list[LoadedPlugin]:
    """Return all plugins that can be loaded, by kind and name."""
    entries = read_plugin_index().entries
    loaded = [_load_entry(entries[key]) for key in sorted(entries)]
    return [plugin for plugin in loaded if plugin is not None]


def forget_plugins() -> None:
    """Forget what is known of plugins, for a process in which packages come and go."""
    read_plugin_index.cache_clear()
    forget_plugin_functions()
    _load_entry.cache_clear()
    _failures.clear()
    _reports.texts.clear()


@cache
def _load_entry(entry: PluginEntry) -> LoadedPlugin | None:
    try:
        target = entry.point.load()
        plugin = _check_plugin(entry.kind, entry.name, entry.distribution, target)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        plugin = f"it cannot be imported: {' '.join(reason.split())[:_MAX_REASON_CHARACTERS]}"
    if isinstance(plugin, LoadedPlugin):
        return plugin
    of = f"{entry.kind} {entry.name!r} of the package {entry.distribution}"
    _failures[entry.kind, entry.name] = text = f"{of} is left out: {plugin}"
    _reports.add(text)
    return None


def _check_plugin(kind: Kind, name: str, distribution: str, target: Any) -> LoadedPlugin | str:
    """Return the plugin that an entry point refers to, or the reason why it is none."""
    # Imported with the first plugin only: its checks need the schema and more.
    from streamer.components.plugin_specs import find_spec_problem, guard_spec

    if problem := find_version_problem(getattr(target, "API_VERSION", None)):
        return problem
    spec = getattr(target, "SPEC", None)
    if problem := find_spec_problem(spec, kind, name):
        return problem
    build = getattr(target, "build", None)
    if not callable(build):
        return "it has no function build(parsed, context)"
    assert isinstance(spec, Spec)
    return LoadedPlugin(guard_spec(spec, distribution), _guard_build(build, spec))


def _guard_build(build: Callable[[Any, Any], Any], spec: Spec) -> Callable[[Any, Any], Any]:
    """Return the same function; an error of another type becomes one that names the plugin."""

    def build_safely(parsed: Any, context: Any) -> Any:
        try:
            return build(parsed, context)
        except (StreamerError, MemoryError):
            raise
        except Exception as error:
            text = " ".join(str(error).split())
            raise StreamerError(
                f"{spec.kind} {spec.name} cannot be built: {type(error).__name__}: {text}"
            ) from error

    return build_safely
