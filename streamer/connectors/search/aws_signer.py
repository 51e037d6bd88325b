"""Signatures of AWS for requests to a search engine that AWS runs."""

from __future__ import annotations

import threading
from typing import Any, Final

from streamer.connectors.aws.client import make_session
from streamer.connectors.aws.errors import aws_errors
from streamer.connectors.http_client.errors import HttpError
from streamer.connectors.http_client.service_client import Headers, ServiceRequest, SignRequest
from streamer.connectors.search.fields import AWS
from streamer.core.errors import StreamerError
from streamer.sdk.spec import BuildContext, ParsedFields

_SERVICE: Final = "es"


class AwsSigner:
    """Signs requests with the credentials of a session. Threads may share it."""

    def __init__(self, parsed: ParsedFields) -> None:
        """Take the value of the field `aws`."""
        self._parsed = parsed
        self._lock = threading.Lock()
        self._session: Any = None

    def sign(self, request: ServiceRequest, url: str) -> Headers:
        """Return the headers of a request, with its signature.

        Raises:
            HttpError: there are no credentials, or no region.
        """
        try:
            with aws_errors():
                return self._sign(request, url)
        except StreamerError as error:
            raise HttpError(f"the request cannot be signed for AWS: {error}") from None

    def _sign(self, request: ServiceRequest, url: str) -> Headers:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        with self._lock:
            # boto3 does not let several threads make sessions at once.
            if self._session is None:
                self._session = make_session(self._parsed)
            credentials = self._session.get_credentials()
        region = self._session.region_name
        if credentials is None or not region:
            raise StreamerError(f"there {'is no region' if credentials else 'are no credentials'}")
        made = AWSRequest(request.method, url, data=request.body, headers=dict(request.headers))
        SigV4Auth(credentials.get_frozen_credentials(), _SERVICE, region).add_auth(made)
        return list(made.headers.items())


def make_signer(parsed: ParsedFields, context: BuildContext) -> SignRequest | None:
    """Return what signs the requests of an output; None where `aws` is not enabled."""
    if not parsed[AWS]["enabled"]:
        return None
    signer = context.worker_resource("aws", lambda: AwsSigner(parsed[AWS]))
    return signer.sign
