"""Errors of AWS, by what is to be done about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from streamer.core.errors import StreamerError
from streamer.core.redaction import redact_urls

_MAX_TEXT: Final = 500

_CONTENT_CODES: Final = frozenset(
    (
        *("InvalidMessageContents", "InvalidAttributeValue", "InvalidParameterValue"),
        *("InvalidParameterValueException", "InvalidParameter", "ParameterValueInvalid"),
        *("InvalidArgumentException", "InvalidRequestContentException", "SerializationException"),
        *("ValidationException", "ValidationError", "ValidationErrorException"),
        *("ItemCollectionSizeLimitExceededException", "KeyTooLongError", "InvalidTag"),
    )
)
_SIZE_CODES: Final = frozenset(
    (
        *("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong"),
        *("MessageTooLong", "RequestTooLargeException", "RequestEntityTooLargeException"),
        *("EntityTooLarge", "MetadataTooLarge"),
    )
)
_ABSENT_CODES: Final = frozenset(
    (
        *("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
        *("ResourceNotFoundException", "NotFound", "NotFoundException", "NoSuchBucket"),
    )
)

THROTTLED: Final = frozenset(
    (
        *("ProvisionedThroughputExceededException", "LimitExceededException"),
        *("KMSThrottlingException", "ThrottlingException", "Throttling"),
    )
)
"""Codes of a service that is to be asked again later."""


class AwsError(StreamerError):
    """A request was not answered, or was refused.

    Attributes:
        code: of the service, such as `ResourceNotFoundException`; empty without an answer.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.absent = code in _ABSENT_CODES

    @property
    def is_connection_lost(self) -> bool:
        """Whether nothing has answered."""
        return not self.code

    @property
    def is_content_refused(self) -> bool:
        """Whether the service refuses what the request contains."""
        return refuses_content(self.code)

    @property
    def is_too_large(self) -> bool:
        """Whether the request is larger than the service takes."""
        return self.code in _SIZE_CODES


class InvalidRequestError(AwsError):
    """A value cannot be sent; it has never left this machine."""

    @property
    def is_connection_lost(self) -> bool:
        """Whether nothing has answered: nothing was asked."""
        return False

    @property
    def is_content_refused(self) -> bool:
        """Whether what the request contains is refused."""
        return True


def refuses_content(code: str) -> bool:
    """Return whether a service's code says that it refuses what a record contains."""
    return code in _CONTENT_CODES or code in _SIZE_CODES


def describe_failure(answer: Mapping[str, Any]) -> str:
    """Return code and message of a service's error, of bounded length."""
    code, text = str(answer.get("Code", "")), str(answer.get("Message") or "").strip()
    return redact_urls(f"{code}: {text}" if code and text else code or text)[:_MAX_TEXT]


@contextmanager
def aws_errors() -> Iterator[None]:
    """Turn the errors of boto3 into `AwsError`s.

    Raises:
        AwsError: for each error of the client, the service or the network.
    """
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        yield
    except ClientError as error:
        answer = error.response.get("Error", {})
        code = str(answer.get("Code", "")) or "Unknown"
        raise AwsError(describe_failure(answer) or code, code) from None
    except ParamValidationError as error:
        raise InvalidRequestError(str(error)[:_MAX_TEXT], "ParamValidation") from None
    except (BotoCoreError, OSError) as error:
        raise AwsError(redact_urls(str(error) or type(error).__name__)[:_MAX_TEXT]) from None
