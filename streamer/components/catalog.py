"""The explicit list of components, and how they are built.

A component `x` of a kind is the module `streamer.<package>.x`, with a `SPEC` and a function
`build(parsed, context)`; the module of a name that Python keeps for itself ends in `_` (`try_`).
To add one, add its name to `component_names`. Modules are imported when a config first names
them, so that the command line starts fast however long the list grows. Components of other
packages are those of `plugins`; a name of ours is never theirs.
"""

from __future__ import annotations

import importlib
import keyword
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamer.components.component_names import COMPONENTS
from streamer.components.plugins import find_plugin, plugin_names
from streamer.connectors.spool.processed_source import ProcessedSource
from streamer.core.errors import StreamerError
from streamer.core.permissions import NotPermittedError, limit_permissions
from streamer.sdk.cache import CountedCache
from streamer.sdk.component_ref import ComponentRef
from streamer.sdk.deferred_resource import DeferredObject, DeferredResource
from streamer.sdk.input.input_context import DriverReadable
from streamer.sdk.output.sender import ConnectionState, Sender
from streamer.sdk.processing import UNINSTRUMENTED, instrument
from streamer.sdk.rate_limit import CountedRateLimit
from streamer.sdk.spec import BuildContext, Kind, ParsedComponent, ParsedFields, Spec
from streamer.sdk.spec.machine_access import component_access_problems
from streamer.sdk.worker_resources import WorkerResources

if TYPE_CHECKING:
    from streamer.sdk.processing.batching import BatchPolicy

T = TypeVar("T")

_WINDOWING: Final = "Windowing"

_PACKAGES: Final = {
    Kind.INPUT: "inputs",
    Kind.BUFFER: "buffers",
    Kind.PROCESSOR: "processors",
    Kind.OUTPUT: "outputs",
    Kind.CACHE: "caches",
    Kind.RATE_LIMIT: "rate_limits",
    Kind.TABLE: "tables",
    Kind.SCANNER: "scanners",
    Kind.METRICS: "metrics",
    Kind.TRACER: "tracers",
}


_REFERENCE: Final = "resource"
_WORKER_RESOURCE_KINDS: Final = frozenset({Kind.CACHE, Kind.RATE_LIMIT})
_EXTRA_SPECS: Final[ContextVar[Mapping[tuple[Kind, str], Spec]]] = ContextVar("added")


@contextmanager
def extra_components(more: Iterable[Spec]) -> Iterator[None]:
    """Have further components, which templates make, for as long as the block runs.

    One of the same kind and name as a component of ours takes its place.
    """
    token = _EXTRA_SPECS.set(
        {**_EXTRA_SPECS.get({}), **{(spec.kind, spec.name): spec for spec in more}}
    )
    try:
        yield
    finally:
        _EXTRA_SPECS.reset(token)


def component_names(kind: Kind) -> tuple[str, ...]:
    """Return the names of the components of a kind, sorted."""
    more = {name for of, name in _EXTRA_SPECS.get({}) if of == kind} | plugin_names(kind)
    return tuple(sorted({*COMPONENTS[kind], *more})) if more else COMPONENTS[kind]


def has_component(kind: Kind, name: str) -> bool:
    """Return whether there is a component of this name; a plugin's is imported for the answer."""
    return name in COMPONENTS[kind] or find_spec(kind, name) is not None


def module_name(kind: Kind, name: str) -> str:
    """Return the module that a component lives in."""
    return (
        f"streamer.components.{_PACKAGES[kind]}.{name}_"
        if keyword.iskeyword(name)
        else (f"streamer.components.{_PACKAGES[kind]}.{name}")
    )


def find_spec(kind: Kind, name: str) -> Spec | None:
    """Return the spec of a component, or None when there is none of that name."""
    return _EXTRA_SPECS.get({}).get((kind, name)) or _find_installed_spec(kind, name)


def _find_installed_spec(kind: Kind, name: str) -> Spec | None:
    """Return the spec of a component of ours, or of a plugin; None for those of templates."""
    if (own := _load_own_spec(kind, name)) is not None:
        return own
    plugin = find_plugin(kind, name)
    return plugin.spec if plugin is not None else None


def _find_builder(kind: Kind, name: str) -> Callable[[Any, _Context], Any]:
    """Return the function that builds a component.

    Raises:
        StreamerError: there is no component of this name in this process.
    """
    if name in COMPONENTS[kind]:
        build: Callable[[Any, _Context], Any] = importlib.import_module(
            module_name(kind, name)
        ).build
        return build
    plugin = find_plugin(kind, name)
    if plugin is None:
        raise StreamerError(
            f"there is no {kind} {name!r} here: the package that provides it is not installed on "
            "this machine, or it is left out"
        )
    return plugin.build


@cache
def _load_own_spec(kind: Kind, name: str) -> Spec | None:
    if name not in COMPONENTS[kind]:
        return None
    loaded_spec: Spec = importlib.import_module(module_name(kind, name)).SPEC
    return loaded_spec


def makes_windows(buffer: ParsedComponent) -> bool:
    """Return whether a buffer is one of those that keep messages in windows, by its spec."""
    buffer_spec = find_spec(Kind.BUFFER, buffer.name)
    return buffer_spec is not None and _WINDOWING in buffer_spec.categories


def all_specs() -> Iterator[Spec]:
    """Return the specs of all components, by kind and name. Imports every one."""
    for kind in COMPONENTS:
        yield from kind_specs(kind)


def kind_specs(kind: Kind) -> Iterator[Spec]:
    """Return the specs of the components of a kind, by name; plugins that are bad are left out."""
    for name in component_names(kind):
        if (loaded_spec := find_spec(kind, name)) is not None:
            yield loaded_spec


class _Context:
    """The build context: builds by the catalogue, and each resource once."""

    def __init__(
        self,
        component: ParsedComponent,
        resources: Mapping[tuple[Kind, str], ParsedComponent],
        built: dict[tuple[Kind, str], Any],
        worker_resources: WorkerResources,
        *,
        with_processors: bool = False,
    ) -> None:
        self._with_processors = with_processors
        self.component = component
        self._resources = resources
        self._built = built
        self._worker_resources = worker_resources

    def build(self, component: ParsedComponent) -> Any:
        """Build a component of the catalogue; what Benthos has metrics of is counted."""
        make = _find_builder(component.kind, component.name)
        context = _Context(
            component,
            self._resources,
            self._built,
            self._worker_resources,
            with_processors=self._with_processors,
        )
        permitted = component.permissions
        known = _find_installed_spec(component.kind, component.name)
        for message, hint in component_access_problems(component, known, permitted):
            raise NotPermittedError(f"{message}; {hint}")
        # Workers build what the driver has read: what was not allowed there is not allowed here.
        with limit_permissions(permitted):
            made = make(component.config, context)
        if component.kind == Kind.INPUT and self._with_processors:
            whole = made.for_driver() if isinstance(made, DriverReadable) else made
            return _with_processors(whole, component, context)
        if component.kind == Kind.PROCESSOR and component.name not in UNINSTRUMENTED:
            return instrument(made, ComponentRef(component))
        if component.kind == Kind.CACHE:
            return CountedCache(made, component)
        if component.kind == Kind.RATE_LIMIT:
            return CountedRateLimit(made, component)
        if component.kind == Kind.OUTPUT and (component.name != _REFERENCE or component.processors):
            link = context.worker_resource(ConnectionState, ConnectionState)
            return Sender(made, component, context.build_all(component.processors), link)
        return made

    def build_all(self, components: Iterable[ParsedComponent]) -> list[Any]:
        """Build components, in order."""
        return [self.build(component) for component in components]

    def resource(self, kind: Kind, label: str) -> Any:
        """Return a resource; see `BuildContext.resource`."""
        key = (kind, label)
        self._check_resource(kind, label)
        if kind in _WORKER_RESOURCE_KINDS:
            return self._worker_resources.get(
                key, lambda: self._build_worker_resource(self._resources[key], label)
            )
        if key not in self._built:
            self._built[key] = self.build(self._resources[key])
        return self._built[key]

    def deferred_resource(self, kind: Kind, label: str) -> DeferredResource:
        """Return what builds a resource; see `BuildContext.deferred_resource`."""
        self._check_resource(kind, label)
        run = self._worker_resources.run
        return DeferredResource(kind, label, self._resources, run, build_context)

    def _check_resource(self, kind: Kind, label: str) -> None:
        if (kind, label) not in self._resources:
            known = sorted(name for of, name in self._resources if of == kind)
            raise StreamerError(
                f"there is no {kind} resource with the label {label!r}; "
                f"{kind}_resources has {', '.join(known) if known else 'none'}"
            )

    def _build_worker_resource(self, component: ParsedComponent, label: str) -> Any:
        cache_spec = find_spec(component.kind, component.name)
        if cache_spec is not None and cache_spec.in_memory and self._worker_resources.run:
            from streamer.sdk.cache.shared import connect_shared_cache

            shared = connect_shared_cache(self._worker_resources.find_shared_directory(), label)
            if shared is not None:
                return CountedCache(shared, component)
        return self.isolated().build(component)

    def worker_resource(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what outlives the context; see `BuildContext.worker_resource`."""
        of = self.component
        return self._worker_resources.get((of.kind, of.name, of.label, of.path, key), make)

    def deferred_worker_resource(self, key: Hashable, make: Callable[[], T]) -> Callable[[], T]:
        """Return what makes it elsewhere; see `BuildContext.deferred_worker_resource`."""
        of = self.component
        run = self._worker_resources.run
        return DeferredObject((of.kind, of.name, of.label, of.path, key), make, run)

    def shared_directory(self) -> Path:
        """Return where workers share files; see `BuildContext.shared_directory`."""
        return self._worker_resources.shared_directory()

    def with_processors(self) -> _Context:
        """Return a context whose inputs come with processors; see `BuildContext.whole`."""
        return _Context(
            self.component, self._resources, {}, self._worker_resources, with_processors=True
        )

    def isolated(self) -> _Context:
        """Return a context for a thread of its own; see `BuildContext.apart`."""
        return _Context(self.component, self._resources, {}, self._worker_resources)


def _with_processors(source: Any, component: ParsedComponent, context: _Context) -> Any:
    """Return an input with its batching and its processors, for who reads it himself."""
    policy = build_input_policy(component, context)
    if policy is None and not component.processors:
        return source
    return ProcessedSource(source, context.build_all(component.processors), policy)


def find_input_batching(component: ParsedComponent) -> ParsedFields | None:
    """Return the policy by which an input's messages are put into batches; None for none."""
    declared = find_spec(component.kind, component.name)
    if declared is None or declared.batching is None:
        return None
    return declared.batching(component.config)


def build_input_policy(component: ParsedComponent, context: BuildContext) -> BatchPolicy | None:
    """Build the policy by which an input's messages are put into batches; None for none.

    Args:
        component: the input.
        context: that of the input.
    """
    batching = find_input_batching(component)
    if batching is None:
        return None
    # Imported here: the catalogue is loaded by all commands, and hardly any of them builds one.
    from streamer.sdk.processing.batching import build_policy

    return build_policy(batching, context, ComponentRef(component).log)


def build_context(
    resources: Mapping[tuple[Kind, str], ParsedComponent] | None = None,
    component: ParsedComponent | None = None,
    worker_resources: WorkerResources | None = None,
) -> _Context:
    """Make a context that builds components.

    Args:
        resources: the config's resources, by kind and label (`Config.resources`).
        component: what is being built, for components that are built by hand.
        worker_resources: where caches, rate limits and connections are, which outlive the context;
            without it they last as long as what is built. `Plan.context` gives a stream's own.
    """
    made = component or ParsedComponent(Kind.PROCESSOR, "")
    return _Context(made, resources or {}, {}, worker_resources or WorkerResources())
