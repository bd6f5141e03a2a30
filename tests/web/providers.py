"""An OpenID Connect provider on this machine, in a separate process."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

import requests

from tests.conftest import free_port


class ProviderProcess:
    """A provider that accepts each user under the name that they enter."""

    def __init__(self, port: int) -> None:
        self.url = f"http://localhost:{port}"

    def add(self, subject: str, **claims: object) -> None:
        """Set what the provider states about a person."""
        requests.put(
            f"{self.url}/users/{quote(subject)}", json=claims, timeout=10
        ).raise_for_status()

    def authorize(self, address: str, subject: str) -> str:
        """Sign in at the provider; return the path to which it sends the browser back."""
        response = requests.post(address, data={"sub": subject}, allow_redirects=False, timeout=10)
        parts = urlsplit(response.headers["Location"])
        return f"{parts.path}?{parts.query}"


@contextmanager
def running_provider() -> Iterator[ProviderProcess]:
    """Run a provider until the context ends."""
    port = free_port()
    started = ProviderProcess(port)
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--host", "localhost", "--require-nonce", "true"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await(f"{started.url}/jwks")
        yield started
    finally:
        process.terminate()
        process.wait()


def _await(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"{url} does not answer")
