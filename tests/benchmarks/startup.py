"""CPU time of starting, and memory of a worker that has served respondents' requests only.

    python -m tests.benchmarks.startup [--base DIRECTORY]

With --base, the command also measures another working tree, such as an earlier version.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT
from tests.startup import serve_respondents

RUNS = 5
MAX_VERSION_SECONDS = 0.3
MAX_MECHANISM_SECONDS = 0.2
MAX_MEMORY_RATIO = 0.5


def cpu_seconds(arguments: list[str], code: Path) -> float:
    """Return the median CPU time (user and system) of a Python process."""
    times = []
    for _ in range(RUNS):
        before = os.times()
        subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": str(code)},
            cwd=tempfile.gettempdir(),
            check=True,
            capture_output=True,
        )
        after = os.times()
        times.append(
            after.children_user
            - before.children_user
            + after.children_system
            - before.children_system
        )
    return statistics.median(times)


def measure(code: Path) -> tuple[float, float, float]:
    """Return seconds of `survey --version`, seconds beyond numpy of the mechanisms, megabytes."""
    version = cpu_seconds(["-m", "survey.cli", "--version"], code)
    mechanism = cpu_seconds(["-c", "import survey.mechanism"], code)
    numpy = cpu_seconds(["-c", "import numpy"], code)
    with tempfile.TemporaryDirectory() as directory:
        megabytes = serve_respondents(Path(directory), code)["megabytes"]
    return version, mechanism - numpy, megabytes


def main() -> None:
    """Print the measurements with their targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, help="working tree of an earlier version")
    base = parser.parse_args().base
    version, mechanism, megabytes = measure(ROOT)
    print(f"survey --version            {version:6.2f} s CPU    (at most {MAX_VERSION_SECONDS})")
    print(f"import survey.mechanism     {mechanism:6.2f} s CPU beyond numpy", end=" ")
    print(f"(at most {MAX_MECHANISM_SECONDS})")
    print(f"worker after respondents    {megabytes:6.0f} MB")
    if base is None:
        return
    old_version, old_mechanism, old_megabytes = measure(base.resolve())
    ratio = megabytes / old_megabytes
    print(f"before: {old_version:.2f} s, {old_mechanism:.2f} s, {old_megabytes:.0f} MB")
    print(f"memory ratio                {ratio:6.2f}          (at most {MAX_MEMORY_RATIO})")


if __name__ == "__main__":
    main()
