"""`metrics.influxdb`: metrics in InfluxDB's line protocol, over HTTP or UDP."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from streamer.components.metrics.influxdb import (
    DB,
    PASSWORD,
    PRECISION,
    RETENTION_POLICY,
    TAGS,
    TIMEOUT,
    UDP,
    URL,
    USERNAME,
    WRITE_CONSISTENCY,
)
from streamer.components.metrics.metric import MetricKind
from streamer.connectors.http_client.auth import AUTHORIZATION
from streamer.connectors.http_client.auth_fields import BASIC_AUTH, JWT, OAUTH, OAUTH2
from streamer.connectors.http_client.connection import ConnectionPool
from streamer.connectors.http_client.fields import DISABLE_HTTP2, FOLLOW_REDIRECTS, PROXY_URL
from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.core.log_format import LogLine
from streamer.core.redaction import redact_urls
from streamer.core.urls import split_url
from streamer.engine.report.latency import LatencySnapshot
from streamer.sdk.spec import ParsedComponent, ParsedFields
from streamer.service.monitoring.metric_samples import Sample
from streamer.service.monitoring.metrics_mapping import label_samples
from streamer.service.monitoring.statsd_push import pack_datagrams
from streamer.service.monitoring.stream_view import Views

MIN_INTERVAL: Final = SECOND

_UNITS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": SECOND}
_QUANTILES: Final = {"p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_ESCAPES: Final = str.maketrans({",": r"\,", "=": r"\=", " ": r"\ ", "\n": r"\n"})
_SHOWN_BYTES: Final = 200


class InfluxExporter:
    """Sends the metrics of streams; what goes wrong is logged, and they go on."""

    def __init__(self, metrics: ParsedComponent, views: Views, log: LogLine) -> None:
        """Take a `metrics` section, which is InfluxDB's, the streams, and where lines go."""
        self._config: ParsedFields = metrics.config
        self._views = views
        self._log = log
        self._pool: ConnectionPool | None = None

    def export(self, is_last: bool) -> None:
        """Send all metrics."""
        config = self._config
        now = time.time_ns() // _UNITS[config[PRECISION]]
        lines = [
            line
            for sample in label_samples(self._views())
            if (line := format_line(sample, config[TAGS], now))
        ]
        try:
            if config[URL].startswith(UDP):
                self._send_datagrams(lines)
            else:
                self._post("\n".join(lines).encode())
        except (OSError, ValueError, StreamerError) as error:
            text = redact_urls(f"Failed to send metrics to {config[URL]}: {error}")
            self._log("ERROR", text, {})

    def _send_datagrams(self, lines: Iterable[str]) -> None:
        parts = split_url(self._config[URL])
        host, port = parts.hostname or "127.0.0.1", parts.port or 8089
        family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        self._config.permissions.address(str(place[0]))
        with socket.socket(family, kind) as sender:
            for datagram in pack_datagrams(lines):
                sender.sendto(datagram, place)

    def _post(self, body: bytes) -> None:
        import httpx2

        config = self._config
        if self._pool is None:
            settings = {
                **{**config, OAUTH: None, OAUTH2: None, JWT: None, BASIC_AUTH: None},
                **{PROXY_URL: "", DISABLE_HTTP2: True, FOLLOW_REDIRECTS: False},
            }
            fields = ParsedFields(settings)
            fields.permissions = config.permissions
            self._pool = ConnectionPool(fields)
        query = {"db": config[DB], "precision": config[PRECISION]}
        for name, field in (("rp", RETENTION_POLICY), ("consistency", WRITE_CONSISTENCY)):
            if config[field]:
                query[name] = config[field]
        headers = {}
        if config[USERNAME]:
            pair = f"{config[USERNAME]}:{config[PASSWORD]}".encode()
            headers[AUTHORIZATION] = f"Basic {base64.b64encode(pair).decode()}"
        connection = self._pool.acquire()
        try:
            url = f"{config[URL].rstrip('/')}/write?{urlencode(query)}"
            with connection.client.stream("POST", url, content=body, headers=headers) as answer:
                status = answer.status_code
                text = b""
                for block in answer.iter_bytes(_SHOWN_BYTES):
                    text += block
                    if len(text) >= _SHOWN_BYTES or connection.deadline.has_expired:
                        break
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            if connection.deadline.has_expired or isinstance(error, httpx2.TimeoutException):
                seconds = config[TIMEOUT] / SECOND
                raise OSError(f"no whole answer within {seconds:g} s (timeout)") from None
            raise OSError(str(error) or type(error).__name__) from None
        finally:
            self._pool.release(connection)
        if status >= 300:
            shown = text[:_SHOWN_BYTES].decode(errors="replace").strip()
            raise OSError(f"status {status}: {shown}")


def format_line(sample: Sample, tags: Mapping[str, str], now: int) -> str:
    """Return the line of a figure; empty when nothing was timed.

    Args:
        sample: the figure.
        tags: those of all metrics, which stand before labels of the same name.
        now: the time, in the precision that is announced.
    """
    labels = {**sample.labels, **tags}
    pairs = [f"{_escape(key)}={_escape(value)}" for key, value in sorted(labels.items()) if value]
    fields = ",".join(f"{name}={value}" for name, value in _fields(sample))
    return f"{','.join([_escape(sample.name), *pairs])} {fields} {now}" if fields else ""


def _fields(sample: Sample) -> Iterator[tuple[str, Any]]:
    value = sample.value
    if isinstance(value, LatencySnapshot):
        if not value.count:
            return
        unit = SECOND if sample.type_name == MetricKind.HISTOGRAM else 1
        yield "count", f"{value.count}i"
        yield "mean", value.total / value.count / unit
        for name, share in _QUANTILES.items():
            quantile = value.quantile(share)
            if quantile is not None:
                yield name, quantile / unit
    elif sample.type_name == MetricKind.COUNTER:
        yield "count", f"{int(value)}i"
    else:
        # A field keeps the type that it has first: what is a whole number now may not be later.
        yield "value", float(value)


def _escape(text: str) -> str:
    return text.translate(_ESCAPES)
