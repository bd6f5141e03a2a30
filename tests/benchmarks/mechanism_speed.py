"""Measure how fast answers are randomized, simulated and audited.

    python -m tests.benchmarks.mechanism_speed [--short]

The baselines do the minimum work of any
implementation, in the same run. The Node part and each simulation use one core.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence

import numpy as np

from survey.audit.bundled_modules import unbundle
from survey.audit.enumeration import Auditor
from survey.audit.node import Check
from survey.mechanism import SubsetSelection, grr
from survey.mechanism.channel import Integers
from survey.mechanism.simulation import CHUNK, population
from survey.respond.client import Client
from tests.benchmarks.short import benchmark_parser, reduced
from tests.conftest import ROOT, node_path
from tests.surveys import WORKPLACE, publish

ROUNDS = 7
ANSWERS_IN_NODE = 5_000_000
MIN_PER_SECOND = 20e6
MIN_RATIO = 0.5

SIMULATED = 10**8
SIMULATION_ROUNDS = 3
MAX_RATIO = 2.0
MAX_GROWTH_MB = 200.0

MAX_ENUMERATION_SECONDS = 20.0
SAMPLED = 10**7
MAX_SAMPLING_SECONDS = 60.0

N_QUESTIONS = 8
"""Questions about work whose draws are enumerated."""

SHORT = {
    "ROUNDS": 1,
    "ANSWERS_IN_NODE": 100_000,
    "SIMULATED": 10**6,
    "SIMULATION_ROUNDS": 1,
    "N_QUESTIONS": 1,
    "SAMPLED": 10**5,
}

CHANNEL = grr(5, "3/4")
SHARES = (0.1, 0.2, 0.3, 0.25, 0.15)


def verdict(is_met: bool) -> str:
    return "reached" if is_met else "MISSED"


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_client() -> None:
    """Print (a), GRR reports per second of the client and of a loop over random words."""
    script = ROOT / "tests/benchmarks/mechanism_speed.mjs"
    run = subprocess.run(
        [node_path(), str(script), str(ROOT / "client_js/src"), str(ROUNDS), str(ANSWERS_IN_NODE)],
        capture_output=True,
        text=True,
        check=True,
    )
    rounds = json.loads(run.stdout)["rounds"]
    bare, client = (statistics.median(row[name] for row in rounds) for name in ("bare", "client"))
    ratio = statistics.median(row["client"] / row["bare"] for row in rounds)
    print(f"(a) Node, one core, medians of {ROUNDS} rounds of {ANSWERS_IN_NODE:,}")
    print(f"    loop over random words   {bare / 1e6:8.1f} million/s")
    print(f"    client, GRR              {client / 1e6:8.1f} million/s, ratio {ratio:.2f}")
    status = verdict(client >= MIN_PER_SECOND or ratio >= MIN_RATIO)
    print(f"    target >= {MIN_PER_SECOND / 1e6:.0f} million/s or ratio >= {MIN_RATIO}: {status}")


def simulate_plainly(channel: SubsetSelection, n: int, rng: np.random.Generator) -> Integers:
    """Run the baseline: plain GRR in numpy, with floats and chunks of the same size."""
    counts = np.zeros(channel.k, dtype=np.int64)
    for start in range(0, n, CHUNK):
        size = min(CHUNK, n - start)
        truths = rng.choice(channel.k, size=size, p=SHARES)
        substitutes = rng.integers(0, channel.k - 1, size=size)
        substitutes += substitutes >= truths
        reports = np.where(rng.random(size) < channel.p, truths, substitutes)
        counts += np.bincount(reports, minlength=channel.k)
    return counts


def peak_megabytes() -> float:
    # Linux reports kibibytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_simulation() -> None:
    """Print (b), the time of 10^8 simulated GRR answers and of plain numpy, and the memory."""
    rng = np.random.default_rng(1)
    before = peak_megabytes()
    ours = [
        seconds(lambda: population(CHANNEL, SHARES, SIMULATED, rng))
        for _ in range(SIMULATION_ROUNDS)
    ]
    growth = peak_megabytes() - before
    plain = [
        seconds(lambda: simulate_plainly(CHANNEL, SIMULATED, rng)) for _ in range(SIMULATION_ROUNDS)
    ]
    ratio = statistics.median(ours) / statistics.median(plain)
    print(f"(b) {SIMULATED:,} simulated GRR answers, medians of {SIMULATION_ROUNDS}, one core")
    print(f"    survey.mechanism.simulation {statistics.median(ours):7.2f} s")
    print(f"    plain chunked numpy       {statistics.median(plain):7.2f} s")
    print(f"    ratio {ratio:.2f} (target <= {MAX_RATIO:g}: {verdict(ratio <= MAX_RATIO)})")
    print(f"    peak memory grew by {growth:.1f} MB (target < {MAX_GROWTH_MB:.0f}: ", end="")
    print(f"{verdict(growth < MAX_GROWTH_MB)})")


def measure_audit(title: str, work: Callable[[], list[Check]], target: float) -> None:
    checks: list[Check] = []
    duration = seconds(lambda: checks.extend(work()))
    print(title)
    for check in checks:
        print(f"    {check.name}: {check.detail}")
    if not checks or not all(check.ok for check in checks):
        raise RuntimeError("some checks fail")
    print(
        f"    {duration:.1f} s, all checks pass (target < {target:.0f} s, "
        f"ratio {duration / target:.2f}: {verdict(duration < target)})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        measure()


def measure() -> None:
    """Print all figures."""
    auditor = Auditor(unbundle(Client.load().files), node_path())
    channels = [question.channel for question in publish(WORKPLACE).questions][:N_QUESTIONS]
    coin = grr(2, "3/4")
    measure_client()
    measure_simulation()
    measure_audit(
        f"(c) every draw of {len(channels)} questions about work",
        lambda: auditor.enumeration(channels),
        MAX_ENUMERATION_SECONDS,
    )
    measure_audit(
        f"(d) {SAMPLED:,} perturbations per truth of one channel, cryptographic generator",
        lambda: auditor.sampling([coin], SAMPLED),
        MAX_SAMPLING_SECONDS,
    )


if __name__ == "__main__":
    main()
