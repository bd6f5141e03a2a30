"""How fast answers are randomized, simulated and audited, against what no program can undercut.

Run as `python -m tests.benchmarks.mechanism_speed`. What is compared runs in the same run; the
Node part and each simulation use one core.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from survey import demo
from survey.audit.enumeration import Auditor
from survey.audit.harness import Check
from survey.mechanism import SubsetSelection, grr
from survey.mechanism.simulation import CHUNK, population
from survey.respond.client import Client
from tests.conftest import ROOT, node_path

ROUNDS = 7
ANSWERS_IN_NODE = 5_000_000
PER_SECOND = 20e6
RATIO = 0.5

SIMULATED = 10**8
SIMULATION_ROUNDS = 3
SLOWER = 2.0
GROWTH = 200.0

ENUMERATION_SECONDS = 20.0
SAMPLED = 10**7
SAMPLING_SECONDS = 60.0

CHANNEL = grr(5, "3/4")
SHARES = (0.1, 0.2, 0.3, 0.25, 0.15)


def verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_node() -> None:
    """(a) GRR reports per second of the shipped client, against one pooled word each."""
    script = ROOT / "tests/benchmarks/mechanism_speed.mjs"
    run = subprocess.run(
        [node_path(), str(script), str(ROOT / "client_js/src"), str(ROUNDS), str(ANSWERS_IN_NODE)],
        capture_output=True,
        text=True,
        check=True,
    )
    rounds = json.loads(run.stdout)["rounds"]
    bare, client = (statistics.median(each[name] for each in rounds) for name in ("bare", "client"))
    ratio = statistics.median(each["client"] / each["bare"] for each in rounds)
    print(f"(a) Node, one core, medians of {ROUNDS} rounds of {ANSWERS_IN_NODE:,}")
    print(f"    bare pooled words        {bare / 1e6:8.1f} million/s")
    print(f"    shipped client, GRR      {client / 1e6:8.1f} million/s, ratio {ratio:.2f}")
    reached = verdict(client >= PER_SECOND or ratio >= RATIO)
    print(f"    target >= {PER_SECOND / 1e6:.0f} million/s or ratio >= {RATIO}: {reached}")


def plainly(channel: SubsetSelection, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The baseline: GRR as one writes it in numpy, with floats, in chunks of the same size."""
    counts = np.zeros(channel.k, dtype=np.int64)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        truths = rng.choice(channel.k, size=size, p=SHARES)
        other = rng.integers(0, channel.k - 1, size=size)
        other += other >= truths
        reports = np.where(rng.random(size) < channel.p, truths, other)
        counts += np.bincount(reports, minlength=channel.k)
    return counts


def peak_megabytes() -> float:
    # Linux counts in KiB.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_python() -> None:
    """(b) 10^8 simulated GRR answers against plain numpy, and the memory they take."""
    rng = np.random.default_rng(1)
    before = peak_megabytes()
    ours = [
        seconds(lambda: population(CHANNEL, SHARES, SIMULATED, rng))
        for _ in range(SIMULATION_ROUNDS)
    ]
    growth = peak_megabytes() - before
    plain = [seconds(lambda: plainly(CHANNEL, SIMULATED, rng)) for _ in range(SIMULATION_ROUNDS)]
    ratio = statistics.median(ours) / statistics.median(plain)
    print(f"(b) {SIMULATED:,} simulated GRR answers, medians of {SIMULATION_ROUNDS}, one core")
    print(f"    survey.mechanism.simulation {statistics.median(ours):7.2f} s")
    print(f"    plain chunked numpy       {statistics.median(plain):7.2f} s")
    print(f"    ratio {ratio:.2f} (target <= {SLOWER:g}: {verdict(ratio <= SLOWER)})")
    print(f"    peak memory grew by {growth:.1f} MB (target < {GROWTH:.0f}: ", end="")
    print(f"{verdict(growth < GROWTH)})")


def audited(title: str, work: Callable[[], list[Check]], target: float) -> None:
    checks: list[Check] = []
    taken = seconds(lambda: checks.extend(work()))
    held = "all hold" if all(check.ok for check in checks) else "SOME FAIL"
    print(title)
    for check in checks:
        print(f"    {check.name}: {check.detail}")
    print(f"    {taken:.1f} s, {held} (target < {target:.0f} s: {verdict(taken < target)})")


def main() -> None:
    auditor = Auditor(Client.load().files, node_path())
    asked = [question.channel for question in demo.definition().questions]
    coin = grr(2, "3/4")
    in_node()
    in_python()
    audited(
        f"(c) every draw of the demo's {len(asked)} questions",
        lambda: auditor.enumeration(asked),
        ENUMERATION_SECONDS,
    )
    audited(
        f"(d) {SAMPLED:,} perturbations for each truth of one channel, the real generator",
        lambda: auditor.sampling([coin], SAMPLED),
        SAMPLING_SECONDS,
    )


if __name__ == "__main__":
    main()
