"""Context in which a component is built: its children and the resources."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from streamer.sdk.spec.component import Kind, ParsedComponent

T = TypeVar("T")


class BuildContext(Protocol):
    """Builds children, so that components need not know the catalogue, nor one another."""

    @property
    def component(self) -> ParsedComponent:
        """The component that is being built: its label, path and place."""

    def build(self, component: ParsedComponent) -> Any:
        """Build a child component.

        An output comes with its `processors`, as a `Composition` (see `sdk.output`); those of an
        input are left to the caller.
        """

    def build_all(self, components: Iterable[ParsedComponent]) -> list[Any]:
        """Build child components, in order."""

    def resource(self, kind: Kind, label: str) -> Any:
        """Return the resource of that label; it is built once for a context.

        A cache or a rate limit is built once for a worker process, and outlives the context.

        Raises:
            StreamerError: there is no such resource; the text names those that there are.
        """

    def deferred_resource(self, kind: Kind, label: str) -> Callable[[], Any]:
        """Return what builds a cache or a rate limit where it is called: it can be pickled.

        For what goes to other processes as it is, such as an opened input. Each process builds the
        resource once for a run. It is equal to another one of the same resource.

        Raises:
            StreamerError: there is no such resource; the text names those that there are.
        """

    def worker_resource(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what outlives the context: a pool of connections, a process that was started.

        A context lasts for a task, this as long as the worker process; so it must hold nothing
        of a task's, such as an `Execution`. Several threads and tasks may use it at once.

        Args:
            key: tells it from others of the component that is being built.
            make: makes it when there is none for this component yet.
        """

    def deferred_worker_resource(self, key: Hashable, make: Callable[[], T]) -> Callable[[], T]:
        """Return what makes a `worker_resource` where it is called: it can be pickled.

        For what goes to other processes as it is, such as an opened input. Each process makes the
        object once for a run.

        Args:
            key: tells it from others of the component that is being built.
            make: makes it when the process has none; it can be pickled.
        """

    def shared_directory(self) -> Path:
        """Return a directory that all workers of the stream on this machine share while it runs."""

    def with_processors(self) -> BuildContext:
        """Return a context whose inputs come with their processors: for who reads them himself."""

    def isolated(self) -> BuildContext:
        """Return a context whose components are shared with nobody, for a thread of its own.

        What is lasting is shared all the same, caches and rate limits among it. See `thread_pool`.
        """
