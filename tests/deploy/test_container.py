"""The program in its container: the same command line, signals, exit codes and pipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.container import USER, Container
from tests.deploy.image import ROOT, Image
from tests.servers import free_port, running

# The first one builds the image, where there is none yet.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def traffic_light(tmp_path: Path) -> Path:
    """Return the README's config, with windows that are shorter."""
    config = yaml.safe_load((ROOT / "configs" / "traffic_light.yaml").read_text())
    config.pop("tests")
    config["buffer"]["system_window"].update(size="2s", allowed_lateness="0s")
    return written(tmp_path / "config.yaml", config)


def written(path: Path, config: object) -> Path:
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    path.chmod(0o644)
    return path


def metric(container: Container, name: str) -> float:
    """Return a metric as the program's own port says it, asked from within."""
    ask = (
        "import urllib.request as r;"
        "print(r.urlopen('http://127.0.0.1:4195/metrics').read().decode())"
    )
    said = container.run("/opt/streamer/bin/python", "-IS", "-c", ask).stdout
    return sum(float(v) for v in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", said, re.M))


def test_the_traffic_lights_run_are_healthy_stop_and_go_on(
    image: Image, tmp_path: Path, data: Path
) -> None:
    mounts = {"/config.yaml": traffic_light(tmp_path)}
    with Container(image, data, "-c", "/config.yaml", mounts=mounts) as container:
        assert not container.healthy()  # it has only just begun
        container.wait(lambda: container.output.count("\n") >= 5, "five lights were printed")
        container.wait(container.healthy, "it was healthy")
        who = container.run(
            "/opt/streamer/bin/python", "-IS", "-c", "import os; print(os.getuid())"
        )
        assert who.stdout == f"{USER}\n"
        before = metric(container, "input_received")
        code, said, log = container.stop()
    assert code == 0, log
    cars = [json.loads(line) for line in said.splitlines()]
    assert {car["traffic_light"] for car in cars} <= {f"light-{n}" for n in range(1, 6)}
    assert all(car["total_cars"] > 0 for car in cars)
    with Container(image, data, "-c", "/config.yaml", mounts=mounts) as container:
        container.wait(container.healthy, "it was healthy again")
        assert metric(container, "input_received") >= before > 0
        assert container.stop()[0] == 0


def test_a_pipe_goes_through_it(image: Image, data: Path) -> None:
    with Container(image, data, stdin=subprocess.PIPE) as container:
        code, said, log = container.ended("one\ntwo\n")
    assert (code, said) == (0, "one\ntwo\n"), log


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("-c", "/config.yaml"), 1, "inputs"),
        (("lint", "/config.yaml"), 1, "inputs"),
        (("-c", "/nowhere.yaml"), 1, "/nowhere.yaml"),
        (("--nonsense",), 1, "--nonsense"),
    ],
    ids=["run", "lint", "missing", "usage"],
)
def test_what_is_wrong_ends_it_as_it_ends_the_program(
    image: Image, tmp_path: Path, data: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    mounts = {"/config.yaml": written(tmp_path / "config.yaml", "inputs: {}\n")}
    with Container(image, data, *arguments, mounts=mounts) as container:
        ended, output, log = container.ended()
    assert ended == code
    assert said in output + log


def test_many_streams_come_from_a_directory_that_changes_as_a_configmap_does(
    image: Image, tmp_path: Path, data: Path
) -> None:
    configs = tmp_path / "configs"
    configs.mkdir()
    swap(configs, "1", {"a": stream("a")})
    arguments = ("streams", "--watcher", "--on-reset=discard", "--checkpoints=/data/checkpoints")
    with Container(image, data, *arguments, "/configs", mounts={"/configs": configs}) as container:
        container.wait(lambda: "from a" in container.output, "the first stream spoke")
        swap(configs, "2", {"a": stream("changed"), "b": stream("b")})
        container.wait(lambda: "from b" in container.output, "a new stream spoke")
        container.wait(lambda: "from changed" in container.output, "the changed stream spoke")
        container.wait(container.healthy, "it was healthy")
        assert container.stop()[0] == 0
    assert os.listdir(data / "checkpoints")


def stream(name: str) -> str:
    mapping = f'root = "from {name}"'
    return yaml.safe_dump({"input": {"generate": {"interval": "200ms", "mapping": mapping}}})


def swap(directory: Path, version: str, streams: dict[str, str]) -> None:
    """Change files as the kubelet does: all at once, by a link."""
    into = directory / f"..{version}"
    into.mkdir(mode=0o755)
    for name, text in streams.items():
        written(into / f"{name}.yaml", text)
        link = directory / f"{name}.yaml"
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}.yaml")
    draft = directory / "..data_tmp"
    draft.symlink_to(into.name)
    draft.rename(directory / "..data")


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[str]:
    """The address of a simulated S3 with the bucket `lights`."""
    import sys

    import boto3

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )

    def is_up() -> bool:
        try:
            client.list_buckets()
        except Exception:
            return False
        return True

    command = [str(Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with running(command, tmp_path / "s3.log", is_up):
        place = {"LocationConstraint": "eu-west-1"}
        client.create_bucket(Bucket="lights", CreateBucketConfiguration=place)
        yield url


_S3 = """
import os
from streamer.spark.session.session_start import start_session
session = start_session("s3", "local[1]", {
    "spark.hadoop.fs.s3a.endpoint": os.environ["S3"],
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
}, lambda *a: print(*a), "DEBUG")
session.range(1000).write.parquet("s3a://lights/cars", mode="overwrite")
print("read", session.read.parquet("s3a://lights/cars").count())
"""


def test_spark_writes_to_s3_and_reads_it(image: Image, data: Path, s3: str) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "S3": s3}
    with Container(
        image,
        data,
        command=["/opt/streamer/bin/python", "-c", _S3],
        environment=keys,
        host_network=True,
    ) as container:
        code, said, log = container.ended()
    assert code == 0, said + log
    assert "read 1000" in said


def test_spark_submit_starts_it_as_kubernetes_would(
    image: Image, tmp_path: Path, data: Path
) -> None:
    config = {"input": {"generate": {"count": 3, "interval": "", "mapping": 'root = "car"'}}}
    mounts = {
        "/config.yaml": written(tmp_path / "config.yaml", config),
        "/spark.conf": written(tmp_path / "spark.conf", "spark.master local[1]\n"),
    }
    with Container(
        image,
        data,
        *("driver", "--properties-file", "/spark.conf"),
        *("--class", "org.apache.spark.deploy.PythonRunner"),
        *("/opt/streamer/share/main.py", "-c", "/config.yaml"),
        command=["/usr/bin/tini", "-s", "--", "/opt/streamer/share/spark.sh"],
        environment={"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1", "SPARK_LOCAL_IP": "127.0.0.1"},
        mounts=mounts,
    ) as container:
        code, said, log = container.ended()
    assert code == 0, log
    assert said.count("car\n") == 3


def test_an_executor_looks_for_its_driver(image: Image, data: Path) -> None:
    told = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:9",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "executor-1",
        "SPARK_JAVA_OPT_0": "--add-modules=jdk.incubator.vector",
        "SPARK_JAVA_OPT_1": "-Dof.a.test=with a blank",
    }
    with Container(
        image,
        data,
        "executor",
        command=["/usr/bin/tini", "-s", "--", "/opt/streamer/share/spark.sh"],
        environment=told,
    ) as container:
        code, said, log = container.ended()
    assert code == 1
    assert "127.0.0.1:9" in said + log
