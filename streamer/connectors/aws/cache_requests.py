"""Requests of caches on AWS, which are repeated with growing pauses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from streamer.connectors.aws.client import AwsClient
from streamer.connectors.aws.errors import AwsError
from streamer.core.errors import StreamerError
from streamer.core.execution import Execution
from streamer.sdk.backoff import pause_fields, read_pauses
from streamer.sdk.cache import CacheError
from streamer.sdk.spec import Field, ParsedFields

T = TypeVar("T")

_RETRIES: Final = "retries"

RETRIES_FIELD: Final = Field(
    _RETRIES,
    "object",
    "Retries of a failed request; the pauses grow by half each time.",
    advanced=True,
    children=pause_fields("1s", "5s", "30s"),
)


class CacheRequests:
    """The requests of one cache."""

    def __init__(
        self,
        parsed: ParsedFields,
        client: AwsClient,
        answers: Mapping[str, type[StreamerError]],
        final_codes: frozenset[str] = frozenset(),
    ) -> None:
        """Take the fields, with `RETRIES_FIELD`, and the client.

        Args:
            parsed: the fields.
            client: makes the requests.
            answers: errors by the codes of AWS that say something of a key.
            final_codes: codes of AWS behind which a repetition is in vain.
        """
        self._client = client
        self._backoff = read_pauses(parsed[_RETRIES])
        self._answers = answers
        self._final_codes = final_codes

    def run(self, request: Callable[[Any], T], ex: Execution) -> T:
        """Return what a request with boto3's client returns.

        Raises:
            CacheError: it fails, and goes on failing.
            StreamerError: what `answers` has for it.
        """
        pauses = self._backoff.pauses(ex.elapsed)
        while True:
            try:
                return self._client.run(request)
            except AwsError as error:
                if error.code in self._answers:
                    raise self._answers[error.code] from None
                is_final = error.is_content_refused or error.code in self._final_codes
                pause = None if is_final else next(pauses, None)
                if pause is None:
                    raise CacheError(str(error)) from None
                ex.sleep(pause)
