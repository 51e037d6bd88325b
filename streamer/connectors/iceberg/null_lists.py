"""Keeps null lists and maps of objects null, where PyIceberg fits rows to the columns of a table.

It makes lists and maps of objects anew, and forgets which of them are null: they are written, read
and rewritten as empty ones. Source: `ArrowProjectionVisitor` of PyIceberg 0.12.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import pyarrow as pa
from pyiceberg.io.pyarrow import ArrowProjectionVisitor

_MENDED: Final = "keeps_nulls"


def keep_null_lists() -> None:
    """Mend PyIceberg in this process, once. What keeps nulls by itself stays as it is."""
    for name in ("list", "map"):
        original = getattr(ArrowProjectionVisitor, name)
        if not hasattr(original, _MENDED):
            setattr(ArrowProjectionVisitor, name, _keep_nulls(original))


def _keep_nulls(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def make(visitor: Any, kind: Any, array: Any, *parts: Any) -> Any:
        made = original(visitor, kind, array, *parts)
        if made is None or made.null_count == array.null_count:
            return made
        # What copies values would forget the identifiers of their fields.
        offsets, nulls = pa.array(made.offsets.to_numpy().copy()), array.is_null()
        if pa.types.is_map(made.type):
            offsets = offsets.cast(pa.int32())
            return pa.MapArray.from_arrays(
                offsets, made.keys, made.items, type=made.type, mask=nulls
            )
        return type(made).from_arrays(offsets, made.values, type=made.type, mask=nulls)

    setattr(make, _MENDED, True)
    return make
