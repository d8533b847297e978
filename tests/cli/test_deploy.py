"""`floodmark deploy`: its units and manifests are what their supervisors take."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from floodmark import deploy
from floodmark.cli.main import run
from floodmark.errors import WrongUse

KUBERNETES = ("1.27", "1.34")


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "an app" / "sales.py"
    path.parent.mkdir()
    path.write_text("# a pipeline\n")
    return str(path)


def manifest(text: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make setup")
    value: dict[str, Any] = yaml.safe_load(text)
    return value


def service_section(unit: str) -> dict[str, str]:
    lines = unit.partition("[Service]")[2].partition("[Install]")[0].splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_a_systemd_unit_lets_the_batch_finish_and_heeds_the_exit_statuses(app: str) -> None:
    found = service_section(deploy("systemd", f"{app}:eu", user="spark", grace_seconds=900))
    assert found["KillMode"] == "mixed"
    assert found["TimeoutStopSec"] == "900"
    assert found["Restart"] == "on-failure"
    assert found["RestartPreventExitStatus"] == "1 2 3 4"
    assert found["User"] == "spark"
    words = shlex.split(found["ExecStart"])
    assert words[1:] == ["run", f"{app}:eu", "--restart", "on-failure"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_itself_takes_the_unit(app: str, tmp_path: Path) -> None:
    path = tmp_path / "sales.service"
    arguments = ["--set", 'region="50% of $HOME"', "--health-port", "8080"]
    path.write_text(deploy("systemd", app, arguments=arguments))
    assert verified(path) == ""
    path.write_text(path.read_text().replace("KillMode=mixed", "KillMode=mild"))
    assert "kill mode" in verified(path), "the check can fail"


def verified(unit: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # Other units of this machine are none of ours.
    return "".join(line for line in done.stderr.splitlines(True) if unit.name in line)


def test_a_kubernetes_manifest_is_one_driver_with_probes(app: str) -> None:
    text = deploy("kubernetes", "/app/sales.py", image="example/sales:1", grace_seconds=300)
    found = manifest(text)
    pod = found["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (found["kind"], found["spec"]["replicas"]) == ("StatefulSet", 1)
    assert pod["terminationGracePeriodSeconds"] == 300
    assert container["command"] == [
        *("floodmark", "run", "/app/sales.py", "--restart", "on-failure"),
        *("--health-port", "8080", "--health-host", "0.0.0.0"),
    ]
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    with pytest.raises(WrongUse, match="needs an image"):
        deploy("kubernetes", app)


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifest_fits_the_published_schema(version: str) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed: make setup"
    )
    found = manifest(deploy("kubernetes", "/app/sales.py", image="example/sales:1"))
    validate.validate(found, version, strict=True)
    found["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(validate.ValidationError):
        validate.validate(found, version, strict=True)


def test_a_yarn_service_is_one_container_that_runs_on_yarn(app: str) -> None:
    found = json.loads(deploy("yarn", app, name="sales-eu", cpus=2))
    (component,) = found["components"]
    assert found["name"] == "sales-eu"
    assert (component["number_of_containers"], component["restart_policy"]) == (1, "ON_FAILURE")
    command = shlex.split(component["launch_command"])
    assert command[:4] == ["cd", str(Path(app).parent), "&&", "exec"]
    assert command[-2:] == ["--master", "yarn"]


def test_the_command_line(app: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sales.service"
    options = ["--grace", "60", "-o", str(out), "--", "--trigger", "10s"]
    assert run(["deploy", "systemd", app, *options]) == 0
    assert "TimeoutStopSec=60" in out.read_text()
    assert "--trigger 10s" in out.read_text()
    assert run(["deploy", "systemd", "none.py"]) == 2
    assert "none.py: no such application file" in capsys.readouterr().err
    assert run(["deploy", "systemd", app, "--name", "Not A Name"]) == 2
