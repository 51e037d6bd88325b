"""Resources and objects for what goes to other processes as it is: each process builds its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamer.sdk.spec import BuildContext, Kind, ParsedComponent
from streamer.sdk.worker_resources import WorkerResources, resources_of_run

Resources = Mapping[tuple[Kind, str], ParsedComponent]
MakeContext = Callable[[Resources, None, WorkerResources], BuildContext]


@dataclass(frozen=True)
class DeferredResource:
    """Builds a resource in the process that calls it; see `BuildContext.deferred_resource`.

    Attributes:
        kind: its kind.
        label: its label.
        resources: of the config.
        run: the stream's run, whose processes keep what is built; empty for none.
        make_context: makes what builds it.
    """

    kind: Kind
    label: str
    resources: Resources = field(repr=False)
    run: str
    make_context: MakeContext = field(repr=False)

    def __call__(self) -> Any:
        """Return the resource."""
        context = self.make_context(self.resources, None, self._worker_resources)
        return context.resource(self.kind, self.label)

    @cached_property
    def _worker_resources(self) -> WorkerResources:
        return resources_of_run(self.run)

    def __reduce__(self) -> Any:
        fields = self.kind, self.label, self.resources, self.run, self.make_context
        return DeferredResource, fields


@dataclass(frozen=True)
class DeferredObject:
    """Makes an object in the process that calls it; see `BuildContext.deferred_worker_resource`.

    Attributes:
        key: tells it from others of the stream.
        make: makes it; it can be pickled.
        run: the stream's run, whose processes keep what is made; empty for none.
    """

    key: Hashable
    make: Callable[[], Any] = field(repr=False)
    run: str

    def __call__(self) -> Any:
        """Return the object."""
        return self._worker_resources.get(self.key, self.make)

    @cached_property
    def _worker_resources(self) -> WorkerResources:
        return resources_of_run(self.run)

    def __reduce__(self) -> Any:
        return DeferredObject, (self.key, self.make, self.run)
