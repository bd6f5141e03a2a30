"""New workers in the place of old ones, if they would start at all."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from granian.server.common import AbstractServer

from survey.app import create_app
from survey.ops.safety import SetUp, refuse_unsafe
from survey.settings import Settings

TRIAL = "from survey.renewing import check_start; check_start({address!r})"

logger = logging.getLogger(__name__)


class Renewal:
    """What SIGHUP does: new workers take the place of old ones, if they would start at all.

    Whether they would is tried in a process of its own, with the files as they are now. If not,
    the old ones go on: renewed, they would be gone, and with the last of them the server.
    """

    def __init__(self, server: AbstractServer[Any], address: str) -> None:
        self._renew: Callable[[], None] = server.signal_handler_reload
        # -P: nothing that lies in the folder it was started in is taken for a module.
        self._command = [sys.executable, "-P", "-c", TRIAL.format(address=address)]
        self._alone = threading.Lock()

    def __call__(self, *_: object) -> None:
        threading.Thread(target=self._try, daemon=True).start()

    def _try(self) -> None:
        with self._alone:
            # Words of ours alone, and quoted.
            tried = subprocess.run(  # noqa: S603
                self._command, stdin=subprocess.DEVNULL, capture_output=True
            )
        if tried.returncode:
            logger.error("not renewed: new workers would not start; see: survey config check")
        else:
            self._renew()


def check_start(address: str) -> None:
    """Do all that a server does before it serves, with the settings and the code of now."""
    settings = Settings.from_environment(os.environ)
    refuse_unsafe(SetUp(settings, os.environ, address))
    create_app(settings)
