"""The client under Node, and the outcome of one check."""

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


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, whether it holds, and what was seen."""

    group: str
    name: str
    ok: bool
    detail: str


SCRIPT = Path(__file__).with_name("run.mjs")


class Node:
    """Answers questions about the client by running it."""

    def __init__(
        self, files: Mapping[str, bytes], node: str | None = None, canonical: bytes | None = None
    ) -> None:
        """`canonical`: the survey that the client reads first, as a device does."""
        self._files = files
        self._survey = {} if canonical is None else {"definition": canonical.decode("utf-8")}
        found = node or shutil.which("node")
        if found is None:
            raise SurveyError("survey audit runs the client under Node: install Node 20 or newer")
        self._node = found

    def ask(self, **question: Any) -> dict[str, Any]:
        """Run the script with a question, see its first lines; SurveyError when it fails."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self._files.items():
                Path(folder, name).write_bytes(content)
            Path(folder, "package.json").write_text('{"type": "module"}', encoding="utf-8")
            run = subprocess.run(  # noqa: S603  our own script and the client under audit
                [self._node, str(SCRIPT)],
                input=json.dumps({"client": folder, **self._survey, **question}),
                capture_output=True,
                text=True,
                check=False,
            )
        if run.returncode:
            raise SurveyError(f"the client does not run under Node: {_last_error(run.stderr)}")
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    named = [line for line in lines if "Error" in line and not line.startswith("at ")]
    return (named or lines or ["no message"])[-1]
