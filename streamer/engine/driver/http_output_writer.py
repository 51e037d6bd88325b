"""The writer of an `http_server` output: messages that are fetched from the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamer.core.durations import SECOND
from streamer.core.errors import StreamerError
from streamer.engine.report.result_frame import Frame
from streamer.sdk.input.input_context import InputContext
from streamer.sdk.spec import ParsedFields


class HttpOutputWriter:
    """Gives the batches of a micro-batch to those who ask for them, and waits until they have."""

    def __init__(self, parsed: ParsedFields, file: str = "") -> None:
        """Take the output's fields and file; nothing is served before `open`."""
        # Imported here: what has no server should not wait for aiohttp.
        from streamer.connectors.http_server.http_publisher import HttpPublisher

        timeout = parsed["timeout"]
        self._parsed = parsed
        self._file = file
        self._outlet = HttpPublisher(
            frozenset(parsed["allowed_verbs"]), timeout / SECOND if timeout else None
        )
        self._stopping: Callable[[], bool] = lambda: False

    def open(self, context: InputContext) -> None:
        """Begin to serve, until the stream stops.

        Raises:
            StreamerError: the address cannot be listened on, or there is no server to use.
        """
        from streamer.connectors.http_server.component_server import ServerSettings, serve_paths
        from streamer.connectors.spool.async_receiver import ReceiverContext, start_receiver

        parsed, outlet = self._parsed, self._outlet
        self._stopping = lambda: context.stopping
        context.on_stop(outlet.close)
        named = {"path": outlet.get, "stream_path": outlet.stream, "ws_path": outlet.websocket}
        paths: dict[str, Any] = {
            parsed[name]: handler for name, handler in named.items() if parsed[name]
        }
        if parsed["address"]:
            cors = parsed["cors"]
            own = ServerSettings(
                parsed["address"],
                parsed.permissions.file(parsed["cert_file"]),
                parsed.permissions.file(parsed["key_file"]),
                frozenset(cors["allowed_origins"]) if cors["enabled"] else None,
            )

            async def run(reception: ReceiverContext) -> None:
                async def listening(url: str) -> None:
                    context.log("INFO", "Giving messages over HTTP", {"url": url})
                    reception.set_ready()
                    await reception.stop.wait()

                await serve_paths(own, paths, listening)

            start_receiver(context, "http_server output", run)
        elif context.endpoints is None or not context.endpoints.served:
            raise StreamerError(
                "the output http_server has no address, and there is no HTTP server of the "
                "stream: give the output an address, or set http.enabled to true and http.address "
                "to one that is free"
            )
        else:
            about = "Read messages of the output http_server."
            served = {path: (about, handler) for path, handler in paths.items()}
            context.on_stop(
                context.endpoints.add("the output http_server", served, file=self._file)
            )
            for path in paths:
                context.log("INFO", "Giving messages on the stream's HTTP server", {"path": path})

    def write(self, batch: int, frames: Sequence[Frame]) -> None:
        """Return when all of a micro-batch has been fetched.

        Raises:
            OSError: the program stops before.
        """
        import msgpack

        for frame in frames:
            self._outlet.publish(msgpack.unpackb(frame.body), self._stopping)
