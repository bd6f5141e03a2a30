"""The first start of the containers creates the secrets, and the proxy gets its certificate."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.conftest import SECRET, free_port, wait_until
from tests.deploy.name_server import NameServer, name_server
from tests.deploy.proxy import DEPLOY, FILES, _adapted, write_certificate
from tests.deploy.stub_server import StubServer, stub_server
from tests.deploy.test_failures import write_program
from tests.deploy.test_image import relocated, stage

HOST, RESEARCH_HOST = "polls.example.net", "staff.example.net"


@pytest.fixture
def create(tmp_path):
    """Return a function that runs secrets.sh and returns the contents of all files it made."""
    owners = tmp_path / "owners"
    write_program(tmp_path / "bin/chown", f'echo "$1 $(basename "$2" .new)" >>{owners}')
    directory = tmp_path / "secrets"
    directory.mkdir()

    def run() -> tuple[dict[str, str], set[str]]:
        environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
        command = ["sh", DEPLOY / "secrets.sh", directory]
        subprocess.run(command, env=environment, check=True, capture_output=True)
        files = [path for path in directory.rglob("*") if path.is_file()]
        assert {path.stat().st_mode & 0o077 for path in directory.rglob("*")} == {0}
        contents = {str(path.relative_to(directory)): path.read_text() for path in files}
        return contents, set(owners.read_text().splitlines())

    return run


@pytest.mark.security
def test_missing_secrets_are_created_for_their_users_and_existing_ones_stay(create, tmp_path):
    first, owners = create()
    password = first["database/database_password"]
    line = f"database:5432:survey:survey:{password}\n"
    assert re.fullmatch("[0-9a-f]{64}", password)
    assert re.fullmatch("[0-9a-f]{64}", first["app/secret"])
    assert first["app/secret"] != password
    assert first["app/pgpass"] == first["keeper/keeper_pgpass"] == line
    assert first["app/smtp"] == first["app/provider"] == ""
    assert len(first) == 6
    assert owners >= {"10001 secret", "10001 pgpass", "10002 keeper_pgpass", "10002 keeper"}
    (tmp_path / "secrets/app/secret").write_text(SECRET)
    # The operator's file may belong to another user, who may let others read it.
    (tmp_path / "secrets/app/smtp").write_text("smtps://a:b@c")
    (tmp_path / "secrets/app/smtp").chmod(0o644)
    # A start that was killed leaves a missing or an empty file.
    (tmp_path / "secrets/keeper/keeper_pgpass").write_text("")
    again, _ = create()
    assert again == {**first, "app/secret": SECRET, "app/smtp": "smtps://a:b@c"}


def test_secrets_of_an_earlier_version_are_kept(create, tmp_path):
    old = {"secret": SECRET, "pgpass": "a", "keeper_pgpass": "b", "database_password": "c"}
    for name, text in old.items():
        (tmp_path / "secrets" / name).write_text(text)
        (tmp_path / "secrets" / name).chmod(0o600)
    contents, _ = create()
    names = {name.rpartition("/")[2]: text for name, text in contents.items() if text}
    assert names == old


@pytest.mark.security
def test_a_password_in_the_variables_file_is_refused_with_its_new_place(tmp_path):
    process = subprocess.run(
        ["sh", DEPLOY / "secrets.sh", tmp_path],
        env={"PATH": os.environ["PATH"], "SURVEY_SMTP": "smtps://a:b@c"},
        capture_output=True,
        text=True,
    )
    assert (process.returncode, list(tmp_path.iterdir())) == (1, [])
    assert "secrets/app/smtp" in process.stderr


CERTBOT = """
echo "$@" >{log}
echo token >{acme}/.well-known/acme-challenge/name
for host in {hosts}; do
    curl -fsS -H "Host: $host" {url}/.well-known/acme-challenge/name || exit 1
done >>{log}
mkdir -p {issued}
cp {certificate}/*.pem {issued}
"""
"""A stand-in for certbot: it answers the authority's question through nginx, like an authority."""


@contextmanager
def started(directory: Path, **variables: str) -> Iterator[None]:
    """Run proxy.sh with its paths in a directory."""
    script = (DEPLOY / "proxy.sh").read_text(encoding="utf-8")
    for path, name in PLACES.items():
        script = script.replace(path, f"{directory}/{name}")
    (directory / "proxy.sh").write_text(script)
    environment = {
        "PATH": f"{directory}/bin:{os.environ['PATH']}:/usr/sbin",
        "SURVEY_PUBLIC_URL": f"https://{HOST}",
        "SURVEY_RESEARCH_URL": f"https://{RESEARCH_HOST}",
        **variables,
    }
    command = ["sh", str(directory / "proxy.sh")]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, 15)
        process.wait(timeout=60)


PLACES = {
    "/tmp/": "run/",
    "/etc/nginx": "etc",
    "/etc/letsencrypt": "certificates",
    "/var/lib/survey-acme": "acme",
}
"""The proxy's directories, and the tests' directories that replace them."""


@pytest.fixture
def server() -> Iterator[StubServer]:
    with stub_server(b"ok") as server:
        yield server


@pytest.fixture
def names() -> Iterator[NameServer]:
    """Return the name server of the containers, which knows the address of `server`."""
    with name_server("127.0.0.1") as names:
        yield names


@pytest.fixture
def ports(tmp_path, server, names) -> dict[str, int]:
    """Install the proxy's files in a directory, as its image does; return the ports of nginx."""
    listeners = {"443": free_port(), "80": free_port(), "8080": free_port()}
    for name in ("etc", "run", "acme/.well-known/acme-challenge"):
        (tmp_path / name).mkdir(parents=True)
    # nginx's workers run as another user and must reach their files.
    for folder in tmp_path.parents:
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(0o711)
    tmp_path.chmod(0o755)
    for name in FILES:
        text = _adapted(name, listeners, tmp_path)
        text = text.replace("/var/lib/survey-acme", str(tmp_path / "acme"))
        (tmp_path / "etc" / name).write_text(
            text.replace("user www-data;", f"user www-data; pid {tmp_path}/nginx.pid;")
        )
    (tmp_path / "logs").mkdir()
    upstream = (DEPLOY / "compose-upstream.conf").read_text(encoding="utf-8")
    for shipped, replacement in (
        ("127.0.0.11", f"127.0.0.1:{names.port}"),
        (":8000", f":{server.server_port}"),
    ):
        assert shipped in upstream
        upstream = upstream.replace(shipped, replacement)
    (tmp_path / "etc/upstream.conf").write_text(upstream)
    for word, line in stage("proxy"):
        if word == "RUN" and line.startswith("sed "):
            command = relocated(line, {"/etc/nginx": str(tmp_path / "etc")})
            subprocess.run(command, shell=True, check=True)
    return listeners


@pytest.mark.web
def test_the_proxy_serves_its_two_hosts_with_the_certificate_that_an_authority_issues(
    ports, tmp_path
):
    write_certificate(tmp_path / "issued", HOST, RESEARCH_HOST)
    log = tmp_path / "log"
    script = CERTBOT.format(
        log=log,
        acme=tmp_path / "acme",
        hosts=f"{HOST} {RESEARCH_HOST}",
        url=f"http://127.0.0.1:{ports['80']}",
        issued=tmp_path / "certificates/live/survey",
        certificate=tmp_path / "issued",
    )
    write_program(tmp_path / "bin/certbot", script)

    def is_trusted(host: str) -> bool:
        command = ["curl", "-fsS", "--cacert", str(tmp_path / "issued/fullchain.pem")]
        address = f"{host}:{ports['443']}"
        connect = ["--connect-to", f"{address}:127.0.0.1:{ports['443']}"]
        url = f"https://{address}/healthz"
        return subprocess.run([*command, *connect, url], capture_output=True).stdout == b"ok"

    with started(tmp_path, ACME_EMAIL="operator@example.net"):
        wait_until(lambda: is_trusted(HOST) and is_trusted(RESEARCH_HOST))
    arguments, *tokens = log.read_text().splitlines()
    assert tokens == ["token", "token"]
    assert f"-d {HOST} -d {RESEARCH_HOST}" in arguments
    assert "--email operator@example.net" in arguments
    # After a restart, the certificate is there at once.
    write_program(tmp_path / "bin/certbot", "exit 1")
    with started(tmp_path, ACME_EMAIL="operator@example.net"):
        wait_until(lambda: is_trusted(HOST))
    names = {path.name for path in (tmp_path / "run/nginx/tls").iterdir()}
    assert names == {"fullchain.pem", "privkey.pem"}
    assert (tmp_path / "run/nginx/tls").stat().st_mode & 0o077 == 0


@pytest.mark.web
def test_the_proxy_finds_servers_at_their_new_addresses_without_a_restart(
    ports, names, server, tmp_path
):
    write_certificate(tmp_path / "etc/tls", HOST, RESEARCH_HOST)

    def respond() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", ports["8080"], timeout=30)
        with closing(connection):
            connection.request("POST", "/s/small/reports", b"{}")
            response = connection.getresponse()
            return response.status, response.read()

    def update(*addresses: str) -> None:
        """Change the addresses, and wait until every worker has forgotten the former ones."""
        names.addresses = list(addresses)
        time.sleep(2.1)

    address = ("127.0.0.2", server.server_port)
    with started(tmp_path), stub_server(b"recreated", address=address):
        wait_until(lambda: accepts(ports["8080"]))
        assert respond() == (200, b"ok")
        update("127.0.0.2")
        assert {respond() for _ in range(10)} == {(200, b"recreated")}
        # If one of two servers is down, the other one gets all requests.
        update("127.0.0.3", "127.0.0.2")
        assert {respond() for _ in range(10)} == {(200, b"recreated")}
        update()
        status, body = respond()
        assert (status, json.loads(body)["type"]) == (503, "urn:survey:store-busy")


def accepts(port: int) -> bool:
    """Return whether a program accepts connections on a local port."""
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_the_proxy_refuses_an_address_that_would_change_its_configuration(tmp_path):
    for address in ("http://polls.example.net", "https://a/b", "https://a;return 200", "https://"):
        process = subprocess.run(
            ["sh", DEPLOY / "proxy.sh"],
            env={
                "PATH": "/usr/bin:/bin",
                "SURVEY_PUBLIC_URL": address,
                "SURVEY_RESEARCH_URL": "https://staff.example.net",
            },
            capture_output=True,
            text=True,
        )
        assert process.returncode == 1, address
        assert "must be https://" in process.stderr
