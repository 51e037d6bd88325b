"""Resources that come by API: components that all streams may refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from streamer.config import Config
from streamer.config.resources import ResourceText
from streamer.plan.judgement import judge
from streamer.service.streams import raw
from streamer.service.streams.deploys import Deploys, Wish, check_reset
from streamer.service.streams.faults import BadConfigError, BadRequestError
from streamer.service.streams.ids import id_problem
from streamer.service.streams.registry import Registry
from streamer.service.streams.store import Draft, Revision, StoredResource


class Resources:
    """Changes resources."""

    def __init__(self, registry: Registry, deploys: Deploys) -> None:
        """Take the streams, and what changes them."""
        self._registry = registry
        self._deploys = deploys

    def put(self, kind: str, label: str, text: str, wish: Wish) -> list[str]:
        """Make a resource, or another one of it; streams that use it go on with the new one.

        Args:
            kind: `cache`, `input`, `output`, `processor` or `rate_limit`.
            label: its label.
            text: the component's config.
            wish: how.

        Returns:
            The streams that use it.

        Raises:
            BadRequestError: the label is none.
            BadConfigError: it has findings, or a stream that uses it would have.
            RefusedError: a stream that uses it would lose what it keeps.
            StartError: a stream does not start with it; it runs as before.
        """
        problem = id_problem(label)
        if problem is not None:
            raise BadRequestError(problem.replace("of a stream", "of a resource"))
        registry = self._registry
        # No stream has such an id.
        with registry.locks.of("resources of the service"):
            registry.check_open()
            stored = StoredResource(kind, label, _written(kind, label, text), wish.author)
            given = registry.text_of(stored)
            others = [one for one in registry.resources if one.name != given.name]
            registry.reader_with(others).of_resource(given, wish.chilled)
            changed = self._changed([*others, given], wish)
            registry.store.put_resource(stored)
            registry.resources = [*others, given]
            for stream_id, config in changed.items():
                with registry.locks.of(stream_id):
                    managed = registry.get(stream_id)
                    draft = replace(managed.revision, author=wish.author, time=registry.clock())
                    self._deploys.switch(managed, config, _draft(draft), wish)
            facts: dict[str, Any] = {"kind": kind, "label": label, "streams": [*changed]}
            registry.audit.note(wish.author, "resource", **facts)
            return [*changed]

    def _changed(self, resources: Sequence[ResourceText], wish: Wish) -> dict[str, Config]:
        """Return the configs of the streams that other resources make a difference to."""
        registry, changed = self._registry, {}
        reader = registry.reader_with(resources)
        for stream_id, managed in registry.streams().items():
            config = registry.read(stream_id, managed.revision, reader)
            judgement = judge(managed.config, config)
            check_reset(judgement, wish.on_reset)
            if judgement.changes:
                changed[stream_id] = config
        return changed


def _draft(revision: Revision) -> Draft:
    return Draft(*(getattr(revision, field.name) for field in fields(Draft)))


def _written(kind: str, label: str, text: str) -> str:
    """Return a resource as the text of a file of resources."""
    body = raw.document(text, label)
    if not isinstance(body, dict):
        raise BadConfigError(["(1,1) expected an object"])
    return raw.written({f"{kind}_resources": [{**body, "label": label}]})
