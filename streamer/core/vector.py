"""Vectors of numbers for databases with columns of embeddings, such as pgvector's."""

from __future__ import annotations

from typing import Any


class Vector(list[Any]):
    """An array of numbers that a database takes as one value; elsewhere it is an array."""

    def to_text(self) -> str:
        """Return the vector as pgvector reads it, with numbers of 32 bits.

        Example:
            >>> Vector([1, 0.1]).to_text()
            '[1,0.1]'
        """
        # Imported here: every worker waits for its imports.
        import numpy as np

        numbers = (np.format_float_positional(np.float32(one), trim="-") for one in self)
        return f"[{','.join(numbers)}]"
