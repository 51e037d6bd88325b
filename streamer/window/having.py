"""`having`: whether a window that closes is emitted, told by its first message."""

from __future__ import annotations

from streamer.message import Batch, Execution
from streamer.window.listing import Listing
from streamer.window.queries import Query


class Having:
    """Looks at the windows of one step."""

    def __init__(self, query: Query, t: int, listing: Listing) -> None:
        """Prepare.

        Args:
            query: the mapping, compiled.
            t: the micro-batch's time, ns, which is what `now()` gives.
            listing: is told of what is no boolean.
        """
        self._query = query
        self._ex = Execution(lambda: t)
        self._listing = listing

    def keeps(self, batch: Batch) -> bool:
        """Tell whether a window is emitted: only `true` will do."""
        try:
            found = self._query.query(batch, 0, self._ex)
        except Exception as e:  # whatever it ran into: it is not true
            self._listing.having(str(e) or repr(e))
            return False
        if type(found) is not bool:
            self._listing.having(f"expected a boolean, got {type(found).__name__}")
            return False
        return found
