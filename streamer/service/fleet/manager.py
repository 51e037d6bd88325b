"""The streams of the service, from its start to its end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from streamer.service.fleet import redacted_document
from streamer.service.fleet.canaries import Canaries
from streamer.service.fleet.deployment_store import Revision
from streamer.service.fleet.deploys import Deploys
from streamer.service.fleet.errors import BadConfigError
from streamer.service.fleet.managed_stream import ManagedStream
from streamer.service.fleet.registry import Registry
from streamer.service.fleet.shared_resources import SharedResources
from streamer.service.fleet.startup import Startup


class Manager:
    """All that can be done with streams.

    Attributes:
        registry: the streams.
        startup: starts them when the program starts.
        deploys: changes them.
        resources: changes what they share.
        canaries: tries changes beside them.
    """

    def __init__(self, registry: Registry) -> None:
        """Take the streams."""
        self.registry = registry
        self._is_stopped = False
        self.startup = Startup(registry)
        self.deploys = Deploys(registry)
        self.resources = SharedResources(registry, self.deploys)
        self.canaries = Canaries(registry, self.deploys)

    def redact_config(self, stream_id: str) -> Any:
        """Return the config of a stream as a document without secrets.

        Raises:
            UnknownStreamError: there is none of that id.
        """
        managed = self.registry.get(stream_id)
        return redacted_document.redact_document(managed.revision.text, managed.config)

    def redact_revision_config(self, stream_id: str, revision: Revision) -> Any:
        """Return the config of a revision as a document without secrets.

        Raises:
            BadConfigError: it is not right any more, so that nobody knows what its secrets are.
        """
        config = self.registry.read_config(stream_id, revision)
        return redacted_document.redact_document(revision.text, config)

    def revisions(self, stream_id: str) -> list[Revision]:
        """Return the revisions of a stream, the newest first."""
        self.registry.get(stream_id)
        return self.registry.store.revisions(stream_id)

    def lint_stream(self, stream_id: str) -> list[str]:
        """Return the findings about a stream's config as it would be read now."""
        refused = self.registry.refused_files.get(stream_id)
        if refused is not None:
            return list(refused.findings)
        managed = self.registry.get(stream_id)
        try:
            lints = self.registry.read_config(stream_id, managed.revision).lints
        except BadConfigError as e:
            return list(e.findings)
        return [str(lint) for lint in lints]

    def stop(self) -> None:
        """Stop all streams between two micro-batches, at the same time, and take no more changes.

        What they were doing can still be asked for; `close` ends that.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self.canaries.close()
        streams = self.registry.begin_closing()
        # What each should do after the next start stays as it is.
        with ThreadPoolExecutor(max(len(streams), 1), "stop") as together:
            list(together.map(ManagedStream.close, streams))

    def close(self) -> None:
        """Close what keeps the streams; all of them are stopped, if they are not yet."""
        self.stop()
        self.registry.audit.close()
        self.registry.store.close()
