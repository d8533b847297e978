"""Writes a Kubernetes manifest: a StatefulSet of one pod, which never has two drivers at once.

A Deployment replaces the pod of a node that does not answer, while the old pod may still run. A
StatefulSet waits until it is known that the old pod is gone.
"""

from __future__ import annotations

import json
from typing import Any

from floodmark.errors import WrongUse
from floodmark.supervisors.options import DeployOptions

_PROBES_PORT = 8080
_STARTS_WITHIN_SECONDS = 600
# The kubelet asks from outside the container.
_ANY_HOST = "0.0.0.0"  # nosec B104


def manifest(options: DeployOptions) -> str:
    """Return YAML for `kubectl apply -f`."""
    if options.image is None:
        raise WrongUse(
            "a pod needs an image that holds floodmark, pyspark, Java and the application",
            do="Name it: --image registry.example.com/orders:1",
        )
    port = options.health_port or _PROBES_PORT
    labels = {"app.kubernetes.io/name": options.name, "app.kubernetes.io/managed-by": "floodmark"}
    served = DeployOptions(**{**vars(options), "health_port": port})
    container = {
        "name": "driver",
        "image": options.image,
        "workingDir": options.folder,
        # Without a shell, process 1 is the driver, and receives SIGTERM.
        "command": served.run_command(_ANY_HOST),
        "ports": [{"name": "health", "containerPort": port}],
        "resources": {
            "requests": {"cpu": str(options.cpus), "memory": f"{options.memory_mb}Mi"},
            "limits": {"memory": f"{options.memory_mb}Mi"},
        },
        "startupProbe": _probe("/livez", failures=_STARTS_WITHIN_SECONDS // 10),
        "livenessProbe": _probe("/livez", failures=6),
        "readinessProbe": _probe("/readyz", failures=3),
    }
    value = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": options.name, "labels": labels},
        "spec": {
            "replicas": 1,
            "serviceName": options.name,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": options.grace_seconds,
                    "restartPolicy": "Always",
                    "containers": [container],
                },
            },
        },
    }
    return "\n".join(_yaml(value)) + "\n"


def _probe(path: str, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "health"},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _yaml(value: Any) -> list[str]:
    """Return lines of block YAML; texts are quoted as in JSON, which YAML accepts."""
    if isinstance(value, dict):
        return [line for key, one in value.items() for line in _entry(f"{key}:", one)]
    return [line for one in value for line in _item(one)]


def _entry(key: str, value: Any) -> list[str]:
    if not isinstance(value, (dict, list)):
        return [f"{key} {json.dumps(value)}"]
    return [key, *(f"  {line}" for line in _yaml(value))]


def _item(value: Any) -> list[str]:
    if not isinstance(value, (dict, list)):
        return [f"- {json.dumps(value)}"]
    first, *rest = _yaml(value)
    return [f"- {first}", *(f"  {line}" for line in rest)]
