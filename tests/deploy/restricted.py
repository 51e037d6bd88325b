"""What Kubernetes' Pod Security Standards call restricted, and a root that cannot be written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
VOLUMES |= {"projected", "secret"}


def assert_restricted(pod: Mapping[str, Any]) -> None:
    """Hold a pod's spec to the standard."""
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    for volume in pod.get("volumes", []):
        assert set(volume) - {"name"} <= VOLUMES
    for container in (*pod["containers"], *pod.get("initContainers", [])):
        rights = container["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["readOnlyRootFilesystem"] is True
        assert not rights.get("privileged")
        assert rights["capabilities"] == {"drop": ["ALL"]}
        assert not [port for port in container.get("ports", []) if "hostPort" in port]
        written = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
        assert written == {"/data", "/tmp"}
