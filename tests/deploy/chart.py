"""Renders the chart with the real helm, and the plain manifests from it.

python -m tests.deploy.chart          write deploy/kubernetes/streamer.yaml anew
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.image import ROOT

CHART = ROOT / "deploy" / "helm" / "streamer"
MANIFESTS = ROOT / "deploy" / "kubernetes" / "streamer.yaml"
KUBERNETES = "1.34.0"
"""The version of Kubernetes that charts are rendered for; schemas of older ones are tried too."""

_HELM = Path(sys.executable).parent / "helm"
_HEAD = """\
# The service as plain manifests: `kubectl apply -n NAMESPACE -f streamer.yaml`.
#
# This is the chart deploy/helm/streamer with its default values; a test holds the two equal, and
# `python -m tests.deploy.chart` writes this file anew.
"""

Manifest = dict[str, Any]


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm."""
    return subprocess.run([_HELM, *arguments], capture_output=True, text=True, timeout=120)


def template(*arguments: str | Path, release: str = "streamer") -> str:
    """Return the chart's manifests, as helm renders them."""
    done = helm("template", release, CHART, "--kube-version", KUBERNETES, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifests(text: str) -> list[Manifest]:
    """Return the manifests of a file."""
    return [one for one in yaml.safe_load_all(text) if one is not None]


def of_kind(found: list[Manifest], kind: str) -> list[Manifest]:
    """Return those of one kind."""
    return [one for one in found if one["kind"] == kind]


def plain() -> str:
    """Return the text of deploy/kubernetes/streamer.yaml: without what only helm is told."""
    rendered = template()
    lines = [
        line
        for line in rendered.splitlines()
        if not line.startswith("# Source:")
        and "helm.sh/chart:" not in line
        and "app.kubernetes.io/managed-by:" not in line
    ]
    return _HEAD + "\n".join(lines) + "\n"


def pods(found: list[Manifest]) -> list[Mapping[str, Any]]:
    """Return the specs of all pods: of the service, and of executors."""
    specs = [one["spec"]["template"]["spec"] for one in of_kind(found, "StatefulSet")]
    for one in of_kind(found, "ConfigMap"):
        if "executor.yaml" in one["data"]:
            specs.append(yaml.safe_load(one["data"]["executor.yaml"])["spec"])
    return specs


if __name__ == "__main__":
    MANIFESTS.write_text(plain())
