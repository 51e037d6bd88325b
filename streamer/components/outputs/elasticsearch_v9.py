"""`elasticsearch_v9`: indexes documents in Elasticsearch."""

from __future__ import annotations

from typing import Final

from streamer.connectors.search.elasticsearch_spec import ACTIONS, make_spec
from streamer.connectors.search.output_base import SearchOutput
from streamer.sdk.spec import BuildContext, ParsedFields, Spec

SPEC: Final[Spec] = make_spec("elasticsearch_v9")


def build(parsed: ParsedFields, context: BuildContext) -> SearchOutput:
    """Compile the fields; nothing is connected yet."""
    return SearchOutput(parsed, context, ACTIONS)
