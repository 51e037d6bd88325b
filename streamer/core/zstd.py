"""Zstandard: the standard library's module from Python 3.14 on, and before it its backport.

Both have one interface. Import this where it is used: reading a config needs no compression.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdDecompressor, ZstdError, compress
else:
    from backports.zstd import CompressionParameter, ZstdDecompressor, ZstdError, compress

__all__ = ["CompressionParameter", "ZstdDecompressor", "ZstdError", "compress", "error_text"]

_LEAD = "Unable to decompress Zstandard data: "


def error_text(error: Exception) -> str:
    """Return what the library says of data that it cannot decompress, without its lead."""
    return str(error).removeprefix(_LEAD)
