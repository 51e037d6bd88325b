"""URLs of objects in stores, where a field takes the path of a file: `s3://bucket/key` and others.

They are parsed here without a client; `connectors/locations` opens them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

S3, GCS, AZURE, HDFS = "s3", "gcs", "azure", "hdfs"
_STORES: Final = {
    "s3": S3,
    "s3a": S3,
    "gs": GCS,
    "abfs": AZURE,
    "abfss": AZURE,
    "az": AZURE,
    "hdfs": HDFS,
}
_PATTERN: Final = re.compile(r"([a-z][a-z0-9+.-]*)://([^/]*)/?(.*)", re.DOTALL)
_HDFS_PORT: Final = 8020
"""The port of a NameNode, where a URL names none, as in Hadoop."""

EXPECTED: Final = (
    "s3://bucket/key, gs://bucket/key, abfss://container@account.dfs.core.windows.net/key, "
    "az://container/key or hdfs://namenode:8020/path"
)
"""The forms of URLs, for messages."""


class Location(NamedTuple):
    """A place in a store.

    Attributes:
        store: its kind: `S3`, `GCS`, `AZURE` or `HDFS`.
        scheme: as it was written.
        host: what stands before the path: a bucket, or a container and an account.
        key: the rest, without a slash at its beginning.
    """

    store: str
    scheme: str
    host: str
    key: str

    @property
    def root(self) -> str:
        """The URL of the bucket, which ends with a slash."""
        return f"{self.scheme}://{self.host}/"

    @property
    def bucket(self) -> str:
        """The bucket or container; of HDFS, host and port of the NameNode."""
        if self.store == HDFS:
            return self.host if re.search(r":\d+$", self.host) else f"{self.host}:{_HDFS_PORT}"
        return self.host.partition("@")[0]

    @property
    def account(self) -> str:
        """The account of Azure; empty where the URL has none."""
        return self.host.partition("@")[2].partition(".")[0]


def is_location(path: str) -> bool:
    """Return whether a path is the URL of an object."""
    match = _PATTERN.match(path)
    return match is not None and match[1] in _STORES


def parse_location(path: str) -> Location:
    """Return the place that a URL names.

    Raises:
        ValueError: it is none; the text says what is wrong.
    """
    match = _PATTERN.fullmatch(path)
    if match is None or match[1] not in _STORES:
        raise ValueError(f"is {path!r}; expected {EXPECTED}")
    made = Location(_STORES[match[1]], *match.groups())
    has_user = "@" in made.host
    if has_user and made.store != AZURE:
        # What stands before it may be a password, so it is not shown.
        raise ValueError(f"has credentials in a URL of {made.scheme}://; leave them out")
    if not made.host or not made.bucket:
        raise ValueError(f"is {path!r}, which names no bucket; expected {EXPECTED}")
    if made.store == HDFS and not re.fullmatch(r"[\w.-]+(:\d{1,5})?|\[[0-9a-f:]+\]:\d+", made.host):
        raise ValueError(f"is {path!r}; expected hdfs://namenode:8020/path")
    if has_user and not re.fullmatch(r"[^@]+@[a-z0-9]{3,24}\.(dfs|blob)\.[a-z0-9.-]+", made.host):
        raise ValueError(
            f"is {path!r}; expected abfss://container@account.dfs.core.windows.net/key"
        )
    return made


def location_problem(path: str) -> str | None:
    """Return what is wrong with a path, if it is a URL of an object; None for any other path."""
    if not is_location(path):
        return None
    try:
        made = parse_location(path)
    except ValueError as error:
        return str(error)
    return None if made.key.strip("/") else f"is {path!r}, which names no object in it"
