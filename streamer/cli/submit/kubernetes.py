"""`streamer submit` to Kubernetes: Spark's own client makes a pod of the program's image.

The config and its files travel as Spark ships its own settings: in a ConfigMap that belongs to the
driver's pod and is mounted there. What is secret has no place in it.
"""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from streamer.cli.options import Options
from streamer.cli.submit.driver_bundle import DriverBundle, bundle_config
from streamer.cli.submit.spark_submit import spark_submit
from streamer.config import Config
from streamer.core.errors import StreamerError
from streamer.plan import Plan

_IMAGE_SETTING: Final = "spark.kubernetes.container.image"
_NAMESPACE_SETTING: Final = "spark.kubernetes.namespace"
_MAIN_FILE: Final = "local:///opt/streamer/share/main.py"
_FILES_DIRECTORY: Final = "/opt/spark/conf"
"""Where Spark mounts the files that lie beside its own settings."""
_INSTALLED_SETTING: Final = "spark.environment=installed"
_API_MASTER: Final = "k8s://https://kubernetes.default.svc"
_POD_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")

_POD_SECURITY: Final = {
    "runAsNonRoot": True,
    "runAsUser": 10001,
    "runAsGroup": 10001,
    "fsGroup": 10001,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY: Final = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
}


def submit_to_kubernetes(
    config: Config, options: Options, plan: Plan, name: str, notify: Callable[[str], None]
) -> str:
    """Have the driver's pod made; return its name.

    Args:
        config: what is to run.
        options: what the command line says of it.
        plan: the same.
        name: what the stream and its pods are called.
        notify: called with what to do with it.

    Raises:
        StreamerError: the config does not say enough, or Spark's client fails.
    """
    conf, pod = dict(config.spark["conf"]), f"{name}-{uuid.uuid4().hex[:8]}-driver"
    bundle = bundle_config(config, options, name, f"{_FILES_DIRECTORY}/")
    _check_submission(bundle, conf, name)
    with tempfile.TemporaryDirectory(prefix="streamer-submit-") as directory:
        beside, own = Path(directory, "conf"), Path(directory, "own")
        beside.mkdir()
        own.mkdir()
        for file, text in bundle.files.items():
            (beside / file).write_text(text)
        for role in ("driver", "executor"):
            template = own / f"{role}.json"
            template.write_text(json.dumps(make_pod_template(role)))
            conf.setdefault(f"spark.kubernetes.{role}.podTemplateFile", str(template))
        conf |= {
            "spark.kubernetes.driver.pod.name": pod,
            "spark.kubernetes.submission.waitAppCompletion": "false",
        }
        program = [_MAIN_FILE, *bundle.arguments, *_format_checkpoint(options)]
        program += ["-s", f"spark.master={_API_MASTER}", "-s", _INSTALLED_SETTING]
        spark_submit(plan.master, name, conf, program, beside)
    namespace = conf.get(_NAMESPACE_SETTING, "default")
    notify(
        f"look: kubectl -n {namespace} logs -f {pod}; stop: kubectl -n {namespace} delete pod {pod}"
    )
    return pod


def make_pod_template(role: str) -> dict[str, Any]:
    """Return the pod of the `driver` or of an `executor`, as the restricted standard wants it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "enableServiceLinks": False,
            **({"automountServiceAccountToken": False} if role == "executor" else {}),
            # Stopping finishes the micro-batch in hand.
            "terminationGracePeriodSeconds": 60,
            "securityContext": _POD_SECURITY,
            "containers": [
                {
                    "name": f"spark-kubernetes-{role}",
                    # Spark gives the arguments; the image's entry point is the command line.
                    "command": ["/usr/bin/tini", "-s", "--", "/opt/streamer/share/spark.sh"],
                    # Where Spark puts the files that it gets; the image's may be a volume of all.
                    "workingDir": "/tmp",
                    "securityContext": _CONTAINER_SECURITY,
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "4Gi"}}],
        },
    }


def _format_checkpoint(options: Options) -> tuple[str, ...]:
    return ("--checkpoint", options.checkpoint) if options.checkpoint else ()


def _check_submission(bundle: DriverBundle, conf: Mapping[str, str], name: str) -> None:
    if not _POD_NAME.fullmatch(name):
        raise StreamerError(
            f"the stream is called {name}, which Kubernetes does not take as a pod's name: give "
            "one of small letters, digits and hyphens by --name"
        )
    if not any(key in conf for key in (_IMAGE_SETTING, "spark.kubernetes.driver.container.image")):
        raise StreamerError(
            "submit to Kubernetes needs the program's image: name it in spark.conf, "
            f"{_IMAGE_SETTING}"
        )
    for variable in bundle.collect_variables():
        secret = f"spark.kubernetes.driver.secretKeyRef.{variable}"
        plain = f"spark.kubernetes.driverEnv.{variable}"
        if secret not in conf and plain not in conf:
            raise StreamerError(
                f"the config takes the environment variable {variable}, which a driver's pod does "
                f"not have: name a Secret for it in spark.conf, {secret}: SECRET:KEY, or a value "
                f"that anybody may see, {plain}"
            )
    for path in bundle.imported:
        raise StreamerError(
            f"a mapping imports {path}, which a driver's pod does not have: put it into the image "
            "or a volume, and name it by its path there"
        )
