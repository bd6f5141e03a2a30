"""The production server (granian) around the application, with the release loop beside it."""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from granian import Granian
from granian.constants import Interfaces

from survey.collect.release import ReleaseLoop
from survey.errors import StoreError, SurveyError
from survey.settings import Settings
from survey.store import open_store

THREADS = 4
STARTUP_SECONDS = 30.0


def serve(
    settings: Settings, address: str, port: int, workers: int,
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
        "survey.app:create_app", factory=True, interface=Interfaces.WSGI,
        address=address, port=port, workers=workers, blocking_threads=THREADS,
        websockets=False, log_access=False, log_level="warning",  # type: ignore[arg-type]
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
    host = f"[{address}]" if ":" in address else address
    for _ in range(int(STARTUP_SECONDS / 0.1)):
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/healthz", timeout=1):
                break
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    else:
        return
    on_ready()
