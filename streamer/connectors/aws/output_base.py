"""Outputs that send records of a batch in requests of many; each record may fail by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from streamer.connectors.aws.client import READ_TIMEOUT_S, AwsClient, shared_client
from streamer.connectors.aws.errors import AwsError, describe_failure, refuses_content
from streamer.core.durations import SECOND
from streamer.core.errors import MessageError
from streamer.core.execution import Execution
from streamer.core.message import Batch
from streamer.sdk.backoff import BACKOFF, Backoff, backoff_fields, read_backoff
from streamer.sdk.output.protocols import MAX_IN_FLIGHT, NotConnectedError, Output, SendError
from streamer.sdk.output.rejection import Reason, Rejection, make_invalid_rejection
from streamer.sdk.output.wait_budget import pause_own_try
from streamer.sdk.processing.batching import BATCHING, output_policy
from streamer.sdk.spec import BuildContext, Field, ParsedFields


def retry_fields(retries: int = 0) -> tuple[Field, ...]:
    """Return the fields `max_retries` and `backoff` of outputs of AWS."""
    return backoff_fields(retries, "1s", "5s", "30s")


class OutgoingRecord(NamedTuple):
    """A record as it is sent.

    Attributes:
        target: where, such as the URL of a queue; records of one request have the same.
        entry: the record in the words of the service.
        size: its bytes, as the service counts them.
    """

    target: str
    entry: Any
    size: int


class RecordFailure(NamedTuple):
    """The failure of one record of a request.

    Attributes:
        text: why.
        is_content: whether it is refused for what is in it, so that a repetition is in vain.
    """

    text: str
    is_content: bool = False


def named_failures(answer: Mapping[str, Any]) -> dict[int, RecordFailure]:
    """Return what has failed by the answer of SQS or SNS, whose entries have places for IDs."""
    failed = answer.get("Failed", ())
    return {int(one["Id"]): _make_failure(one, "Code", "Message") for one in failed}


def placed_failures(results: Sequence[Mapping[str, Any]]) -> dict[int, RecordFailure]:
    """Return what has failed by the results of Kinesis or Firehose, one for each record."""
    return {
        place: _make_failure(one, "ErrorCode", "ErrorMessage")
        for place, one in enumerate(results)
        if one.get("ErrorCode")
    }


def _make_failure(answer: Mapping[str, Any], code: str, text: str) -> RecordFailure:
    described = describe_failure({"Code": answer[code], "Message": answer.get(text)})
    return RecordFailure(described, refuses_content(answer[code]))


class RecordTooLargeError(MessageError):
    """A record is larger than the service takes."""


class RecordService(Protocol):
    """The service that takes records.

    Attributes:
        name: as boto3 names it.
        max_records: of one request.
        max_bytes: of one request; a record that is larger alone is sent alone.
    """

    name: str
    max_records: int
    max_bytes: int

    def make_record(self, batch: Batch, index: int, ex: Execution) -> OutgoingRecord:
        """Return the record of a message.

        Raises:
            MessageError: it cannot be sent.
        """

    def put(self, client: Any, target: str, entries: Sequence[Any]) -> Mapping[int, RecordFailure]:
        """Send records by one request; return what has failed of them, by place."""

    def check(self, client: Any) -> str:
        """Check that the target of all messages is there; return the result in words."""


class _Request(NamedTuple):
    """Records that go in one request.

    Attributes:
        target: where.
        entries: the records, by the index of the message.
    """

    target: str
    entries: dict[int, Any]

    def subset(self, indices: Sequence[int]) -> _Request:
        return _Request(self.target, {index: self.entries[index] for index in indices})


_DEFAULT_BACKOFF: Final = Backoff(SECOND, 5 * SECOND, 30 * SECOND)
_UNSENT: Final = "not sent, since what comes before it has failed"


class RecordOutput(Output):
    """Sends the messages of batches as records of a service."""

    def __init__(
        self,
        service: RecordService,
        parsed: ParsedFields,
        context: BuildContext,
        read_timeout_s: float = READ_TIMEOUT_S,
    ) -> None:
        """Take the service, the fields, the worker that has the client, and a time for answers."""
        self.max_in_flight = parsed[MAX_IN_FLIGHT]
        self.policy = output_policy(parsed, context) if BATCHING in parsed else None
        self._service = service
        self._parsed = parsed
        self._backoff = read_backoff(parsed) if BACKOFF in parsed else _DEFAULT_BACKOFF
        # The fields say how often what has failed is sent again.
        self._client = shared_client(
            parsed, context, service.name, attempts=1, read_timeout_s=read_timeout_s
        )

    def connect(self, ex: Execution) -> None:
        """Check that the target is there."""
        try:
            self._client.run(self._service.check)
        except AwsError as error:
            raise SendError(str(error)) from None

    def probe(self) -> str:
        """Check that the target is there."""
        client = AwsClient(self._parsed, self._service.name)
        try:
            return client.run(self._service.check)
        finally:
            client.close()

    def send(self, batch: Batch, ex: Execution) -> None:
        """Send the records of a batch; those that fail are named."""
        failed: dict[int, str] = {}
        requests = list(self._cut(self._make_records(batch, failed, ex)))
        for number, request in enumerate(requests):
            lost = self._send_request(request, failed, ex)
            if lost is None:
                continue
            rest = [index for later in requests[number + 1 :] for index in later.entries]
            unsent = [index for index in request.entries if index in failed] + rest
            if len(unsent) == len(batch):
                raise NotConnectedError(lost)
            failed |= dict.fromkeys(rest, f"{_UNSENT}: {lost}")
            break
        if failed:
            raise SendError(next(iter(failed.values())), failed)

    def _make_records(
        self, batch: Batch, failed: dict[int, str], ex: Execution
    ) -> dict[int, OutgoingRecord]:
        records: dict[int, OutgoingRecord] = {}
        for index in range(len(batch)):
            try:
                records[index] = self._service.make_record(batch, index, ex)
            except RecordTooLargeError as error:
                failed[index] = Rejection(str(error), Reason.TOO_LARGE)
            except MessageError as error:
                failed[index] = make_invalid_rejection(str(error))
        return records

    def _cut(self, records: Mapping[int, OutgoingRecord]) -> Iterator[_Request]:
        """Put records into requests that the service takes, those of each target in order."""
        by_target: dict[str, dict[int, OutgoingRecord]] = {}
        for index, record in records.items():
            by_target.setdefault(record.target, {})[index] = record
        for target, of_target in by_target.items():
            entries: dict[int, Any] = {}
            size = 0
            for index, record in of_target.items():
                full = len(entries) >= self._service.max_records
                if entries and (full or size + record.size > self._service.max_bytes):
                    yield _Request(target, entries)
                    entries, size = {}, 0
                entries[index] = record.entry
                size += record.size
            yield _Request(target, entries)

    def _send_request(self, request: _Request, failed: dict[int, str], ex: Execution) -> str | None:
        """Send a request, and again what the service does not take for now.

        Args:
            request: the records.
            failed: gets why some have failed.
            ex: the run.

        Returns:
            Why nothing answers; None where something does.
        """
        pauses = self._backoff.pauses(ex.elapsed)
        while True:
            began = ex.elapsed()
            lost: str | None = None
            try:
                failures = self._put(request)
            except AwsError as error:
                if error.is_content_refused and len(request.entries) > 1:
                    return self._send_halves(request, failed, ex)
                if error.is_content_refused:
                    reason = Reason.TOO_LARGE if error.is_too_large else Reason.REFUSED
                    failed |= dict.fromkeys(request.entries, Rejection(str(error), reason))
                    return None
                lost = str(error) if error.is_connection_lost else None
                failures = dict.fromkeys(request.entries, RecordFailure(str(error)))
            for index, failure in failures.items():
                if failure.is_content:
                    failed[index] = Rejection(failure.text, Reason.REFUSED)
            again = {i: one.text for i, one in failures.items() if not one.is_content}
            if not again:
                return None
            pause = next(pauses, None)
            if pause is None or not pause_own_try(ex, pause, ex.elapsed() - began):
                failed |= again
                return lost
            request = request.subset(list(again))

    def _send_halves(self, request: _Request, failed: dict[int, str], ex: Execution) -> str | None:
        """Find by halving which records are refused; the others are sent."""
        indices = list(request.entries)
        middle = len(indices) // 2
        lost = self._send_request(request.subset(indices[:middle]), failed, ex)
        if lost is not None:
            failed |= dict.fromkeys(indices[middle:], f"{_UNSENT}: {lost}")
            return lost
        return self._send_request(request.subset(indices[middle:]), failed, ex)

    def _put(self, request: _Request) -> dict[int, RecordFailure]:
        indices = list(request.entries)
        entries = list(request.entries.values())
        failures = self._client.run(
            lambda client: self._service.put(client, request.target, entries)
        )
        return {indices[place]: failure for place, failure in failures.items()}
