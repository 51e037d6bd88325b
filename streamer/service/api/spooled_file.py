"""An answer that is a file, sent as fast as its reader takes it and gone when it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import BinaryIO, Final

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

SEND_TIMEOUT_S: Final = 600.0
"""How long a reader may take for all of it."""

_CHUNK_BYTES: Final = 256 << 10


class SpooledFile(web.StreamResponse):
    """An answer that is a file: it lies on the disk, and closes when it is sent or given up."""

    def __init__(self, file: BinaryIO, size: int, headers: Mapping[str, str]) -> None:
        """Take the file, which is sent from its beginning, and its bytes."""
        super().__init__(headers={**headers, hdrs.CONTENT_LENGTH: str(size)})
        self._file = file

    @property
    def is_open(self) -> bool:
        """Whether the file still takes room on the disk."""
        return not self._file.closed

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the headers and the file.

        Raises:
            TimeoutError: its reader is too slow.
        """
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                writer = await super().prepare(request)
                while chunk := await asyncio.to_thread(self._file.read, _CHUNK_BYTES):
                    await self.write(chunk)
                await self.write_eof()
            return writer
        finally:
            self._file.close()
