"""Run nginx with the shipped configuration in front of real servers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import ROOT, free_port
from tests.faults.processes import child_pids

HOST, RESEARCH_HOST = "survey.example.org", "research.example.org"
DEPLOY = ROOT / "deploy"
FILES = ("nginx.conf", "answers.conf", "refusals.conf", "respondents.conf")

Answer = tuple[int, list[tuple[str, str]], bytes]


@dataclass
class Proxy:
    """A running nginx: its ports, its directory, and the host name that requests name."""

    port: int
    plain_port: int
    onion_port: int
    directory: Path
    process: subprocess.Popen[bytes]
    host: str = HOST
    research_host: str = RESEARCH_HOST

    @property
    def research(self) -> Proxy:
        """The same nginx with the researchers' host name."""
        return replace(self, host=self.research_host)

    def site(self, path: str) -> Proxy:
        """Return the same nginx with the host name that answers a path."""
        return self.research if path.startswith(("/research", "/api")) else self

    def context(self) -> ssl.SSLContext:
        """Return a context that trusts only this test's certificate."""
        return ssl.create_default_context(cafile=str(self.directory / "tls/fullchain.pem"))

    def connect(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """Return an HTTPS connection from a loopback address to the certificate's host name."""
        return _Connection(self, source)

    def tcp(self, source: str = "127.0.0.1", port: int = 0) -> socket.socket:
        """Open a plain TCP connection."""
        return socket.create_connection(
            ("127.0.0.1", port or self.port), timeout=30, source_address=(source, 0)
        )

    def tls(
        self, source: str = "127.0.0.1", newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> ssl.SSLSocket:
        """Open a TLS connection."""
        context = self.context()
        context.maximum_version = newest
        return context.wrap_socket(self.tcp(source), server_hostname=self.host)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        source: str = "127.0.0.1",
    ) -> Answer:
        """Send one request over a new connection."""
        connection = self.connect(source)
        with contextlib.closing(connection):
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()


class _Connection(http.client.HTTPSConnection):
    def __init__(self, proxy: Proxy, source: str) -> None:
        super().__init__(proxy.host, proxy.port, timeout=30, context=proxy.context())
        self._proxy, self._source = proxy, source

    def connect(self) -> None:
        self.sock = self._proxy.tls(self._source)


HTTP2_CLIENT = """
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import tls from "node:tls";

const { port, host, ca, requests } = JSON.parse(readFileSync(0));
const session = connect(`https://${host}:${port}`, {
  createConnection: () => tls.connect({
    host: "127.0.0.1", port, servername: host, ca: readFileSync(ca), ALPNProtocols: ["h2"],
  }),
});
const send = ({ method, path, body = "", headers = {} }) => new Promise((resolve, reject) => {
  const stream = session.request({
    ":method": method, ":path": path, ":authority": host, "accept-encoding": "br", ...headers,
  });
  let answer, text = "";
  stream.setEncoding("latin1");
  stream.on("response", (headers) => { answer = headers; });
  stream.on("data", (chunk) => { text += chunk; });
  stream.on("end", () => resolve([answer, text]));
  stream.on("error", (error) => answer ? resolve([answer, text]) : reject(error));
  if (!stream.writableEnded) stream.end(body);
});
const answers = [];
for (const request of requests) answers.push(await send(request));
session.close();
console.log(JSON.stringify(answers));
"""


def ask_over_http2(proxy: Proxy, node: str, requests: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Send requests one after another over a single HTTP/2 connection, as browsers do."""
    ca = str(proxy.directory / "tls/fullchain.pem")
    arguments = {"port": proxy.port, "host": proxy.host, "ca": ca, "requests": requests}
    process = subprocess.run(
        [node, "--input-type=module", "-e", HTTP2_CLIENT],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    answers = []
    for headers, body in json.loads(process.stdout):
        pairs = [
            (name, item)
            for name, value in headers.items()
            if not name.startswith(":")
            for item in (value if isinstance(value, list) else [value])
        ]
        answers.append((headers[":status"], pairs, body.encode("latin1")))
    return answers


@contextlib.contextmanager
def nginx(directory: Path, ports: Sequence[int], *changes: tuple[str, str]) -> Iterator[Proxy]:
    """Run the shipped configuration on free ports in front of servers on `ports`.

    Each change (old, new) replaces text in the files.
    """
    executable = shutil.which("nginx") or "/usr/sbin/nginx"
    listeners = {"443": free_port(), "80": free_port(), "8080": free_port()}
    directory.chmod(0o755)
    texts = {name: _adapted(name, listeners, directory) for name in FILES}
    for old, new in changes:
        assert any(old in text for text in texts.values()), old
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    for name, text in texts.items():
        (directory / name).write_text(text)
    servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;\n" for port in ports)
    upstream = (DEPLOY / "upstream.conf").read_text(encoding="utf-8")
    (directory / "upstream.conf").write_text(
        re.sub(r" *server 127\.0\.0\.1:8000 .*\n", servers, upstream, count=1)
    )
    host, research_host = (dict(changes).get(name, name) for name in (HOST, RESEARCH_HOST))
    write_certificate(directory / "tls", host, research_host)
    for name in ("logs", "temporary"):
        (directory / name).mkdir()
    temporary = "".join(
        f"{kind}_temp_path {directory}/temporary/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = directory / "nginx.conf"
    conf.write_text(conf.read_text().replace("http {", f"http {{ {temporary}", 1))
    process = subprocess.Popen(
        [
            # The default limit of open files of a service.
            *("prlimit", "--nofile=1024:", executable),
            *("-p", str(directory), "-c", str(conf)),
            *("-g", f"daemon off; pid {directory}/nginx.pid;"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    proxy = Proxy(*listeners.values(), directory, process, host, research_host)
    try:
        _wait(proxy)
        yield proxy
    finally:
        process.terminate()
        process.communicate(timeout=90)


def _adapted(name: str, listeners: Mapping[str, int], directory: Path) -> str:
    """Return a shipped file with other ports and another log directory."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    if os.geteuid() != 0:
        text = text.replace("user www-data;", "")
    for port, free in listeners.items():
        text = re.sub(rf"listen (?:127\.0\.0\.1:)?{port}\b", f"listen 127.0.0.1:{free}", text)
        text = text.replace(f"listen [::]:{port}", f"listen [::1]:{free}")
    return text.replace("/var/log/nginx/", f"{directory}/logs/")


def _wait(proxy: Proxy) -> None:
    """Wait until all workers run: a trace of the processes would miss one that starts later."""
    deadline = time.monotonic() + 20
    while len(child_pids(proxy.process.pid)) < (os.cpu_count() or 1):
        assert proxy.process.poll() is None, proxy.process.communicate()[0].decode()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def write_certificate(directory: Path, *hosts: str) -> None:
    directory.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "privkey.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
