"""Measure the memory and the imported modules of a process that serves only respondents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, SECRET

PREPARE = """
import sys
from datetime import date
from pathlib import Path
from survey.collect.publication import publish
from survey.settings import Caps
from survey.store import open_store
try:
    from survey.questionnaire.loading import load
except ImportError:  # versions before the module was renamed
    from survey.questionnaire.native import load

database, definition, secret = sys.argv[1:]
store = open_store(database)
store.migrate()
publish(store, load(Path(definition).read_bytes(), "s.toml", Caps()), date.today())
"""

SERVE = """
import json, sys
from pathlib import Path
import survey
from survey.settings import Settings

database, definition, secret = sys.argv[1:]
client = survey.create_app(Settings(database=database, secret=secret)).test_client()
for path in ("", "/definition.json", "/sent"):
    assert client.get(f"/s/start{path}").status_code < 300, path
assert client.post("/s/start/reports", json={}).status_code == 422
status = Path("/proc/self/status").read_text()
line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
print(json.dumps({"megabytes": int(line.split()[1]) / 1024, "modules": sorted(sys.modules)}))
"""


def serve_respondents(directory: Path, code: Path = ROOT) -> dict[str, Any]:
    """Serve every respondents' route in a new process that runs the code of a working tree.

    Returns the resident memory in megabytes and the names of the imported modules.
    """
    definition = directory / "survey.toml"
    definition.write_text(
        'title = "Start"\nslug = "start"\n'
        '[[pages]]\n[[pages.questions]]\nid = "q"\ntype = "yes_no"\ntext = "Yes?"\nepsilon = 1\n',
        encoding="utf-8",
    )
    database = f"sqlite:///{directory / 'start.db'}"
    output = b""
    for script in (PREPARE, SERVE):
        output = subprocess.run(
            [sys.executable, "-c", script, database, str(definition), SECRET],
            env={**os.environ, "PYTHONPATH": str(code)},
            cwd=directory,
            check=True,
            capture_output=True,
        ).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def imported_by(statement: str) -> set[str]:
    """Return the names of the modules that a new process has imported after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return set(output.split())
