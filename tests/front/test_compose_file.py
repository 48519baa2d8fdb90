"""The compose file parses, and everything it names exists: commands, settings, build files."""

import shutil
import subprocess

import pytest
from ruamel.yaml import YAML

from processes import ROOT
from service.settings import Settings

COMPOSE = YAML(typ="safe").load(ROOT / "docker-compose.yml")
OURS = {name: service for name, service in COMPOSE["services"].items() if "build" in service}


def test_every_part_of_the_distributed_mode_is_there() -> None:
    assert {"postgres", "redis", "migrate", "api", "worker", "trainer"} <= set(COMPOSE["services"])
    assert COMPOSE["services"]["trainer"]["profiles"] == ["trainer"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_commands_and_settings_exist(name: str) -> None:
    from typer.main import get_command

    from taskmill.cli.app import app

    command = get_command(app)
    assert OURS[name]["command"][0] in command.commands  # type: ignore[attr-defined]
    known = {f"TASKMILL_{field.upper()}" for field in Settings.model_fields} | {"TASKMILL_KEY"}
    assert set(OURS[name]["environment"]) <= known


def test_dependencies_are_services() -> None:
    for service in COMPOSE["services"].values():
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"])


def test_the_dockerfile_copies_every_package() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for folder in ("taskmill", "service", "factory", "verifiers", "sandbox", "trainer", "migrations", "client"):
        assert f"COPY {folder} {folder}\n" in text


def test_docker_compose_agrees() -> None:
    found = shutil.which("docker") and subprocess.run(
        ["docker", "compose", "version"], capture_output=True, timeout=30, check=False
    )
    if not found or found.returncode:
        pytest.skip("no docker compose here; `apt-get install docker-compose-plugin` of Docker's own archive adds it")
    command = ["docker", "compose", "-f", str(ROOT / "docker-compose.yml"), "config", "-q"]
    done = subprocess.run(command, env={"TASKMILL_SECRET": "x", "PATH": "/usr/bin:/bin"}, timeout=60, check=False)
    assert done.returncode == 0
