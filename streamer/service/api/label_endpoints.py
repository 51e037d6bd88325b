"""The endpoints of the labels of streams."""

from __future__ import annotations

from collections.abc import Iterator

from aiohttp import web

from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.responses import json_response
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.redacted_document import parse_document
from streamer.service.fleet.stream_labels import MAX_LABELS, parse_labels

_LABELS = s.map_schema(s.STRING)


class LabelEndpoints:
    """The endpoints `/streams/{id}/labels`."""

    def __init__(self, manager: Manager) -> None:
        """Take the streams."""
        self._registry = manager.registry

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        path = "/streams/{id}/labels"
        yield Endpoint(
            *("GET", path, "read_labels", "Return the labels of a stream, by name.", self._read),
            _LABELS,
            codes={404: "There is no such stream."},
        )
        yield Endpoint(
            *("PUT", path, "set_labels"),
            "Give a stream labels, in place of those that it has. They group streams for people; "
            "the stream runs on.",
            *(self._write, _LABELS),
            body=f"An object of texts by name, YAML or JSON; {MAX_LABELS} at most.",
            codes={400: "A label is none.", 404: "There is no such stream."},
            is_change=True,
        )

    def _read(self, request: ApiRequest) -> web.Response:
        stream_id = self._registry.get(request.path["id"]).stream_id
        return json_response(self._registry.labels.labels_of(stream_id))

    def _write(self, request: ApiRequest) -> web.Response:
        stream_id = self._registry.get(request.path["id"]).stream_id
        labels = parse_labels(parse_document(request.body, "labels"))
        self._registry.labels.set_labels(stream_id, labels)
        self._registry.audit.record(request.options.author, "labels", stream=stream_id)
        return json_response(labels)
