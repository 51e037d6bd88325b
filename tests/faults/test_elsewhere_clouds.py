"""A checkpoint in Cloud Storage, Azure or HDFS: kill -9, and a machine with an empty disk goes on.

One of them in each run, in turns. By hand, all of them: STREAMER_ELSEWHERE=all
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.azurite import ACCOUNT, KEY, azurite_server
from tests.servers.cloud_storage import cloud_storage_server
from tests.servers.hdfs import hdfs_cluster
from tests.slowness import wall_slowness

from .test_elsewhere import (
    BY_HAND,
    SEED,
    TAKEOVER,
    WAITS,
    changing_table,
    check_short,
    grown,
    machine,
    write_short,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CONTAINER = "lights"
_ANY_SETTING = {"spark.task.maxFailures": "1"}


@dataclass(frozen=True)
class Place:
    """A store that runs.

    Attributes:
        url: the checkpoint's.
        conf: Spark's settings for it.
        names: returns the names of what is there.
        environ: variables of the environment that name it.
        secret: what no log may have; empty for nothing.
    """

    url: str
    conf: Mapping[str, str]
    names: Callable[[], list[str]]
    environ: Mapping[str, str]
    secret: str = ""


@contextmanager
def cloud_storage_place(directory: Path) -> Iterator[Place]:
    with cloud_storage_server(directory) as server:
        server.make_bucket(CONTAINER)
        environ = {"STORAGE_EMULATOR_HOST": server.url}
        yield Place(f"gs://{CONTAINER}/ours/a", {}, lambda: server.names(CONTAINER), environ)


@contextmanager
def azure_place(directory: Path) -> Iterator[Place]:
    # Azurite has no `dfs` endpoint, so the connector is told to use that of blobs.
    host = f"{ACCOUNT}.dfs.core.windows.net"
    with azurite_server(directory) as server:
        server.make_container(CONTAINER)
        conf = {
            "fs.azure.abfs.endpoint": f"127.0.0.1:{server.port}",
            "fs.azure.always.use.https": "false",
            "fs.azure.account.hns.enabled": "false",
            "fs.azure.fns.account.service.type": "BLOB",
            "fs.azure.networking.library": "JDK_HTTP_URL_CONNECTION",
            f"fs.azure.account.key.{host}": KEY,
        }
        settings = {f"spark.hadoop.{name}": text for name, text in conf.items()}
        url = f"abfs://{CONTAINER}@{host}/ours/a"
        yield Place(url, settings, lambda: server.names(CONTAINER), {}, KEY)


@contextmanager
def hdfs_place(directory: Path) -> Iterator[Place]:
    with hdfs_cluster(directory) as cluster:
        yield Place(f"{cluster.url}/ours/a", {}, lambda: cluster.names("/ours"), {})


PLACES = {"gs": cloud_storage_place, "abfs": azure_place, "hdfs": hdfs_place}
OF_THIS_RUN = list(PLACES) if BY_HAND else [list(PLACES)[SEED % len(PLACES)]]


@pytest.mark.parametrize("kind", OF_THIS_RUN)
def test_a_machine_that_has_nothing_goes_on_in_another_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    print(f"STREAMER_SEED={SEED}")
    servers = tmp_path / "servers"
    servers.mkdir()
    with PLACES[kind](servers) as place:
        for name, text in place.environ.items():
            monkeypatch.setenv(name, text)
        out, config = tmp_path / "out.jsonl", write_short(tmp_path, {**_ANY_SETTING, **place.conf})
        with changing_table(tmp_path), machine(tmp_path / "one", config, path=place.url) as run:
            grown(run, out)
            grown(run, out)
            run.kill()
            logs = [run.log_path]
        assert any("/spark/commits/" in name for name in place.names())
        with changing_table(tmp_path), machine(tmp_path / "other", config, path=place.url) as run:
            run.wait_for(lambda: WAITS in run.messages(), 120, "for the lease")
            began = time.monotonic()
            with machine(tmp_path / "second", config, path=place.url) as second:
                run.wait_for(lambda: "Starting" in run.messages(), 120, "for the lease")
                print("seconds to the lease:", took := time.monotonic() - began)
                assert took < TAKEOVER * wall_slowness()
                assert second.finish(240) == 1
                assert f"uses the checkpoint {place.url} (" in second.messages()[-1]
            grown(run, out)
            assert run.stop() == 0
            logs.append(run.log_path)
        check_short(out)
        if place.secret:
            assert not any(place.secret in log.read_text() for log in logs), "a log has the key"
