"""`metrics.prometheus`: metrics pushed to a gateway, and written to a file at the end."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from prometheus_client import push_to_gateway, write_to_textfile

from streamer.core.log_format import LogLine
from streamer.core.redaction import redact_urls
from streamer.sdk.spec import ParsedComponent
from streamer.service.monitoring.exposition import make_registry
from streamer.service.monitoring.stream_view import Views

_TIMEOUT_S: Final = 10.0


class PrometheusExporter:
    """Exports the metrics of streams; what goes wrong is logged, and they go on."""

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Take a `metrics` section, which is Prometheus's, the streams, and where lines go."""
        self._config = metrics.config
        self._registry = make_registry(metrics, views)
        self._log = log

    def export(self, is_last: bool) -> None:
        """Push to the gateway, if there is one, and write the file when this is the last time."""
        if self._config["push_url"]:
            self._try_export("push metrics to", self._config["push_url"], self._push)
        if is_last and self._config["file_output_path"]:
            self._try_export("write metrics to", self._config["file_output_path"], self._write)

    def _try_export(self, what: str, target: str, action: Callable[[str], None]) -> None:
        try:
            action(target)
        except (OSError, ValueError) as e:
            self._log("ERROR", f"Failed to {what} {redact_urls(target)}: {redact_urls(str(e))}", {})

    def _push(self, url: str) -> None:
        auth = self._config["push_basic_auth"]

        def handler(
            url: str, method: str, timeout: float | None, headers: Any, data: bytes
        ) -> Callable[[], None]:
            # Imported here: nobody else needs a client at the start.
            from streamer.connectors.http_client.exchange_deadline import do_exchange

            # The library's own takes its time for each read of a socket.
            sent_headers = [*headers]
            if auth["username"]:
                credentials = f"{auth['username']}:{auth['password']}".encode()
                sent_headers.append(
                    ("Authorization", f"Basic {base64.b64encode(credentials).decode()}")
                )

            def push() -> None:
                do_exchange(method, url, _TIMEOUT_S, sent_headers, data)

            return push

        push_to_gateway(
            url, self._config["push_job_name"], self._registry, timeout=_TIMEOUT_S, handler=handler
        )

    def _write(self, path: str) -> None:
        write_to_textfile(path, self._registry)
