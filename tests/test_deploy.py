"""What people copy from `deploy/` is what it says: systemd takes the unit, lifesigns takes every setting, names lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from lifesigns.wire.addresses import exposure

ROOT: Final = Path(__file__).parents[1]
DEPLOY: Final = ROOT / "deploy"


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())


def objects() -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "hubs.yaml").read_text()))


def object_named(kind: str, name: str = "lifesigns") -> Any:
    return next(one for one in objects() if (one["kind"], one["metadata"]["name"]) == (kind, name))


def is_taken(environ: dict[str, str]) -> set[str]:
    """lifesigns takes these settings; the keys that it took from there."""
    done = subprocess.run(
        [sys.executable, "-m", "lifesigns", "config", "check", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **environ},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sources = json.loads(done.stdout)["sources"]
    return {key for key, source in sources.items() if "LIFESIGNS_" in source}


def serves(command: str) -> None:
    """lifesigns takes the options of the command that starts a hub."""
    words = command.rpartition("exec ")[2].split()
    assert words[:2] == ["lifesigns", "serve"]
    done = subprocess.run(
        [sys.executable, "-m", *words, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "lifesigns.service").read_text()
    (tmp_path / "lifesigns.service").write_text(unit.replace("/usr/local/bin/lifesigns", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / "lifesigns.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or "lifesigns.service" in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_the_unit_starts_a_hub() -> None:
    unit = (DEPLOY / "systemd" / "lifesigns.service").read_text()
    start = re.search(r"^ExecStart=/usr/local/bin/(.+)$", unit, re.MULTILINE)
    assert start is not None
    serves(start[1])
    assert "Type=notify" in unit
    assert re.search(r"^WatchdogSec=\d+$", unit, re.MULTILINE)


def test_compose_has_three_hubs_on_one_store_and_one_bus() -> None:
    services = compose()["services"]
    hubs = [one for name, one in services.items() if name.startswith("hub-")]
    assert len(hubs) == 3
    assert hubs[0]["environment"] == hubs[1]["environment"] == hubs[2]["environment"]
    for folders in ([one["volumes"][0] for one in hubs], [one["ports"][0] for one in hubs]):
        assert len(set(folders)) == 3, "each has a state folder and a port of its own"
    for one in hubs:
        assert set(one["depends_on"]) <= set(services)
    for one in services.values():
        named = [volume.partition(":")[0] for volume in one.get("volumes", ())]
        assert {name for name in named if not name.startswith(".")} <= set(compose()["volumes"])
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", ())), (
            "open to this machine only"
        )


def test_lifesigns_takes_the_settings_of_compose() -> None:
    services = compose()["services"]
    said = {name: str(value) for name, value in services["hub-1"]["environment"].items()}
    environ = {
        name: re.sub(r"\$\{[A-Z_]+:-\}", "", re.sub(r"\$\{[A-Z_]+:\?[^}]*\}", "tiger", value))
        for name, value in said.items()
    }
    assert "$" not in str(environ)
    assert is_taken(environ) == {"store", "bus", "listen", "listen.behind_proxy"}
    assert exposure("http://hub-1:8710", environ) == "", "hubs forward to each other there"
    for server in ("postgres", "nats"):
        assert server in services


def test_the_image_starts_a_hub_with_the_keys_of_all() -> None:
    (command,) = re.findall(
        r'^CMD \["sh", "-c", "(.+)"\]$', (DEPLOY / "compose/Dockerfile").read_text(), re.M
    )
    serves(command)
    assert "/keys/tokens.key /keys/audit.key /var/lib/lifesigns/" in command


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_reads_the_manifests() -> None:
    done = subprocess.run(
        ["kubectl", "kustomize", str(DEPLOY / "kubernetes")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(list(yaml.safe_load_all(done.stdout))) == len(objects())


def test_names_in_the_manifests_lead_somewhere() -> None:
    hubs = object_named("StatefulSet")["spec"]
    pod = hubs["template"]
    labels = pod["metadata"]["labels"]
    assert hubs["selector"]["matchLabels"].items() <= labels.items()
    (hub,) = pod["spec"]["containers"]
    ports = {port["name"] for port in hub["ports"]}
    for name in ("lifesigns", hubs["serviceName"]):
        service = object_named("Service", name)["spec"]
        assert service["selector"].items() <= labels.items()
        assert {port["targetPort"] for port in service["ports"]} <= ports
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    volumes |= {one["metadata"]["name"] for one in hubs["volumeClaimTemplates"]}
    assert {one["name"] for one in hub["volumeMounts"]} == volumes
    assert hub["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}, "one that stands by lives"
    assert hub["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}, (
        "who reaches the judge is asked"
    )
    serves(hub["command"][2])


def test_lifesigns_takes_the_settings_of_the_manifests() -> None:
    (hub,) = object_named("StatefulSet")["spec"]["template"]["spec"]["containers"]
    secrets = {
        "store": "postgres://u:tiger@db/x",
        "bus": "nats://bus:4222",
        "dead-man-switch": "https://x.example/y",
    }
    environ = {
        one["name"]: one.get("value") or secrets[one["valueFrom"]["secretKeyRef"]["key"]]
        for one in hub["env"]
        if one["name"] != "POD_NAME"
    }
    # Kubernetes puts the name of the pod there: the first name is the one that other hubs reach this one by.
    names = environ["LIFESIGNS_LISTEN__NAMES"] = environ["LIFESIGNS_LISTEN__NAMES"].replace(
        "$(POD_NAME)", "lifesigns-0"
    )
    hubs = object_named("StatefulSet")["spec"]["serviceName"]
    assert names.split(",")[0] == f"lifesigns-0.{hubs}"
    assert exposure(f"http://lifesigns-0.{hubs}:8710", environ) == "", "hubs forward to each other there"
    network = {"store", "bus", "dead_man_switch", "listen", "listen.behind_proxy", "listen.names"}
    assert is_taken(environ) == network
