"""The public interface for authors of components.

`from streamer.sdk import Field, Kind, Spec` gives every name of `__all__`. These names are stable
within a major version of `API_VERSION`; modules below this package are not public, except
`streamer.sdk.testing`. Names are imported when they are first used; none of them imports Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from streamer.bloblang import Interpolation, Mapping, compile_interpolation, compile_mapping
    from streamer.bloblang.python_functions import bloblang_function, bloblang_method
    from streamer.core.errors import MessageError, StreamerError
    from streamer.core.execution import Execution
    from streamer.core.message import Batch, Message
    from streamer.core.permissions import NotPermittedError, Permissions, current_permissions
    from streamer.sdk.api_version import API_VERSION
    from streamer.sdk.cache import Cache, CacheError, KeyAlreadyExistsError, KeyNotFoundError
    from streamer.sdk.component_ref import ComponentRef
    from streamer.sdk.input.input_context import InputContext, MessageSpool, OpenableInput
    from streamer.sdk.input.received_input import MessageReceiver, ReceivedInput
    from streamer.sdk.input.replayable import (
        LatestOffset,
        Limit,
        Offset,
        RawMessages,
        ReplayableSource,
        WakingSource,
    )
    from streamer.sdk.input.scanning import ByteStream, ScanInput, ScanMark, ScannedCut, Scanner
    from streamer.sdk.monitoring import MetricSample, MetricsExporter, TraceExporter, TraceSpan
    from streamer.sdk.output.protocols import (
        BulkOutput,
        NotConnectedError,
        Output,
        SendError,
        max_in_flight_field,
    )
    from streamer.sdk.output.rejection import make_invalid_rejection
    from streamer.sdk.processing import Processor
    from streamer.sdk.processing.batching import (
        BATCHING_FIELD,
        BatchPolicy,
        batching_problems,
        output_policy,
    )
    from streamer.sdk.processing.per_message import PerMessageProcessor
    from streamer.sdk.rate_limit import RateLimit, RateLimitError, wait_for_access
    from streamer.sdk.spec import (
        NO_FIELDS,
        REQUIRED,
        Access,
        BuildContext,
        Example,
        Field,
        Kind,
        ParsedComponent,
        ParsedFields,
        Spec,
        duration_field,
    )
    from streamer.sdk.spec.checks import SupportsPreflight, SupportsProbe
    from streamer.sdk.window_buffer.event_time import WindowBuffer, build_buffer
    from streamer.sdk.window_buffer.fields import event_time_fields
    from streamer.sdk.window_buffer.grid import find_grid_problems, read_grid

__all__ = [
    "API_VERSION",
    "Access",
    "BATCHING_FIELD",
    "Batch",
    "BatchPolicy",
    "BuildContext",
    "BulkOutput",
    "ByteStream",
    "Cache",
    "CacheError",
    "ComponentRef",
    "Example",
    "Execution",
    "Field",
    "InputContext",
    "Interpolation",
    "KeyAlreadyExistsError",
    "KeyNotFoundError",
    "Kind",
    "LatestOffset",
    "Limit",
    "Mapping",
    "Message",
    "MessageError",
    "MessageReceiver",
    "MessageSpool",
    "MetricSample",
    "MetricsExporter",
    "NO_FIELDS",
    "NotConnectedError",
    "NotPermittedError",
    "Offset",
    "OpenableInput",
    "Output",
    "ParsedComponent",
    "ParsedFields",
    "PerMessageProcessor",
    "Permissions",
    "Processor",
    "REQUIRED",
    "RateLimit",
    "RateLimitError",
    "RawMessages",
    "ReceivedInput",
    "ReplayableSource",
    "ScanInput",
    "ScanMark",
    "ScannedCut",
    "Scanner",
    "SendError",
    "Spec",
    "StreamerError",
    "SupportsPreflight",
    "SupportsProbe",
    "TraceExporter",
    "TraceSpan",
    "WakingSource",
    "WindowBuffer",
    "batching_problems",
    "bloblang_function",
    "bloblang_method",
    "build_buffer",
    "compile_interpolation",
    "compile_mapping",
    "current_permissions",
    "duration_field",
    "event_time_fields",
    "find_grid_problems",
    "make_invalid_rejection",
    "max_in_flight_field",
    "output_policy",
    "read_grid",
    "wait_for_access",
]

_NAMES_BY_MODULE: Final = {
    "streamer.bloblang": "Interpolation Mapping compile_interpolation compile_mapping",
    "streamer.bloblang.python_functions": "bloblang_function bloblang_method",
    "streamer.core.errors": "MessageError StreamerError",
    "streamer.core.execution": "Execution",
    "streamer.core.message": "Batch Message",
    "streamer.core.permissions": "NotPermittedError Permissions current_permissions",
    "streamer.sdk.api_version": "API_VERSION",
    "streamer.sdk.cache": "Cache CacheError KeyAlreadyExistsError KeyNotFoundError",
    "streamer.sdk.component_ref": "ComponentRef",
    "streamer.sdk.input.input_context": "InputContext MessageSpool OpenableInput",
    "streamer.sdk.input.received_input": "MessageReceiver ReceivedInput",
    "streamer.sdk.input.replayable": (
        "LatestOffset Limit Offset RawMessages ReplayableSource WakingSource"
    ),
    "streamer.sdk.input.scanning": "ByteStream ScanInput ScanMark ScannedCut Scanner",
    "streamer.sdk.monitoring": "MetricSample MetricsExporter TraceExporter TraceSpan",
    "streamer.sdk.output.protocols": (
        "BulkOutput NotConnectedError Output SendError max_in_flight_field"
    ),
    "streamer.sdk.output.rejection": "make_invalid_rejection",
    "streamer.sdk.processing": "Processor",
    "streamer.sdk.processing.batching": (
        "BATCHING_FIELD BatchPolicy batching_problems output_policy"
    ),
    "streamer.sdk.processing.per_message": "PerMessageProcessor",
    "streamer.sdk.rate_limit": "RateLimit RateLimitError wait_for_access",
    "streamer.sdk.spec": (
        "NO_FIELDS REQUIRED Access BuildContext Example Field Kind ParsedComponent ParsedFields "
        "Spec duration_field"
    ),
    "streamer.sdk.spec.checks": "SupportsPreflight SupportsProbe",
    "streamer.sdk.window_buffer.event_time": "WindowBuffer build_buffer",
    "streamer.sdk.window_buffer.fields": "event_time_fields",
    "streamer.sdk.window_buffer.grid": "find_grid_problems read_grid",
}
_MODULES: Final = {
    name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
