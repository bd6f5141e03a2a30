"""The shipped nginx configuration before real servers, with every file that either writes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.conftest import ROOT, free_port

HOST = "survey.example.org"
DEPLOY = ROOT / "deploy"
FILES = ("nginx.conf", "answers.conf", "refusals.conf")

Answer = tuple[int, list[tuple[str, str]], bytes]


@dataclass
class Proxy:
    """A running nginx: where it listens, what it trusts, where it writes."""

    port: int
    plain_port: int
    directory: Path
    process: subprocess.Popen[bytes]
    host: str = HOST

    def context(self) -> ssl.SSLContext:
        """Trusts the certificate of this test alone."""
        return ssl.create_default_context(cafile=str(self.directory / "tls/fullchain.pem"))

    def connect(self, source: str = "127.0.0.1") -> http.client.HTTPSConnection:
        """A connection from an address of this machine, under the name of the certificate."""
        return _Connection(self, source)

    def tcp(self, source: str = "127.0.0.1", port: int = 0) -> socket.socket:
        """A connection on which nothing was said."""
        return socket.create_connection(
            ("127.0.0.1", port or self.port), timeout=30, source_address=(source, 0)
        )

    def tls(
        self, source: str = "127.0.0.1", newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> ssl.SSLSocket:
        """A connection on which nothing was asked."""
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
        """One request over a connection of its own."""
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


OVER_HTTP2 = """
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import tls from "node:tls";

const { port, host, ca, asked } = JSON.parse(readFileSync(0));
const session = connect(`https://${host}:${port}`, {
  createConnection: () => tls.connect({
    host: "127.0.0.1", port, servername: host, ca: readFileSync(ca), ALPNProtocols: ["h2"],
  }),
});
const one = ({ method, path, body = "", headers = {} }) => new Promise((resolve, reject) => {
  const stream = session.request({
    ":method": method, ":path": path, ":authority": host, "accept-encoding": "br", ...headers,
  });
  let answer, said = "";
  stream.setEncoding("latin1");
  stream.on("response", (found) => { answer = found; });
  stream.on("data", (piece) => { said += piece; });
  stream.on("end", () => resolve([answer, said]));
  stream.on("error", (error) => answer ? resolve([answer, said]) : reject(error));
  if (!stream.writableEnded) stream.end(body);
});
const answers = [];
for (const each of asked) answers.push(await one(each));
session.close();
console.log(JSON.stringify(answers));
"""


def over_http2(proxy: Proxy, node: str, asked: Sequence[Mapping[str, Any]]) -> list[Answer]:
    """Requests one after the other over one connection, by the browsers' own protocol."""
    ca = str(proxy.directory / "tls/fullchain.pem")
    given = {"port": proxy.port, "host": proxy.host, "ca": ca, "asked": asked}
    done = subprocess.run(
        [node, "--input-type=module", "-e", OVER_HTTP2],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answers = []
    for headers, body in json.loads(done.stdout):
        pairs = [
            (name, one)
            for name, value in headers.items()
            if not name.startswith(":")
            for one in (value if isinstance(value, list) else [value])
        ]
        answers.append((headers[":status"], pairs, body.encode("latin1")))
    return answers


@contextlib.contextmanager
def nginx(directory: Path, ports: Sequence[int], *changes: tuple[str, str]) -> Iterator[Proxy]:
    """The shipped files on ports that are free, before servers on these ports; then stopped."""
    executable = shutil.which("nginx") or "/usr/sbin/nginx"
    proxy_port, plain_port = free_port(), free_port()
    directory.chmod(0o755)
    for name in FILES:
        (directory / name).write_text(_moved(name, proxy_port, plain_port, directory, changes))
    servers = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;\n" for port in ports)
    (directory / "upstream.conf").write_text(f"upstream survey {{\n{servers}keepalive 64;\n}}\n")
    host = dict(changes).get(HOST, HOST)
    _certificate(directory / "tls", host)
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
            # As many open files as a machine gives a service that asks for no more.
            *("prlimit", "--nofile=1024:", executable),
            *("-p", str(directory), "-c", str(conf)),
            *("-g", f"daemon off; pid {directory}/nginx.pid;"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    proxy = Proxy(proxy_port, plain_port, directory, process, host)
    try:
        _wait(proxy)
        yield proxy
    finally:
        process.terminate()
        process.communicate(timeout=90)


def _moved(
    name: str, port: int, plain_port: int, directory: Path, changes: Sequence[tuple[str, str]]
) -> str:
    """A shipped file with its ports and its own log's place changed, and nothing else."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    if os.geteuid() != 0:
        text = text.replace("user www-data;", "")
    text = (
        text.replace("listen 443 ", f"listen 127.0.0.1:{port} ")
        .replace("listen [::]:443 ", f"listen [::1]:{port} ")
        .replace("listen 80 ", f"listen 127.0.0.1:{plain_port} ")
        .replace("listen [::]:80 ", f"listen [::1]:{plain_port} ")
        .replace("/var/log/nginx/", f"{directory}/logs/")
    )
    for old, new in changes if name == "nginx.conf" else ():
        assert old in text, old
        text = text.replace(old, new)
    return text


def _wait(proxy: Proxy) -> None:
    deadline = time.monotonic() + 20
    while True:
        assert proxy.process.poll() is None, proxy.process.communicate()[0].decode()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", proxy.port), timeout=1).close()
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _certificate(directory: Path, host: str) -> None:
    directory.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
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
