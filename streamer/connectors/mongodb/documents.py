"""Documents of MongoDB as JSON: the Extended JSON of its specification."""

from __future__ import annotations

from typing import Any, Final

from streamer.core.errors import MessageError
from streamer.core.json.dump import dump_json

CANONICAL: Final = "canonical"

MAX_DOCUMENT_BYTES: Final = 16 << 20


def dump_document(document: Any, mode: str) -> bytes:
    """Return a document as Extended JSON.

    Args:
        document: as pymongo has it.
        mode: `canonical` or `relaxed`.
    """
    from bson import json_util

    options = (
        json_util.CANONICAL_JSON_OPTIONS if mode == CANONICAL else json_util.RELAXED_JSON_OPTIONS
    )
    text = json_util.dumps(
        document, json_options=options, separators=(",", ":"), ensure_ascii=False
    )
    return text.encode(errors="replace")


def load_document(value: Any, what: str) -> Any:
    """Return what a mapping has made as MongoDB has it.

    Args:
        value: a JSON value, which may be Extended JSON.
        what: the mapping, for the error.

    Raises:
        MessageError: it is no Extended JSON.
    """
    from bson import json_util
    from bson.errors import BSONError

    try:
        return json_util.loads(dump_json(value), json_options=_load_options())
    except (BSONError, ValueError, TypeError, OverflowError, ArithmeticError) as e:
        raise MessageError(f"executing {what}: {e}") from None


def _load_options() -> Any:
    from bson import json_util

    # Documents come in the order of their keys; a date stays what it is.
    return json_util.JSONOptions(tz_aware=True)
