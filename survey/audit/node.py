"""Run the client under Node, and describe the outcome of one check."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from survey.errors import SurveyError

SCRIPT = Path(__file__).with_name("run.mjs")

FLAGS = ("--experimental-vm-modules", "--no-warnings")
"""Options of Node that let modules run in realms without Node's globals."""


TIMEOUT = 600
"""Seconds after which a client counts as one that never ends; the longest request needs 60."""


class ClientError(SurveyError):
    """The client fails under Node, or uses a name that its realm does not have."""


@dataclass(frozen=True)
class Check:
    """The outcome of one check: its name, whether it passed, and the numbers or the failure."""

    group: str
    name: str
    ok: bool
    detail: str


class Node:
    """Runs the client's modules under Node, with exactly the bytes that the server sends."""

    def __init__(
        self, files: Mapping[str, bytes], node: str | None = None, canonical: bytes | None = None
    ) -> None:
        """Prepare a client that first reads the definition `canonical`, as a device does.

        Raises SurveyError without Node.
        """
        self._files = files
        self._survey = {} if canonical is None else {"definition": canonical.decode("utf-8")}
        executable = node or shutil.which("node")
        if executable is None:
            raise SurveyError("survey audit runs the client under Node: install Node 20 or newer")
        self._node = executable

    def ask(self, **requests: Any) -> dict[str, Any]:
        """Return the script's answer to each request, by the request's name (see `run.mjs`).

        Raises ClientError if the client fails.
        """
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self._files.items():
                file = Path(folder, name)
                file.parent.mkdir(exist_ok=True)
                file.write_bytes(content)
            try:
                run = subprocess.run(  # noqa: S603  runs the package's script and the audited client
                    [self._node, *FLAGS, str(SCRIPT)],
                    input=json.dumps({"client": folder, **self._survey, **requests}),
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=TIMEOUT,
                )
            except subprocess.TimeoutExpired as error:
                name = next(iter(requests), "")
                text = f"the client does not finish within {TIMEOUT} seconds ({name})"
                raise ClientError(text) from error
        if run.returncode:
            raise ClientError(f"the client does not run under Node: {_last_error(run.stderr)}")
        answers: dict[str, Any] = json.loads(run.stdout)
        return answers


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return (errors or lines or ["no message"])[-1]
