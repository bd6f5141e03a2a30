"""Real servers behind a real nginx with the shipped configuration."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from survey.store import PublishedSurvey
from tests.deploy.proxy import HOST, Proxy, nginx
from tests.deploy.stand_in import StandIn, standing_in


@pytest.fixture
def stood_in(tmp_path: Path) -> Iterator[Callable[..., tuple[Proxy, StandIn]]]:
    """Start nginx before a server that stands in."""
    with ExitStack() as stack:

        def start(*changes: tuple[str, str], body: bytes = b"ok") -> tuple[Proxy, StandIn]:
            server = stack.enter_context(standing_in(body))
            directory = tmp_path / f"nginx-{server.server_port}"
            directory.mkdir()
            return stack.enter_context(nginx(directory, [server.server_port], *changes)), server

        yield start


@pytest.fixture
def behind(serve: Callable[..., str], tmp_path: Path) -> Iterator[Callable[..., Proxy]]:
    """Start servers and nginx before them."""
    if shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin") is None:
        pytest.skip("no nginx on the path (apt-get install nginx-light)")
    with ExitStack() as stack:

        def start(*changes: tuple[str, str], servers: int = 2, **variables: Any) -> Proxy:
            settings = {
                "SURVEY_PUBLIC_URL": f"https://{HOST}",
                "SURVEY_TRUSTED_PROXIES": "1",
                **variables,
            }
            urls = [serve("--workers", "1", **settings) for _ in range(servers)]
            ports = [int(url.rpartition(":")[2]) for url in urls]
            directory = tmp_path / "nginx"
            directory.mkdir()
            # nginx's workers, another user, must reach their files.
            for folder in directory.parents:
                if folder.stat().st_mode & 0o001 == 0 and tmp_path in (folder, *folder.parents):
                    folder.chmod(0o711)
            return stack.enter_context(nginx(directory, ports, *changes))

        yield start


@pytest.fixture
def proxy(behind: Callable[..., Proxy], small: PublishedSurvey) -> Proxy:
    """Two servers with the small survey behind it."""
    return behind()
