"""Field and component specs, parsed configs, and what a component is built with."""

from streamer.sdk.spec.access import Access
from streamer.sdk.spec.component import Example, Package, Runs, Spec, Status
from streamer.sdk.spec.context import BuildContext
from streamer.sdk.spec.field import NO_FIELDS, REQUIRED, Field, Shape, duration_field
from streamer.sdk.spec.kind import Kind
from streamer.sdk.spec.parsed_config import (
    NO_PLACE,
    BufferPlace,
    MetricsMapping,
    ParsedComponent,
    ParsedFields,
    Place,
)

__all__ = [
    "NO_FIELDS",
    "NO_PLACE",
    "REQUIRED",
    "Access",
    "BufferPlace",
    "BuildContext",
    "Example",
    "Field",
    "Kind",
    "MetricsMapping",
    "Package",
    "ParsedFields",
    "ParsedComponent",
    "Place",
    "Runs",
    "Shape",
    "Spec",
    "Status",
    "duration_field",
]
