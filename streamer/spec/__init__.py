"""Field and component specs, parsed configs, and what a component is built with."""

from streamer.spec.access import Access
from streamer.spec.component import Example, Package, Runs, Spec, Status
from streamer.spec.context import BuildContext
from streamer.spec.field import REQUIRED, Field, Shape
from streamer.spec.kind import Kind
from streamer.spec.parsed import NOWHERE, MetricsMapping, Parsed, ParsedComponent, Place

__all__ = [
    "NOWHERE",
    "REQUIRED",
    "Access",
    "BuildContext",
    "Example",
    "Field",
    "Kind",
    "MetricsMapping",
    "Package",
    "Parsed",
    "ParsedComponent",
    "Place",
    "Runs",
    "Shape",
    "Spec",
    "Status",
]
