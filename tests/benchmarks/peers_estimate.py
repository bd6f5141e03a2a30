"""Compare the time of estimation from raw reports with that of other libraries, in the same run.

    python -m tests.benchmarks.peers_estimate [--short]

Run it after `pip install -e '.[bench]'`. The input is
10^6 reports in each library's own format: lists for the peers, stored bytes for ours. The output is
the estimated shares of all options. A second column for ours adds standard errors, maximum
likelihood shares and intervals.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import NamedTuple

import numpy as np

from survey.estimator import debias, proportions
from survey.estimator.core.intervals import _ends
from survey.mechanism import BitVector, SubsetSelection, from_epsilon
from survey.mechanism.channel import AnyIntegers, Codes, Floats, index_bytes
from tests.benchmarks.short import benchmark_parser, reduced, require_range

N = 1_000_000
ROUNDS = 5
MIN_RATIO = 30
TOLERANCE = 1e-6
MAX_DIFFERENCE = 0.05
"""A larger difference between a peer's shares and ours means a faulty benchmark."""

SHORT = {"N": 10_000, "ROUNDS": 1}

GRR = from_epsilon(10, math.log(3))
BITS = BitVector(10, 1, 3, 1)
SETS = SubsetSelection(12, 3, 3, 1)


class Peer(NamedTuple):
    """An estimator of another library, from raw reports to estimated shares."""

    name: str
    channel: SubsetSelection | BitVector
    estimate: Callable[[], Floats]
    rounds: int


def simulate_reports(channel: SubsetSelection | BitVector) -> AnyIntegers:
    """Simulate 10^6 reports: indices, or rows of bits."""
    rng = np.random.default_rng(1)
    options = channel.m if isinstance(channel, BitVector) else channel.k
    truths = rng.choice(options, size=N, p=rng.dirichlet(np.ones(options)))
    if isinstance(channel, BitVector):
        truths = np.eye(options, dtype=np.uint8)[truths]
    return channel.perturb(truths, rng)


def stored_codes(channel: SubsetSelection | BitVector, reports: AnyIntegers) -> Codes:
    """Return reports as the server stores them."""
    if reports.ndim == 2:
        return np.packbits(reports, axis=1)
    return reports.astype(f">u{index_bytes(channel.k)}").view(np.uint8).reshape(N, -1)


def shares(channel: SubsetSelection | BitVector, codes: Codes) -> Floats:
    """Count and invert, as the peers do."""
    return debias(channel.count(codes) / N, channel)


def shares_with_intervals(channel: SubsetSelection | BitVector, codes: Codes) -> Floats:
    n = N if isinstance(channel, BitVector) or channel.d > 1 else None
    return proportions(channel.count(codes), channel, n=n).estimate


def pure_ldp(raw: dict[str, AnyIntegers]) -> Iterator[Peer]:
    from pure_ldp.frequency_oracles.direct_encoding import DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEServer

    def run(server: object, reports: list) -> Floats:
        for report in reports:
            server.aggregate(report)
        options = range(1, server.d + 1)
        return np.array([server.estimate(i, suppress_warnings=True) for i in options]) / N

    indices, rows = raw["grr"].tolist(), list(raw["bits"].astype(float))
    epsilon = math.log(GRR.ratio)
    yield Peer("DEServer", GRR, lambda: run(DEServer(epsilon, GRR.k), indices), ROUNDS)
    # Their symmetric unary encoding keeps a bit with probability e^(eps/2)/(e^(eps/2)+1).
    per_bit = 2 * math.log(BITS.T / BITS.L)
    yield Peer(
        "UEServer, symmetric",
        BITS,
        lambda: run(UEServer(per_bit, BITS.m, use_oue=False), rows),
        ROUNDS,
    )


def multi_freq_ldpy(raw: dict[str, AnyIntegers]) -> Iterator[Peer]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI

    indices, rows = raw["grr"].tolist(), list(raw["bits"].astype(float))
    sets = [np.flatnonzero(row) for row in raw["sets"]]
    epsilon, per_bit = math.log(GRR.ratio), 2 * math.log(BITS.T / BITS.L)
    yield Peer("GRR_Aggregator_MI", GRR, lambda: GRR_Aggregator_MI(indices, GRR.k, epsilon), ROUNDS)
    yield Peer(
        "UE_Aggregator_MI, symmetric", BITS, lambda: UE_Aggregator_MI(rows, per_bit, False), ROUNDS
    )
    yield Peer(
        "SS_Aggregator_MI",
        SETS,
        lambda: SS_Aggregator_MI(sets, SETS.k, math.log(SETS.ratio)),
        1,
    )


def seconds(work: Callable[[], Floats], rounds: int) -> float:
    def run_time() -> float:
        _ends.cache_clear()
        start = time.process_time()
        work()
        return time.process_time() - start

    return statistics.median(run_time() for _ in range(rounds))


def compare(peer: Peer, codes: Codes) -> float:
    """Print a row; return the ratio of the peer's time to ours."""
    estimate, peer_estimate = (
        shares_with_intervals(peer.channel, codes),
        np.asarray(peer.estimate()),
    )
    # Peers may clip at 0 and rescale, so compare with our clipped and rescaled shares, too.
    clipped = np.maximum(estimate, 0)
    variants = (estimate, clipped, clipped / clipped.sum())
    difference = min(np.abs(peer_estimate - variant).max() for variant in variants)
    require_range(f"{peer.name}: difference of the shares", difference, 0, MAX_DIFFERENCE)
    peer_time = seconds(peer.estimate, peer.rounds)
    our_time = seconds(lambda: shares(peer.channel, codes), ROUNDS)
    full_time = seconds(lambda: shares_with_intervals(peer.channel, codes), ROUNDS)
    ratio = peer_time / our_time
    agreement = "equal" if difference < TOLERANCE else f"up to {difference:.2g} apart"
    print(
        f"  {peer.name:<30}{1000 * peer_time:>10.1f}{1000 * our_time:>8.2f}{ratio:>8.0f}"
        f"{MIN_RATIO:>8}  {'yes' if ratio >= MIN_RATIO else 'MISSED':<9}{1000 * full_time:>8.2f}"
        f"{peer_time / full_time:>8.0f}  {agreement}"
    )
    return ratio


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        compare_all()


def compare_all() -> None:
    """Compare the estimators of all packages that are installed."""
    channels = {"grr": GRR, "bits": BITS, "sets": SETS}
    raw = {name: simulate_reports(channel) for name, channel in channels.items()}
    codes = {channel: stored_codes(channel, raw[name]) for name, channel in channels.items()}
    print(f"n = {N:,}; milliseconds of CPU time, median of {ROUNDS} (SS: once)")
    print(f"  {'':<30}{'':>10}{'ours':>8}{'':>26} {'with intervals':>17}")
    print(
        f"  {'peer':<30}{'peer':>10}{'shares':>8}{'ratio':>8}{'target':>8}  {'reached':<9}"
        f"{'ours':>8}{'ratio':>8}  estimates"
    )
    ratios = []
    for package, peers in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq_ldpy)):
        try:
            print(f"{package} {metadata.version(package)}")
            ratios += [compare(peer, codes[peer.channel]) for peer in peers(raw)]
        except ImportError as error:
            print(f"{package}: NOT COMPARED, because the import fails: {error}")
            print("    pip install -e '.[bench]'")
    if ratios:
        print(f"minimum ratio {min(ratios):.0f} (target >= {MIN_RATIO})")


if __name__ == "__main__":
    main()
