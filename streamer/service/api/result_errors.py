"""Answers to queries of results that have failed."""

from __future__ import annotations

from aiohttp import web

from streamer.connectors.http_server.replies import error_reply
from streamer.core.errors import StreamerError
from streamer.service.fleet.managed_stream import ManagedStream


def result_error_reply(error: StreamerError, managed: ManagedStream) -> web.Response:
    """Return the answer to a query of results that has failed."""
    from streamer.engine.results.layout import NoResultsError, RetentionError
    from streamer.engine.results.query_model import ResultQueryError

    match error:
        case ResultQueryError():
            return error_reply(400, f"Error: {error}")
        case NoResultsError():
            return error_reply(
                404,
                "Error: the stream keeps no results: give its window buffer the field retention "
                "(retention: 7d)",
            )
        case RetentionError():
            text = str(error).replace(str(managed.directory), managed.stream_id)
            return error_reply(502, f"Error: {text}")
        case _:
            raise error
