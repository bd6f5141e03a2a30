"""Measure how many mutants of a package the tests kill, on a seeded sample.

    python -m tests.benchmarks.mutation survey/mechanism tests/mechanism --commit HEAD [--short]

The script checks out the commit in a scratch directory, lets mutmut make every mutant of the
package, and runs the tests that cover each mutant in the sample. It prints the number of mutants
killed, survived, timed out and not covered, and the names of the survivors. Requires mutmut 3.8 in
the environment of the test extra.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.short import benchmark_parser

ROOT = Path(__file__).resolve().parents[2]
SHORT_SAMPLE = 5
EXTRA_FILES = ("client_js", "README.md", "LICENSE", "deploy", ".ci", ".github")


def configuration(packages: list[str], tests: list[str], marks: str = "") -> str:
    """Return mutmut's configuration for packages (files or directories) and their tests.

    Without marks, the tests of the default lane run.
    """
    lists = {
        "only_mutate": [path if path.endswith(".py") else f"{path}/*" for path in packages],
        "also_copy": list(EXTRA_FILES),
        "pytest_add_cli_args": [
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *(["-m", marks] if marks else []),
        ],
        "pytest_add_cli_args_test_selection": tests,
    }
    lines = ["[mutmut]", "source_paths=survey"]
    for key, values in lists.items():
        lines += [f"{key}=", *(f"  {value}" for value in values)]
    return "\n".join(lines) + "\n"


def run(directory: Path, *arguments: str, check: bool = True) -> str:
    """Run mutmut in a directory and return its output."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    process = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if check and process.returncode:
        sys.exit(f"{' '.join(arguments)}: {process.stderr[-2000:]}")
    return process.stdout


def outcomes(directory: Path) -> dict[str, str]:
    """Return the outcome of every mutant by its name."""
    lines = run(directory, "results", "--all", "true").splitlines()
    pairs = (line.strip().rpartition(": ") for line in lines if "__mutmut_" in line)
    return {name: outcome for name, _, outcome in pairs}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("packages", help="comma-separated files or directories to mutate")
    parser.add_argument("tests", help="comma-separated files or directories of tests")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--marks", default="", help="pytest marks of the tests to run")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=17)
    options = parser.parse_args(arguments)
    size = min(options.sample, SHORT_SAMPLE) if options.short else options.sample
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "checkout"
        worktree = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*worktree, "add", "-q", "--detach", directory, options.commit], check=True)
        try:
            packages, tests = options.packages.split(","), options.tests.split(",")
            (directory / "setup.cfg").write_text(configuration(packages, tests, options.marks))
            # An unknown name: mutmut makes all mutants and collects coverage, then stops.
            run(directory, "run", "none", check=False)
            names = sorted(outcomes(directory))
            sample = random.Random(options.seed).sample(names, min(size, len(names)))
            run(directory, "run", *sample, check=False)
            results = outcomes(directory)
        finally:
            subprocess.run([*worktree, "remove", "--force", directory], check=True)
    counts = Counter(results[name] for name in sample)
    if counts["not checked"]:
        sys.exit(f"{counts['not checked']} mutants were not checked: do the tests pass unmutated?")
    killed = counts["killed"] + counts["timeout"]
    print(f"{options.packages} at {options.commit}: {len(names)} mutants, sample {len(sample)}")
    print(f"killed {killed} ({100 * killed / len(sample):.1f}%)", dict(counts))
    for name in sample:
        if results[name] not in ("killed", "timeout"):
            print(f"  {results[name]}: {name}")


if __name__ == "__main__":
    main()
