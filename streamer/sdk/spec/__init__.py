"""Field and component specs, parsed configs, and what a component is built with."""

from streamer.sdk.spec.access import Access
from streamer.sdk.spec.component import (
    NO_FIELDS,
    NO_PLACE,
    REQUIRED,
    BufferPlace,
    Example,
    Field,
    Kind,
    MetricsMapping,
    Package,
    ParsedComponent,
    ParsedFields,
    Place,
    Runs,
    Shape,
    SharedFields,
    Spec,
    Status,
    duration_field,
)
from streamer.sdk.spec.context import BuildContext
from streamer.sdk.spec.sourced_text import BadTextError, SourcedText, TextPlace, TextProblem

__all__ = [
    "NO_FIELDS",
    "NO_PLACE",
    "REQUIRED",
    "Access",
    "BadTextError",
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
    "SharedFields",
    "SourcedText",
    "Spec",
    "Status",
    "TextPlace",
    "TextProblem",
    "duration_field",
]
