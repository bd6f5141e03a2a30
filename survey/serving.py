"""The production server (granian) around the application, with the release loop beside it."""

from __future__ import annotations

import logging
import multiprocessing
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable

from flask import Flask
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from survey.app import create_app
from survey.collect.release import ReleaseLoop
from survey.errors import StoreError, SurveyError
from survey.settings import Settings
from survey.store import open_store

THREADS = 4
STARTUP_SECONDS = 30.0

logger = logging.getLogger(__name__)


def serve(
    settings: Settings,
    address: str,
    port: int,
    workers: int,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until interrupted; the workers read their settings from the environment.

    Releases run in this parent process alone, so that there is one loop however many workers.
    """
    check_port(address, port)
    settings.with_real_secret()
    store = open_store(settings.database)
    pending = store.pending_migrations()
    store.close_connections()
    if pending:
        raise StoreError(f"the database lacks {', '.join(pending)}; run: survey migrate")
    # A forked worker would inherit the release loop's connection in an unknown state.
    multiprocessing.set_start_method("spawn", force=True)
    server = Granian(
        "survey.serving:worker",
        factory=True,
        interface=Interfaces.WSGI,
        address=address,
        port=port,
        workers=workers,
        blocking_threads=THREADS,
        respawn_failed_workers=True,
        websockets=False,
        log_access=False,
        log_level=LogLevels.warning,
    )
    stop = threading.Event()
    releases = threading.Thread(target=ReleaseLoop(store, settings).run, args=[stop])
    ready = threading.Thread(target=_when_ready, args=[address, port, on_ready], daemon=True)
    server.on_startup(releases.start)
    server.on_startup(ready.start)
    try:
        server.serve()
    finally:
        stop.set()
        if releases.ident is not None:
            releases.join()


def worker() -> Flask:
    """The application in a worker process, which ends when the server that started it is gone.

    Orphaned workers would hold the port and take reports that nobody releases.
    """
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return create_app()


def _end_with_parent() -> None:
    # Known from the start of this process: the parent may be gone before this line runs.
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    # At once: what is acknowledged is on the disk, what is not will be sent again.
    os._exit(1)


def check_port(address: str, port: int) -> None:
    """Refuse a port that somebody else listens on, before anything else is done."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise SurveyError(
                f"port {port} on {address} cannot be used: {error.strerror}; "
                "choose another with --port"
            ) from None


def _when_ready(address: str, port: int, on_ready: Callable[[], None]) -> None:
    """Call back once the server answers."""
    # Without a proxy: a setting of the machine's must not lead a request to ourselves elsewhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(int(STARTUP_SECONDS / 0.1)):
        try:
            with opener.open(f"{_local_url(address, port)}/healthz", timeout=1):
                break
        except OSError:
            time.sleep(0.1)
    else:
        logger.error("the server does not answer after %d seconds", STARTUP_SECONDS)
        return
    on_ready()


def _local_url(address: str, port: int) -> str:
    """The address under which this machine reaches what listens on `address`."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  compared, never bound
    host = everywhere.get(address, address)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
