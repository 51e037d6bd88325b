"""Snapshots of tables of DynamoDB: segments are scanned side by side, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from streamer.connectors.aws.attribute_values import load_key, plain_item, save_key
from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import THROTTLED, AwsError
from streamer.connectors.spool.blocks import Record, pack_each
from streamer.connectors.spool.reconnecting_receiver import Session
from streamer.core.durations import SECOND
from streamer.core.json.dump import dump_json
from streamer.sdk.spec import ParsedFields

SEGMENTS: Final = "snapshot_segments"
PAGE_SIZE: Final = "snapshot_batch_size"
THROTTLE: Final = "snapshot_throttle"

_THROTTLED_S: Final = 1.0
"""Seconds for which DynamoDB is not asked again when it says that it is asked too often."""
_TABLE: Final = "table"
_COUNT: Final = "segments"
_KEYS: Final = "keys"
"""By the number of a segment the key behind which it goes on; None at its end."""


class _Page(NamedTuple):
    """Items of a segment, and the key of the last one; None at the end of the segment."""

    segment: int
    items: Sequence[Mapping[str, Any]]
    key: Mapping[str, Any] | None


class TableScan:
    """A snapshot of a table."""

    def __init__(
        self, parsed: ParsedFields, table: str, session: Session, progress: Mapping[str, Any]
    ) -> None:
        """Go on where a snapshot was interrupted.

        Args:
            parsed: the fields of the component.
            table: its name.
            session: writes to the disk.
            progress: the part of the mark that is about the snapshot.
        """
        self._client = AwsClient(parsed, "dynamodb")
        self._table = table
        self._session = session
        # The keys of an interrupted snapshot are those of its own segments.
        self._count: int = progress.get(_COUNT, parsed[SEGMENTS])
        self._keys: dict[str, Any] = dict(progress.get(_KEYS, {}))
        self._page_size: int = parsed[PAGE_SIZE]
        self._pause_s = parsed[THROTTLE] / SECOND
        self._pool = ThreadPoolExecutor(self._count, "aws_dynamodb_cdc snapshot")

    def run(self, make_mark: Callable[[Mapping[str, Any]], Any]) -> bool:
        """Read the rest; return whether all of it is on the disk.

        Args:
            make_mark: makes a mark of the part that is about the snapshot.

        Raises:
            AwsError: the table is not there, or nothing answers.
        """
        context = self._session.context
        while segments := self._list_open():
            if context.stopping:
                return False
            pages = list(self._pool.map(self._read_page, segments))
            self._session.set_connected()
            read = [page for page in pages if page is not None]
            for page in read:
                self._keys[str(page.segment)] = None if page.key is None else save_key(page.key)
            records = [self._make_record(page.segment, one) for page in read for one in page.items]
            progress = {_TABLE: self._table, _COUNT: self._count, _KEYS: dict(self._keys)}
            if read and not self._session.write(records, make_mark(progress)):
                return False
            if self._list_open():
                context.wait(self._pause_s if read else _THROTTLED_S)
        return True

    def _list_open(self) -> list[int]:
        """Return the segments that are not at their ends."""
        return [one for one in range(self._count) if self._keys.get(str(one), one) is not None]

    def _read_page(self, segment: int) -> _Page | None:
        """Return the next items of a segment; None when DynamoDB is to be asked later."""
        saved = self._keys.get(str(segment))
        start = {} if saved is None else {"ExclusiveStartKey": load_key(saved)}
        try:
            answer = self._client.run(
                lambda one: one.scan(
                    TableName=self._table,
                    Limit=self._page_size,
                    Segment=segment,
                    TotalSegments=self._count,
                    **start,
                )
            )
        except AwsError as error:
            if error.code in THROTTLED:
                return None
            raise
        return _Page(segment, answer["Items"], answer.get("LastEvaluatedKey"))

    def _make_record(self, segment: int, item: Mapping[str, Any]) -> Record:
        payload = {
            "tableName": self._table,
            "eventName": "READ",
            "dynamodb": {"newImage": plain_item(item)},
        }
        metadata = {
            "dynamodb_event_name": "READ",
            "dynamodb_table": self._table,
            "dynamodb_snapshot_segment": str(segment),
        }
        return pack_each([dump_json(payload)], metadata)

    def close(self) -> None:
        """End the threads, and close the connections."""
        self._pool.shutdown()
        self._client.close()
