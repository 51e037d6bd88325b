"""Tokens for files of tables in Google Cloud Storage: from a config, and made anew in time."""

from __future__ import annotations

import json
import pickle
from itertools import count
from pathlib import Path

import pytest

from streamer.connectors.iceberg.gcs_token import GcsToken, read_gcs_token
from streamer.connectors.iceberg.iceberg_table import CatalogConnection, IcebergClient
from streamer.core.permissions import ALL
from streamer.sdk.spec import ParsedFields
from tests.connectors.test_pubsub import make_key
from tests.servers.http import Asked, Reply, http_server


@pytest.mark.parametrize("seconds", [3_600, 60], ids=["lasting", "ending"])
def test_a_catalog_has_the_token_of_the_credentials(seconds: int, tmp_path: Path) -> None:
    numbers = count()

    def answer(asked: Asked) -> Reply:
        body = {"access_token": f"tok-{next(numbers)}", "expires_in": seconds}
        return Reply(200, json.dumps(body).encode())

    with http_server(answer) as server:
        info = {
            **{"type": "service_account", "client_email": "me@p.iam"},
            **{"private_key": make_key()[0], "token_uri": server.url},
        }
        key = tmp_path / "key.json"
        key.write_text(json.dumps(info))
        fields = {"credentials_file": str(key), "credentials_json": ""}
        token = read_gcs_token(ParsedFields({"gcp_cloud_storage": ParsedFields(fields)}), ALL)
        assert token is not None and not token.is_stale
        # A worker gets the credentials, and fetches a token of its own.
        copied = pickle.loads(pickle.dumps(token))
        assert isinstance(copied, GcsToken)
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/c.db",
            "warehouse": str(tmp_path),
        }
        connection = CatalogConnection("default", properties, copied)
        first = connection.open().properties
        assert first["gcs.oauth2.token"] == "tok-0"
        assert int(first["gcs.oauth2.token-expires-at"]) > 1_700_000_000_000
        client = IcebergClient(connection, "demo", "rows")
        assert client.load_columns() is None
        newest = connection.open().properties["gcs.oauth2.token"]
        assert (newest == "tok-0") == (seconds == 3_600)


def test_without_credentials_there_is_no_token() -> None:
    fields = ParsedFields({"credentials_file": "", "credentials_json": ""})
    assert read_gcs_token(ParsedFields({"gcp_cloud_storage": fields}), ALL) is None
    assert read_gcs_token(ParsedFields({"gcp_cloud_storage": None}), ALL) is None
