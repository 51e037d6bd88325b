"""The test kit for authors of components: runs and contract tests without Spark.

It is public like `streamer.sdk`, and the one module of it that uses the rest of the program: no
component imports it.
"""

from __future__ import annotations

from streamer.tools.component_kit.buffer_contract import BufferContract
from streamer.tools.component_kit.clock import LoggedLine, RecordedExecution, ScriptedClock
from streamer.tools.component_kit.components import (
    TestedComponent,
    make_batch,
    make_message,
    use_component,
)
from streamer.tools.component_kit.contracts import (
    CacheContract,
    ComponentContract,
    InputContract,
    OutputContract,
    ProcessorContract,
    RateLimitContract,
)
from streamer.tools.component_kit.drivers import (
    InputReader,
    read_input,
    run_processor,
    send_batches,
)
from streamer.tools.component_kit.request_recorder import (
    RecordedRequest,
    RequestRecorder,
    record_requests,
)
from streamer.tools.component_kit.scanner_contract import ScannerContract

__all__ = [
    "BufferContract",
    "CacheContract",
    "ComponentContract",
    "InputContract",
    "InputReader",
    "LoggedLine",
    "OutputContract",
    "ProcessorContract",
    "RateLimitContract",
    "RecordedExecution",
    "RecordedRequest",
    "RequestRecorder",
    "ScannerContract",
    "ScriptedClock",
    "TestedComponent",
    "make_batch",
    "make_message",
    "read_input",
    "record_requests",
    "run_processor",
    "send_batches",
    "use_component",
]
