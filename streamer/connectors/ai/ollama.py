"""The fields and the client of a server of Ollama, which gets models that it does not have."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

from streamer.connectors.http_client.json_client import ApiError, JsonClient
from streamer.core.execution import Execution
from streamer.core.urls import url_problem
from streamer.sdk.spec import Access, Field, ParsedFields

MODEL: Final = "model"
RUNNER: Final = "runner"
SERVER_ADDRESS: Final = "server_address"
CACHE_DIRECTORY: Final = "cache_directory"
DOWNLOAD_URL: Final = "download_url"

DEFAULT_ADDRESS: Final = "http://127.0.0.1:11434"
PROBE_PATH: Final = "/api/tags"

_PULL_TIMEOUT_S: Final = 3600.0
_RUNNER_OPTIONS: Final = {
    "context_size": "num_ctx",
    "batch_size": "num_batch",
    "gpu_layers": "num_gpu",
    "threads": "num_thread",
    "use_mmap": "use_mmap",
}


def model_field(*models: str, options: tuple[str, ...] = ()) -> Field:
    """Return the field of the model; `models` are examples."""
    return Field(
        MODEL,
        "string",
        "The name of the model. The server downloads it when it does not have it yet.",
        examples=models,
        options=options,
        access=Access.REMOTE,
    )


def _runner_field(name: str, kind: str, description: str, *, advanced: bool = False) -> Field:
    return Field(name, kind, description, optional=True, advanced=advanced)


def _start_it_field(name: str) -> Field:
    return Field(
        name,
        "string",
        "Is not available: no server is started here.",
        optional=True,
        advanced=True,
        access=Access.NONE,
    )


SERVER_FIELDS: Final = (
    Field(
        RUNNER,
        "object",
        "Options of the model while it runs.",
        optional=True,
        children=(
            _runner_field("context_size", "int", "Tokens that the model sees at once."),
            _runner_field("batch_size", "int", "Requests that the model processes at once."),
            _runner_field(
                "gpu_layers", "int", "Layers that are on the GPU; all without it.", advanced=True
            ),
            _runner_field("threads", "int", "Threads of the model.", advanced=True),
            _runner_field("use_mmap", "bool", "True to map the model into memory.", advanced=True),
        ),
    ),
    Field(
        SERVER_ADDRESS,
        "string",
        f"The URL of the server; without it, `{DEFAULT_ADDRESS}`, where `ollama serve` listens.",
        optional=True,
        access=Access.ADDRESS,
        check=url_problem,
        examples=(DEFAULT_ADDRESS,),
    ),
    _start_it_field(CACHE_DIRECTORY),
    _start_it_field(DOWNLOAD_URL),
)


def server_problems(parsed: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Return what is wrong with these fields together, for a spec's `check`."""
    for name in (CACHE_DIRECTORY, DOWNLOAD_URL):
        if parsed[name] is not None:
            yield (
                name,
                "is not available: no server is started here; run `ollama serve` beside it, and "
                "leave this out",
            )


def runner_options(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request that the field `runner` sets."""
    runner = parsed[RUNNER] or {}
    return {
        option: runner[name]
        for name, option in _RUNNER_OPTIONS.items()
        if runner.get(name) is not None
    }


class OllamaClient(JsonClient):
    """A client that lets the server get a model that it does not have. Threads may share it."""

    def __init__(self, parsed: ParsedFields, timeout_s: float) -> None:
        """Take the fields; nothing is connected yet."""
        address = parsed[SERVER_ADDRESS] or DEFAULT_ADDRESS
        super().__init__(address, {}, timeout_s=timeout_s, permissions=parsed.permissions)
        self._puller = JsonClient(
            address, {}, timeout_s=_PULL_TIMEOUT_S, permissions=parsed.permissions
        )
        self._model: str = parsed[MODEL]
        self._pull_lock = threading.Lock()
        self._pulled = False

    def post(self, path: str, document: Any, ex: Execution) -> Any:
        """Send a document as `JsonClient.post` does; when the model is missing, get it first.

        Raises:
            ApiError: the last try has failed, or there is no such model.
        """
        try:
            return super().post(path, document, ex)
        except ApiError as error:
            if error.status != 404:
                raise
        with self._pull_lock:
            if not self._pulled:
                ex.report_wait("INFO", f"Waiting for Ollama to download {self._model}", {})
                self._puller.post("/api/pull", {"model": self._model, "stream": False}, ex)
                self._pulled = True
        return super().post(path, document, ex)
