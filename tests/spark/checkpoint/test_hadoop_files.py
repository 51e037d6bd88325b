"""Small files in S3, as a lease is one: read while another machine replaces them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamer.spark.checkpoint.hadoop_files import HadoopFiles, HadoopPath
from tests.servers.s3 import BUCKET, S3, s3_server

pytestmark = [pytest.mark.slow, pytest.mark.spark]


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3]:
    with s3_server(tmp_path) as found:
        yield found


@pytest.fixture
def place(session: Any, s3: S3) -> Iterator[HadoopPath]:
    conf = session.sparkContext._jsc.hadoopConfiguration()
    settings = {name.removeprefix("spark.hadoop."): text for name, text in s3.conf().items()}
    for name, text in settings.items():
        conf.set(name, text)
    try:
        url = f"s3a://{BUCKET}/files"
        yield HadoopPath(HadoopFiles(session, url), url)
    finally:
        for name in settings:
            conf.unset(name)


def test_a_file_that_is_replaced_again_and_again_is_read_whole(place: HadoopPath, s3: S3) -> None:
    file, done = place / "lease" / "0000000001", threading.Event()
    file.put(b"0 .")
    replaced = 0

    def replace() -> None:
        nonlocal replaced
        while not done.is_set():
            replaced += 1
            # Of another length each time: a part of the next one is not it.
            body = b"%d " % replaced + b"x" * (replaced % 3) + b"."
            s3.client.put_object(Bucket=BUCKET, Key="files/lease/0000000001", Body=body)
            # A lease is replaced every four seconds; to read takes some hundredths of one.
            time.sleep(0.1)

    other = threading.Thread(target=replace)
    other.start()
    try:
        until, seen = time.monotonic() + 60, [0]
        while len(set(seen)) < 25 and time.monotonic() < until:
            seen.append(_number(file.read_bytes()))
    finally:
        done.set()
        other.join()
    print("replaced", replaced, "times, read", len(seen), "times")
    assert seen == sorted(seen) and len(set(seen)) == 25


def _number(body: bytes) -> int:
    """Return what was written, of which all has to be there."""
    number, _, rest = body.partition(b" ")
    assert rest == b"x" * (int(number) % 3) + b"."
    return int(number)
