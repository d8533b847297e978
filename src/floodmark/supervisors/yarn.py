"""Writes a YARN service: one container with the driver; YARN starts its executors beside it.

YARN stops a container with SIGTERM, and kills it after the time that the cluster sets in
yarn.nodemanager.sleep-delay-before-sigkill.ms. A service cannot make that time longer; a batch that
was cut off runs again at the next start.
"""

from __future__ import annotations

import json
import shlex

from floodmark.supervisors.options import DeployOptions


def service(options: DeployOptions) -> str:
    """Return a Yarnfile for `yarn app -launch NAME FILE`."""
    master = [] if "--master" in options.arguments else ["--master", "yarn"]
    asked = DeployOptions(**{**vars(options), "arguments": (*options.arguments, *master)})
    component = {
        "name": "driver",
        "number_of_containers": 1,
        "launch_command": f"cd {shlex.quote(options.folder)} && exec {asked.shell_command()}",
        "resource": {"cpus": options.cpus, "memory": str(options.memory_mb)},
        "restart_policy": "ON_FAILURE",
    }
    if options.image is not None:
        component["artifact"] = {"id": options.image, "type": "DOCKER"}
    value = {"name": options.name, "version": "1", "components": [component]}
    return json.dumps(value, indent=2) + "\n"
