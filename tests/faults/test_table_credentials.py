"""Credentials that expire while a stream writes tables, and stores that are away: every row once.

The tokens of a REST catalog last two seconds, so a stream needs many. Then no token is given, and
the keys of the object store expire, and it does not answer at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.faults.program import Program, program
from tests.faults.test_table_outages import (
    OUTAGE_S,
    WINDOWS_TO_DELTA,
    Outages,
    check_rows,
    open_delta,
    open_iceberg,
)
from tests.servers.expiring_rest import CLIENT, expiring_rest
from tests.servers.expiring_rest import SECRET as CLIENT_SECRET
from tests.servers.expiring_s3 import ExpiringS3, expiring_s3
from tests.servers.iceberg_rest import iceberg_rest
from tests.servers.s3 import BUCKET, KEY, S3, SECRET, s3_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

METHODS = ("GET", "PUT", "POST", "HEAD", "DELETE")
CONFIG = (
    WINDOWS_TO_DELTA
    + """\
      - iceberg:
          catalog:
            url: "{rest}"
            auth: {{ oauth2: {{ client_id: {client}, client_secret: "{client_secret}" }} }}
          namespace: demo
          table: windows
      - parquet: {{ path: 's3://{bucket}/rows/' }}
spark: {{ master: "local[1]" }}
"""
)


def wait_until(running: Program, condition: Callable[[], bool]) -> None:
    running.wait_for(condition, 120, "for tokens")


def wait_for_refusals(running: Program, store: ExpiringS3) -> None:
    """Wait until requests were refused, and for some time more."""
    before = store.refused
    wait_until(running, lambda: store.refused > before + 1)
    time.sleep(OUTAGE_S)


def test_tokens_expire_and_stores_are_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "tables.yaml"
    with (
        s3_server(tmp_path) as s3,
        iceberg_rest(tmp_path) as rest,
        expiring_s3(s3.url) as store,
        expiring_rest(rest.url) as catalog,
    ):
        config.write_text(
            CONFIG.format(
                bucket=BUCKET,
                s3=store.url,
                key=KEY,
                secret=SECRET,
                rest=catalog.url,
                client=CLIENT,
                client_secret=CLIENT_SECRET,
            )
        )
        env = {
            "AWS_ENDPOINT_URL_S3": store.url,
            "AWS_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }
        with program(config, tmp_path / "checkpoint", env=env) as running:
            outages = Outages(running, tmp_path)
            running.wait_running()
            outages.wait_for_windows(3)
            wait_until(running, lambda: catalog.given > 2 and catalog.expired > 1)
            with (
                catalog.refuse_clients(),
                outages.outage("outputs.2", "invalid_client", "the secret is another one"),
            ):
                pass
            outages.wait_for_windows(3)
            with store.expire(*METHODS):
                wait_for_refusals(running, store)
            outages.wait_for_windows(3)
            with store.be_away():
                wait_for_refusals(running, store)
            outages.wait_for_windows(3)
            assert running.stop() == 0
        check_rows(tmp_path, tables_of(s3, rest))
    logs = "".join(path.read_text() for path in tmp_path.glob("log-*.jsonl"))
    assert "xpired" in logs
    assert SECRET not in logs and CLIENT_SECRET not in logs and "token@" not in logs


def tables_of(s3: S3, rest: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table, read without the proxies."""
    objects = [
        s3.client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in s3.names("rows/")
    ]
    return {
        "delta": open_delta(s3).to_pyarrow_table().to_pylist(),
        "iceberg": open_iceberg(rest).scan().to_arrow().to_pylist(),
        "parquet": [
            row for one in objects for row in pq.ParquetFile(BytesIO(one)).read().to_pylist()
        ],
    }
