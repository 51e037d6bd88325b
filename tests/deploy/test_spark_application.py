"""The job for the Spark operator: restricted pods, and a command line that the program takes."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from streamer.cli.main import cli
from streamer.config import lint_config
from tests.deploy.chart import CHART, MANIFESTS, Manifest, manifests, of_kind
from tests.deploy.image import STEPS
from tests.deploy.restricted import assert_restricted

JOB = MANIFESTS.with_name("spark-application.yaml")


@pytest.fixture(scope="module")
def found() -> list[Manifest]:
    return manifests(JOB.read_text())


@pytest.fixture
def spec(found: list[Manifest]) -> Manifest:
    spec: Manifest = of_kind(found, "SparkApplication")[0]["spec"]
    return spec


def test_kubernetes_takes_what_it_knows_of(found: list[Manifest], spec: Manifest) -> None:
    for manifest in found:
        if manifest["kind"] != "SparkApplication":
            kubernetes_validate.validate(manifest, "1.34", strict=True)
    for role in ("driver", "executor"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}}
        template = {**pod, "spec": spec[role]["template"]["spec"]}
        kubernetes_validate.validate(template, "1.34", strict=True)


def test_pods_are_restricted_and_run_sparks_part_of_the_image(spec: Manifest) -> None:
    for role in ("driver", "executor"):
        pod = spec[role]["template"]["spec"]
        assert_restricted(pod)
        (container,) = pod["containers"]
        assert container["name"] == f"spark-kubernetes-{role}"
        assert container["command"][-1] == f"/opt/streamer/share/{(STEPS / 'spark.sh').name}"


def test_the_program_takes_its_arguments_and_its_config(
    found: list[Manifest], spec: Manifest, tmp_path: Path
) -> None:
    given = cli.make_context("streamer", list(spec["arguments"])).params
    # Executors are of the same image: what they need is not packed, and is not unpacked.
    assert "spark.environment=installed" in given["sets"]
    (container,) = spec["driver"]["template"]["spec"]["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert str(Path(given["config"]).parent) in mounts
    assert str(Path(given["checkpoint"]).parent) in mounts
    (config,) = of_kind(found, "ConfigMap")
    path = tmp_path / "config.yaml"
    path.write_text(config["data"][Path(given["config"]).name])
    assert [str(lint) for lint in lint_config(str(path))] == []


def test_the_versions_are_the_images(spec: Manifest) -> None:
    assert spec["sparkVersion"] == version("pyspark")
    image = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert spec["image"].endswith(f":{image}")
