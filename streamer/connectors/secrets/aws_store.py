"""Secrets in AWS Secrets Manager: `aws-secretsmanager://REGION/PREFIX`, or `aws://…` as Connect."""

from __future__ import annotations

from typing import Any, Final

from streamer.connectors.secrets.store import TIMEOUT_S, SecretError, get_field, split_name

_ENDPOINT_PREFIX: Final = "secretsmanager."
_ENDPOINT_SUFFIX: Final = ".amazonaws.com"


class AwsStore:
    """Reads secrets with GetSecretValue; credentials come from the places of Amazon's SDK."""

    def __init__(self, host: str, prefix: str) -> None:
        """Take where secrets are; nothing is connected yet.

        Args:
            host: a region, or the host of its endpoint; empty for the region of the environment.
            prefix: stands before the names of secrets.
        """
        self._region = host.removeprefix(_ENDPOINT_PREFIX).removesuffix(_ENDPOINT_SUFFIX)
        self._prefix = prefix
        self._client: Any = None

    def get(self, name: str) -> str | None:
        """Return a secret's text, or a field of it; see `SecretStore.get`."""
        from botocore.exceptions import BotoCoreError, ClientError

        parts = split_name(name, self._prefix)
        if parts is None:
            return None
        try:
            answer = self._connect().get_secret_value(SecretId=parts.key)
        except ClientError as e:
            code = e.response.get("Error", {}).get("Code", "")
            if code == "ResourceNotFoundException":
                return None
            raise SecretError(
                f"AWS Secrets Manager does not give {parts.key}: {code or 'no reason'}"
            ) from None
        except (BotoCoreError, ValueError) as e:
            raise SecretError(
                f"AWS Secrets Manager cannot be asked for {parts.key}: {type(e).__name__}: {e}"
            ) from None
        try:
            text = answer.get("SecretString")
            text = bytes(answer["SecretBinary"]).decode() if text is None else text
        except (KeyError, UnicodeDecodeError):
            raise SecretError(f"the secret {parts.key} is not UTF-8") from None
        return get_field(text, parts.fields)

    def _connect(self) -> Any:
        if self._client is None:
            import boto3
            from botocore.config import Config

            self._client = boto3.session.Session().client(
                "secretsmanager",
                region_name=self._region or None,
                config=Config(
                    connect_timeout=TIMEOUT_S,
                    read_timeout=TIMEOUT_S,
                    retries={"mode": "standard", "total_max_attempts": 3},
                ),
            )
        return self._client
