"""Errors of Azure, by what is to be done about them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls
from streamer.sdk.output.each_message import MessageRefusedError, ReceiverLostError
from streamer.sdk.output.rejection import Reason

_MAX_TEXT: Final = 500
# Clients put the query of a URL into their texts, and a signature is in it.
_QUERY: Final = re.compile(r"\?[^\s'\")]*")
_CONTENT_CODES: Final = frozenset(
    (
        *("InvalidResourceName", "InvalidUri", "OutOfRangeInput", "InvalidBlobType"),
        *("InvalidMetadata", "EmptyMetadataKey", "InvalidHeaderValue", "InvalidInput"),
        *("PathConflict", "InvalidPath", "ResourceTypeMismatch", "BlockCountExceedsLimit"),
        *("PathAlreadyExists", "UnsupportedHeader", "InvalidPropertyName"),
    )
)
_SIZE_CODES: Final = frozenset(("RequestBodyTooLarge", "MetadataTooLarge"))


class AzureError(StreamerError):
    """A request was refused.

    Attributes:
        code: of the service, such as `ContainerNotFound`.
        status: of the answer; 0 for none.
    """

    def __init__(self, text: str, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


@contextmanager
def azure_errors() -> Iterator[None]:
    """Turn the errors of Azure's clients into those of this program.

    Raises:
        MessageRefusedError: for the content of a request.
        ReceiverLostError: nothing has answered.
        AzureError: for any other refusal.
    """
    from azure.core.exceptions import AzureError as ClientError
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

    try:
        yield
    except HttpResponseError as error:
        given = getattr(error, "error_code", None) or ""
        code = str(getattr(given, "value", given))
        status = int(error.status_code or 0)
        text = _describe(error, code)
        if code in _SIZE_CODES or status == 413:
            raise MessageRefusedError(text, Reason.TOO_LARGE) from None
        if code in _CONTENT_CODES:
            raise MessageRefusedError(text) from None
        if not status and isinstance(error, ClientAuthenticationError):
            raise ReceiverLostError(text) from None
        raise AzureError(text, code, status) from None
    except ClientError as error:
        raise ReceiverLostError(_describe(error, "")) from None
    except ValueError as error:
        # Names and signatures that the clients themselves refuse.
        raise AzureError(_clean(str(error))) from None


def _describe(error: Any, code: str) -> str:
    lines = [line for line in str(error.message or error).splitlines() if line.strip()]
    text = _clean(lines[0] if lines else type(error).__name__)
    return f"Azure Storage answers {code}: {text}" if code else f"Azure Storage: {text}"


def _clean(text: str) -> str:
    return redact_urls(_QUERY.sub("", " ".join(text.split())))[:_MAX_TEXT]
