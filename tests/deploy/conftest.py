"""Start real survey servers behind a real nginx with the shipped configuration."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from survey.store import PublishedSurvey
from tests.conftest import ONION
from tests.deploy.proxy import HOST, RESEARCH_HOST, Proxy, nginx
from tests.deploy.stub_server import StubServer, stub_server


@pytest.fixture
def stub_proxy(tmp_path: Path) -> Iterator[Callable[..., tuple[Proxy, StubServer]]]:
    """Start nginx in front of a stub server."""
    with ExitStack() as stack:

        def start(*changes: tuple[str, str], body: bytes = b"ok") -> tuple[Proxy, StubServer]:
            server = stack.enter_context(stub_server(body))
            directory = tmp_path / f"nginx-{server.server_port}"
            directory.mkdir()
            return stack.enter_context(nginx(directory, [server.server_port], *changes)), server

        yield start


@pytest.fixture
def start_proxy(serve: Callable[..., str], tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Start survey servers and nginx in front of them."""
    if shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin") is None:
        pytest.skip("no nginx on the path (apt-get install nginx-light)")
    with ExitStack() as stack:

        def start(*changes: tuple[str, str], servers: int = 2, **variables: Any) -> Proxy:
            settings = {
                "SURVEY_PUBLIC_URL": f"https://{HOST}",
                "SURVEY_RESEARCH_URL": f"https://{RESEARCH_HOST}",
                "SURVEY_ONION_URL": ONION,
                "SURVEY_TRUSTED_PROXIES": "1",
                **variables,
            }
            urls = [serve("--workers", "1", **settings) for _ in range(servers)]
            ports = [int(url.rpartition(":")[2]) for url in urls]
            directory = tmp_path / "nginx"
            directory.mkdir()
            # nginx's workers run as another user and must reach their files.
            for folder in directory.parents:
                if folder.stat().st_mode & 0o001 == 0 and tmp_path in (folder, *folder.parents):
                    folder.chmod(0o711)
            return stack.enter_context(nginx(directory, ports, *changes))

        yield start


@pytest.fixture
def proxy(start_proxy: Callable[..., Proxy], small: PublishedSurvey) -> Proxy:
    """Return an nginx in front of two servers that have the small survey."""
    return start_proxy()
