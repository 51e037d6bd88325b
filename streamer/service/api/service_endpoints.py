"""The endpoints about the service itself: its facts, and its own log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

import yaml
from aiohttp import web

from streamer.config import Config
from streamer.config.echo import echo_config
from streamer.core.durations import SECOND
from streamer.core.timestamps import format_rfc3339
from streamer.service.api import schemas as s
from streamer.service.api.endpoint import ApiRequest, Endpoint
from streamer.service.api.log_lines import LOG_PARAMETERS, select_log_lines
from streamer.service.api.responses import json_response
from streamer.service.fleet.log_tail import LogTail
from streamer.service.fleet.manager import Manager
from streamer.service.fleet.service_facts import (
    CheckpointSizes,
    StartOptions,
    describe_cost,
    describe_versions,
)
from streamer.service.monitoring.host_facts import describe_host

_SETTINGS: Final = ("http", "logger", "metrics", "tracer", "spark", "shutdown_timeout")
"""The sections of a service's own config."""

_SERVICE_SCHEMA: Final = s.object_schema(
    version=s.STRING,
    python=s.STRING,
    spark=s.STRING,
    java=s.MAYBE_STRING,
    master=s.MAYBE_STRING,
    started=s.STRING,
    uptime=s.NUMBER,
    host=s.object_schema(name=s.STRING, pid=s.INTEGER, cores=s.MAYBE_NUMBER),
    streams=s.list_schema(s.object_schema(id=s.STRING, batch_share=s.MAYBE_NUMBER)),
    checkpoints=s.object_schema(place=s.STRING, streams=s.list_schema(s.ANYTHING)),
    refused_files=s.list_schema(s.object_schema(id=s.STRING, file=s.STRING, text=s.STRING)),
    options=s.map_schema(s.ANYTHING),
    settings=s.map_schema(s.ANYTHING),
)


class ServiceEndpoints:
    """The endpoints `/console/service` and `/console/service/logs`."""

    def __init__(
        self, manager: Manager, root: Config, service_log: LogTail, options: StartOptions
    ) -> None:
        """Take the streams, and the service's config, log and options."""
        self._registry = manager.registry
        self._root = root
        self._log = service_log
        self._options = options
        self._sizes = CheckpointSizes()

    def list_endpoints(self) -> Iterator[Endpoint]:
        """Return the endpoints."""
        yield Endpoint(
            *("GET", "/console/service", "read_service"),
            "Return the service's versions, machine, settings and executors, what its streams cost "
            "and how large their checkpoints are, without secrets.",
            *(self._facts, _SERVICE_SCHEMA),
        )
        yield Endpoint(
            *("GET", "/console/service/logs", "read_service_logs"),
            "Return the newest lines of the service's own log, without those of its streams.",
            *(lambda request: json_response(select_log_lines(self._log, request.query)),),
            s.list_schema(s.LOG_LINE),
            parameters=LOG_PARAMETERS,
            codes={400: "A number is none."},
        )

    def _facts(self, request: ApiRequest) -> web.Response:
        registry, options = self._registry, self._options
        streams = registry.streams()
        costs = [describe_cost(one) for one in streams.values()]
        place = options.checkpoints or str(registry.checkpoints.service_directory.parent)
        refused = registry.refused_files.all()
        return json_response(
            {
                **describe_versions(),
                "started": format_rfc3339(options.started_at),
                "uptime": round((time.time_ns() - options.started_at) / SECOND, 3),
                "host": describe_host(registry.checkpoints.service_directory),
                "streams": sorted(costs, key=lambda one: -(one["batch_share"] or 0.0)),
                "checkpoints": {
                    "place": place,
                    "streams": self._sizes.describe(streams, place),
                },
                "refused_files": [
                    {"id": name, "file": one.path, "text": one.text}
                    for name, one in refused.items()
                ],
                "options": dict(options.options),
                "settings": self._settings(),
            }
        )

    def _settings(self) -> dict[str, Any]:
        """Return the service's config without secrets, and without what variables hold."""
        document = yaml.safe_load(echo_config(self._root, os.environ)) or {}
        return {name: document[name] for name in _SETTINGS if name in document}
