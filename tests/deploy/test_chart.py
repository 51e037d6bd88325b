"""The chart, rendered by the real helm: Kubernetes takes it, and streamer takes what it gives."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from streamer import __version__
from streamer.cli.main import cli
from streamer.config import lint_config
from tests.deploy.chart import (
    CHART,
    MANIFESTS,
    Manifest,
    helm,
    manifests,
    of_kind,
    plain,
    pods,
    template,
)
from tests.deploy.restricted import assert_restricted

pytestmark = pytest.mark.slow

VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
_NO_SCHEMA = {"ServiceMonitor"}  # of the Prometheus operator


@pytest.fixture(scope="module", params=VALUES, ids=lambda path: path.stem)
def values(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(scope="module")
def rendered(values: Path) -> list[Manifest]:
    return manifests(template("-f", values, release="lights"))


def render(name: str) -> list[Manifest]:
    return manifests(template("-f", Path(__file__).parent / "values" / f"{name}.yaml"))


def test_helm_lints_it(values: Path) -> None:
    done = helm("lint", "--strict", CHART, "-f", values)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout and "[ERROR]" not in done.stdout


@pytest.mark.parametrize("version", ["1.27", "1.34", "1.37"])
def test_kubernetes_takes_every_manifest(rendered: list[Manifest], version: str) -> None:
    for manifest in rendered:
        if manifest["kind"] not in _NO_SCHEMA:
            kubernetes_validate.validate(manifest, version, strict=True)


def test_a_wrong_manifest_would_be_noticed(rendered: list[Manifest]) -> None:
    (wrong,) = manifests(yaml.safe_dump(of_kind(rendered, "StatefulSet")[0]))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.34", strict=True)


def test_pods_are_restricted(rendered: list[Manifest]) -> None:
    assert pods(rendered)
    for pod in pods(rendered):
        assert_restricted(pod)
        assert pod["securityContext"]["runAsUser"] == 10001


def test_the_service_is_probed_and_bounded(rendered: list[Manifest]) -> None:
    (pod,) = (one["spec"]["template"]["spec"] for one in of_kind(rendered, "StatefulSet"))
    (container,) = pod["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["failureThreshold"] >= 3
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["cpu"]
    # More than the shutdown_timeout of a stream (20 s), and the end of Spark.
    assert pod["terminationGracePeriodSeconds"] >= 60


def test_the_command_line_is_one_that_the_program_takes(rendered: list[Manifest]) -> None:
    (service,) = of_kind(rendered, "StatefulSet")
    (container,) = service["spec"]["template"]["spec"]["containers"]
    name, *arguments = container["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    given = command.make_context(name, list(arguments)).params
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert given["paths"] == (mounts["streams"],)
    assert given["root"] == f"{mounts['service']}/service.yaml"
    # The image keeps there what a checkpoint in S3 leaves on the machine, too.
    assert given["checkpoints"].startswith((mounts["data"] + "/", "s3a://"))
    assert given["watcher"]
    assert not [mount for mount in container["volumeMounts"] if "subPath" in mount]


def test_the_configs_have_no_findings(rendered: list[Manifest], tmp_path: Path) -> None:
    for one in of_kind(rendered, "ConfigMap"):
        for name, text in (one["data"] or {}).items():
            if name != "executor.yaml":
                path = tmp_path / name
                path.write_text(text)
                assert [str(lint) for lint in lint_config(str(path))] == []


def test_everything_has_the_namespace_of_the_release_and_a_name_of_its_own(
    rendered: list[Manifest],
) -> None:
    names = [(one["kind"], one["metadata"]["name"]) for one in rendered]
    assert len(set(names)) == len(names)
    assert not [one for one in rendered if "namespace" in one["metadata"]]
    assert not [kind for kind, _ in names if kind.startswith("Cluster")]


def test_whatever_selects_the_pod_selects_only_it(rendered: list[Manifest]) -> None:
    (service,) = of_kind(rendered, "StatefulSet")
    labels = service["spec"]["template"]["metadata"]["labels"]
    ports = {p["name"] for p in service["spec"]["template"]["spec"]["containers"][0]["ports"]}
    executors = [
        yaml.safe_load(one["data"]["executor.yaml"])["metadata"]["labels"]
        for one in of_kind(rendered, "ConfigMap")
        if "executor.yaml" in one["data"]
    ]
    assert selects(service["spec"]["selector"]["matchLabels"], labels)
    for one in of_kind(rendered, "Service"):
        assert selects(one["spec"]["selector"], labels)
        assert not [found for found in executors if selects(one["spec"]["selector"], found)]
        assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports
    for one in of_kind(rendered, "PodDisruptionBudget"):
        assert selects(one["spec"]["selector"]["matchLabels"], labels)
    for one in of_kind(rendered, "ServiceMonitor"):
        scraped = [s for s in of_kind(rendered, "Service") if monitored(one["spec"]["selector"], s)]
        # By two of them each pod would be scraped twice, and sums would double.
        assert [s["metadata"]["name"] for s in scraped] == [one["metadata"]["name"]]
        ports = {port["name"] for s in scraped for port in s["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in one["spec"]["endpoints"]} <= ports
    governing = service["spec"]["serviceName"]
    assert governing in [one["metadata"]["name"] for one in of_kind(rendered, "Service")]


def monitored(selector: Mapping[str, Any], service: Manifest) -> bool:
    """Tell whether the Prometheus operator takes a Service for one of a monitor's."""
    labels = service["metadata"]["labels"]
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "DoesNotExist"
        if expression["key"] in labels:
            return False
    return selects(selector["matchLabels"], labels)


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return bool(selector) and selector.items() <= labels.items()


def test_only_with_executors_it_may_ask_kubernetes_for_anything() -> None:
    for name in ("default", "streams", "bare"):
        found = render(name)
        assert not of_kind(found, "Role") + of_kind(found, "RoleBinding")
        (service,) = of_kind(found, "StatefulSet")
        assert service["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    found = render("executors")
    (role,) = of_kind(found, "Role")
    allowed = {
        (r, verb) for rule in role["rules"] for r in rule["resources"] for verb in rule["verbs"]
    }
    assert {resource for resource, _ in allowed} == {"pods", "configmaps", "persistentvolumeclaims"}
    assert {group for rule in role["rules"] for group in rule["apiGroups"]} == {""}
    assert ("pods", "create") in allowed
    assert not {"*", "update", "escalate", "bind", "impersonate"} & {verb for _, verb in allowed}
    (binding,) = of_kind(found, "RoleBinding")
    (account,) = of_kind(found, "ServiceAccount")
    assert binding["subjects"][0]["name"] == account["metadata"]["name"]
    executor = pods(found)[1]
    assert executor["automountServiceAccountToken"] is False
    # What Spark fetches lies where an executor runs: not in the volume that all of them have.
    assert [container["workingDir"] for container in executor["containers"]] == ["/tmp"]
    claims = [
        volume["persistentVolumeClaim"] for volume in executor["volumes"] if volume["name"] != "tmp"
    ]
    (claim,) = of_kind(found, "StatefulSet")[0]["spec"]["volumeClaimTemplates"]
    assert claims == [{"claimName": f"{claim['metadata']['name']}-traffic-0"}]


def test_spark_is_told_of_the_ports_and_names_that_the_pod_has() -> None:
    found = render("executors")
    (service,) = of_kind(found, "StatefulSet")
    config = next(one for one in of_kind(found, "ConfigMap") if "service.yaml" in one["data"])
    spark = yaml.safe_load(config["data"]["service.yaml"])["spark"]
    assert spark["master"].startswith("k8s://")
    # Executors are of the same image: what they need is not packed, and is not unpacked.
    assert spark["environment"] == "installed"
    conf = spark["conf"]
    (container,) = service["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    assert conf["spark.driver.port"] == ports["driver"]
    assert conf["spark.driver.blockManager.port"] == ports["blocks"]
    assert conf["spark.kubernetes.container.image"] == container["image"]
    assert conf["spark.kubernetes.driver.pod.name"] == f"{service['metadata']['name']}-0"
    host, namespace, _ = conf["spark.driver.host"].split(".")
    assert (host, namespace) == (service["spec"]["serviceName"], "default")
    (driver,) = (s for s in of_kind(found, "Service") if s["metadata"]["name"] == host)
    assert driver["spec"]["clusterIP"] == "None"
    assert {port["name"] for port in driver["spec"]["ports"]} == {"driver", "blocks"}


def test_a_service_that_asks_who_asks_is_probed_without_credentials() -> None:
    (service,) = of_kind(render("streams"), "StatefulSet")
    (container,) = service["spec"]["template"]["spec"]["containers"]
    asked = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("liveness", "readiness")}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        "liveness": "/ping",
        "readiness": "/ready?of=service",
    }


def test_with_a_standby_two_pods_have_one_volume_and_none_waits_for_the_other() -> None:
    found = render("standby")
    (service,) = (one["spec"] for one in of_kind(found, "StatefulSet"))
    (claim,) = of_kind(found, "PersistentVolumeClaim")
    assert service["replicas"] == 2 and "volumeClaimTemplates" not in service
    pod = service["template"]["spec"]
    assert "--standby" in pod["containers"][0]["args"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    named = volumes["data"]["persistentVolumeClaim"]["claimName"]
    assert named == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert claim["metadata"]["annotations"] == {
        "helm.sh/resource-policy": "keep",
        "backup": "daily",
    }
    # One of them is never ready, while both are alive.
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready?of=service"
    assert container["livenessProbe"]["httpGet"]["path"] == "/ping"
    assert service["podManagementPolicy"] == "Parallel"
    assert service["updateStrategy"] == {"type": "OnDelete"}
    assert not of_kind(found, "PodDisruptionBudget")
    (term,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    selected = term["podAffinityTerm"]["labelSelector"]["matchLabels"]
    assert selects(selected, service["template"]["metadata"]["labels"])


def test_checkpoints_in_s3_take_no_volume() -> None:
    found = render("elsewhere")
    (service,) = (one["spec"] for one in of_kind(found, "StatefulSet"))
    pod = service["template"]["spec"]
    assert "--checkpoints=s3a://lights/streams" in pod["containers"][0]["args"]
    assert "volumeClaimTemplates" not in service and not of_kind(found, "PersistentVolumeClaim")
    assert {"name": "data", "emptyDir": {}} in pod["volumes"]
    executor = pods(found)[1]
    assert {"name": "data", "emptyDir": {}} in executor["volumes"]
    (container,) = executor["containers"]
    # Whoever writes there has the keys.
    assert container["envFrom"] == pod["containers"][0]["envFrom"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("replicas=2", "replicas"),
        ("checkpoints=/elsewhere", "checkpoints"),
        (
            "checkpoints=s3a://a/b,standby.enabled=true,persistence.accessMode=ReadWriteMany",
            "do not go together",
        ),
        ("config.input.stdin=x", "config"),
        ("streams.with space=x", "streams"),
        ("onReset=never", "onReset"),
        ("persistence.size=ten", "size"),
        ("executors.memory=4Gi", "memory"),
        ("executors.enabled=true", "ReadWriteMany"),
        ("standby.enabled=true", "ReadWriteMany"),
        (
            "standby.enabled=true,executors.enabled=true,persistence.accessMode=ReadWriteMany",
            "do not go together",
        ),
        (
            "standby.enabled=true,probes.readiness.path=/ping,persistence.accessMode=ReadWriteMany",
            "probes.readiness.path /ready?of=service or /ready",
        ),
    ],
)
def test_wrong_values_are_refused(value: str, said: str) -> None:
    done = helm("template", "x", CHART, "--kube-version", "1.34.0", "--set", value)
    assert done.returncode != 0
    assert said in done.stderr


def test_every_value_has_a_rule_and_every_rule_a_value() -> None:
    given = yaml.safe_load((CHART / "values.yaml").read_text())
    rules = yaml.safe_load((CHART / "values.schema.json").read_text())["properties"]
    assert set(given) == set(rules) - {"global"}
    for name, value in given.items():
        inner = rules[name].get("properties")
        if isinstance(value, dict) and inner:
            assert set(value) <= set(inner), name


def test_a_changed_service_config_starts_a_new_pod_and_a_changed_stream_does_not() -> None:
    def annotations(*arguments: str) -> Any:
        (service,) = of_kind(manifests(template(*arguments)), "StatefulSet")
        return service["spec"]["template"]["metadata"]["annotations"]

    assert annotations() == annotations("--set", "streams.cars=x")
    assert annotations() != annotations("--set", "config.logger.level=DEBUG")


def test_a_prometheus_of_another_namespace_is_let_in() -> None:
    def peers(*arguments: str) -> Any:
        found = manifests(template("--set", "serviceMonitor.enabled=true", *arguments))
        policy = of_kind(found, "NetworkPolicy")[0]
        return policy["spec"]["ingress"][0]["from"]

    own, there = {"podSelector": {}}, {"kubernetes.io/metadata.name": "monitoring"}
    assert peers() == [own]
    assert peers("--set", "serviceMonitor.prometheusNamespace=monitoring") == [
        own,
        {"namespaceSelector": {"matchLabels": there}},
    ]


def test_the_plain_manifests_are_the_charts() -> None:
    assert MANIFESTS.read_text() == plain(), "stale: python -m tests.deploy.chart"
    for manifest in manifests(MANIFESTS.read_text()):
        kubernetes_validate.validate(manifest, "1.34", strict=True)


def test_the_notes_name_the_streams_and_warn_of_an_open_api(tmp_path: Path) -> None:
    # Only an install prints notes, which takes a cluster: as a manifest they can be rendered.
    chart = tmp_path / "streamer"
    shutil.copytree(CHART, chart)
    notes = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "_notes.tpl").write_text(f'{{{{ define "notes" }}}}{notes}{{{{ end }}}}')
    shown = chart / "templates" / "notes.yaml"
    shown.write_text('notes: {{ include "notes" . | quote }}')
    done = helm(
        *("template", "lights", chart, "--kube-version", "1.34.0", "-s", "templates/notes.yaml"),
        *("--set", "api=true,streams.cars=x,serviceMonitor.enabled=true"),
    )
    said = yaml.safe_load(done.stdout)["notes"]
    assert "1 stream(s): cars" in said
    assert "whoever reaches the" in said
    assert "serviceMonitor.prometheusNamespace" in said
    assert "lights-streamer-0" in said


def test_the_values_on_the_page_make_a_stream_without_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("KAFKA_USER", "KAFKA_PASSWORD"):  # the Secret's
        monkeypatch.setenv(variable, "x")
    page = (CHART.parents[2] / "streamer" / "docs" / "kubernetes.md").read_text()
    (text,) = re.findall(r"^```\n(envFrom:.*?)^```$", page, re.M | re.S)
    given = tmp_path / "values.yaml"
    given.write_text(text)
    found = manifests(template("-f", given))
    (pod,) = pods(found)
    assert pod["containers"][0]["envFrom"] == yaml.safe_load(text)["envFrom"]
    streams = next(one["data"] for one in of_kind(found, "ConfigMap") if "cars.yaml" in one["data"])
    path = tmp_path / "cars.yaml"
    path.write_text(streams["cars.yaml"])
    assert [str(lint) for lint in lint_config(str(path))] == []


def test_the_versions_are_the_programs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
