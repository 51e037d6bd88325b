"""Tokens by which Amazon MSK knows an identity of IAM.

A token is the URL of a request to MSK that is signed and never sent, in base64. MSK takes it by
OAUTHBEARER, which both clients speak, for fifteen minutes.
"""

from __future__ import annotations

import base64
import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from streamer import __version__
from streamer.connectors.aws.client import make_session
from streamer.connectors.aws.errors import aws_errors
from streamer.connectors.aws.fields import REGION
from streamer.core.errors import StreamerError
from streamer.sdk.spec import ParsedFields

_SERVICE: Final = "kafka-cluster"
_LIFETIME_S: Final = 900
_ONE_AT_A_TIME: Final = threading.Lock()
"""boto3 does not let several threads make sessions at once."""


@dataclass(frozen=True)
class MskToken:
    """Signs tokens. It can be pickled: each process has its credentials from AWS by itself.

    Attributes:
        settings: the field `aws` of `sasl`.
    """

    settings: ParsedFields = field(repr=False)

    def __call__(self) -> str:
        """Return a token.

        Raises:
            StreamerError: there are no credentials, or no region.
        """
        try:
            with aws_errors():
                return self._sign()
        except StreamerError as error:
            raise StreamerError(f"the token of AWS_MSK_IAM cannot be signed: {error}") from None

    def _sign(self) -> str:
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest

        with _ONE_AT_A_TIME:
            session = self._session
            region = self.settings[REGION] or session.region_name
            credentials = session.get_credentials()
        if not region:
            raise StreamerError(
                "the region is not known; set sasl.aws.region to that of the cluster, such as "
                "eu-west-1"
            )
        if credentials is None:
            raise StreamerError(
                "there are no credentials; set sasl.aws.credentials, or have them where AWS's own "
                "tools look"
            )
        request = AWSRequest(
            "GET",
            f"https://kafka.{region}.amazonaws.com/",
            params={"Action": "kafka-cluster:Connect"},
        )
        frozen = credentials.get_frozen_credentials()
        SigV4QueryAuth(frozen, _SERVICE, region, expires=_LIFETIME_S).add_auth(request)
        # MSK shows it in its logs; it is not signed.
        agent = quote(f"spark-streamer/{__version__}", safe="")
        url = f"{request.url}&User-Agent={agent}"
        return base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")

    @cached_property
    def _session(self) -> Any:
        return make_session(self.settings)

    def __reduce__(self) -> Any:
        return MskToken, (self.settings,)
