"""`metrics.prometheus`: metrics pushed to a gateway, and written to a file at the end."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from prometheus_client import push_to_gateway, write_to_textfile

from streamer.engine.delivery import LogLine
from streamer.redaction import scrub_urls
from streamer.service.exposition import registry_of_all
from streamer.service.view import Views
from streamer.spec import ParsedComponent

_TIMEOUT_S: Final = 10.0


class PrometheusExport:
    """Exports the metrics of streams; what goes wrong is logged, and they go on."""

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Take a `metrics` section, which is Prometheus's, the streams, and where lines go."""
        self._config = metrics.config
        self._registry = registry_of_all(metrics, views)
        self._log = log

    def export(self, last: bool) -> None:
        """Push to the gateway, if there is one, and write the file when this is the last time."""
        if self._config["push_url"]:
            self._try("push metrics to", self._config["push_url"], self._push)
        if last and self._config["file_output_path"]:
            self._try("write metrics to", self._config["file_output_path"], self._write)

    def _try(self, what: str, target: str, action: Callable[[str], None]) -> None:
        try:
            action(target)
        except (OSError, ValueError) as e:
            self._log("ERROR", f"Failed to {what} {scrub_urls(target)}: {scrub_urls(str(e))}", {})

    def _push(self, url: str) -> None:
        auth = self._config["push_basic_auth"]

        def handler(
            url: str, method: str, timeout: float | None, headers: Any, data: bytes
        ) -> Callable[[], None]:
            # Imported here: nobody else needs a client at the start.
            from streamer.deadline import exchange

            # The library's own takes its time for each read of a socket.
            sent = [*headers]
            if auth["username"]:
                known = f"{auth['username']}:{auth['password']}".encode()
                sent.append(("Authorization", f"Basic {base64.b64encode(known).decode()}"))

            def push() -> None:
                exchange(method, url, _TIMEOUT_S, sent, data)

            return push

        push_to_gateway(
            url, self._config["push_job_name"], self._registry, timeout=_TIMEOUT_S, handler=handler
        )

    def _write(self, path: str) -> None:
        write_to_textfile(path, self._registry)
