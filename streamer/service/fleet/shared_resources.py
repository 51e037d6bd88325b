"""Resources that come by API: components that all streams may refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from streamer.config import Config
from streamer.config.resources import ResourceText
from streamer.plan.change_impact import judge
from streamer.service.fleet import redacted_document
from streamer.service.fleet.deployment_store import Revision, RevisionDraft, StoredResource
from streamer.service.fleet.deploys import ChangeOptions, Deploys, check_reset
from streamer.service.fleet.errors import BadConfigError, BadRequestError
from streamer.service.fleet.registry import Registry
from streamer.service.fleet.stream_ids import id_problem


class SharedResources:
    """Changes resources."""

    def __init__(self, registry: Registry, deploys: Deploys) -> None:
        """Take the streams, and what changes them."""
        self._registry = registry
        self._deploys = deploys

    def put_resource(self, kind: str, label: str, text: str, options: ChangeOptions) -> list[str]:
        """Make a resource, or another one of it; streams that use it go on with the new one.

        Args:
            kind: `cache`, `input`, `output`, `processor` or `rate_limit`.
            label: its label.
            text: the component's config.
            options: how.

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
        with registry.locks.hold("resources of the service"):
            registry.check_open()
            stored = StoredResource(
                kind, label, _format_resource(kind, label, text), options.author
            )
            resource_text = registry.resource_text(stored)
            others = [one for one in registry.resources if one.name != resource_text.name]
            registry.reader_with(others).read_resource(resource_text, options.chilled)
            changed = self._find_changed_streams([*others, resource_text], options)
            registry.store.put_resource(stored)
            registry.resources = [*others, resource_text]
            for stream_id, config in changed.items():
                with registry.locks.hold(stream_id):
                    managed = registry.get(stream_id)
                    draft = replace(managed.revision, author=options.author, time=registry.clock())
                    self._deploys.switch(managed, config, _as_draft(draft), options)
            facts: dict[str, Any] = {"kind": kind, "label": label, "streams": [*changed]}
            registry.audit.record(options.author, "resource", **facts)
            return [*changed]

    def _find_changed_streams(
        self, resources: Sequence[ResourceText], options: ChangeOptions
    ) -> dict[str, Config]:
        """Return the configs of the streams that other resources make a difference to."""
        registry, changed = self._registry, {}
        reader = registry.reader_with(resources)
        for stream_id, managed in registry.streams().items():
            config = registry.read_config(stream_id, managed.revision, reader)
            judgement = judge(managed.config, config)
            check_reset(judgement, options.on_reset)
            if judgement.changes:
                changed[stream_id] = config
        return changed


def _as_draft(revision: Revision) -> RevisionDraft:
    return RevisionDraft(*(getattr(revision, field.name) for field in fields(RevisionDraft)))


def _format_resource(kind: str, label: str, text: str) -> str:
    """Return a resource as the text of a file of resources."""
    body = redacted_document.parse_document(text, label)
    if not isinstance(body, dict):
        raise BadConfigError(["(1,1) expected an object"])
    return redacted_document.format_yaml({f"{kind}_resources": [{**body, "label": label}]})
