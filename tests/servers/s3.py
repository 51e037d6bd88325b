"""A simulated S3, with a bucket in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import lasting_port, running

KEY, SECRET = "someone", "s3-secret-of-the-test"
BUCKET = "lights"


@dataclass(frozen=True)
class S3:
    """Where it answers.

    Attributes:
        url: its endpoint.
        client: boto3's.
        pid: its process.
    """

    url: str
    client: Any
    pid: int

    def conf(self) -> dict[str, str]:
        """Return Spark's settings for it."""
        return {
            "spark.hadoop.fs.s3a.endpoint": self.url,
            "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": KEY,
            "spark.hadoop.fs.s3a.secret.key": SECRET,
        }

    def names(self, prefix: str) -> list[str]:
        """Return the names of the objects below a prefix."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [one["Key"] for page in pages for one in page.get("Contents", ())]


@contextmanager
def s3_server(directory: Path) -> Iterator[S3]:
    """Run one with the bucket `lights`."""
    import boto3

    url = f"http://127.0.0.1:{(port := lasting_port())}"
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )

    def is_up() -> bool:
        try:
            client.list_buckets()
        except Exception:
            return False
        return True

    command = [str(Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with running(command, directory / "s3.log", is_up) as server:
        place = {"LocationConstraint": "eu-west-1"}
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
        yield S3(url, client, server.pid)
