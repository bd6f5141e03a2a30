"""How long estimation from raw reports takes beside other libraries, in the same run.

Run as `python -m tests.benchmarks.peers_estimate`, after `pip install -e '.[bench]'`. 10^6 reports
as each library takes them from its own client (a list for theirs, stored bytes for ours), to
estimated shares of all options; ours with standard errors, most likely shares and intervals.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from survey.estimator import debias, proportions
from survey.estimator.core.intervals import _ends
from survey.mechanism import BitVector, SubsetSelection, from_epsilon
from survey.mechanism.codes import index_bytes

N = 1_000_000
ROUNDS = 5
TARGET = 30
CLOSE = 1e-6

GRR = from_epsilon(10, math.log(3))
BITS = BitVector(10, 1, 3, 1)
SETS = SubsetSelection(12, 3, 3, 1)

Floats = NDArray[np.float64]


class Peer(NamedTuple):
    """One estimator of another library: from raw reports to estimated shares."""

    name: str
    channel: SubsetSelection | BitVector
    estimate: Callable[[], Floats]
    rounds: int


def reports_of(channel: SubsetSelection | BitVector) -> NDArray[np.integer]:
    """10^6 simulated reports: indices, or rows of bits."""
    rng = np.random.default_rng(1)
    options = channel.m if isinstance(channel, BitVector) else channel.k
    truths = rng.choice(options, size=N, p=rng.dirichlet(np.ones(options)))
    if isinstance(channel, BitVector):
        truths = np.eye(options, dtype=np.uint8)[truths]
    return channel.perturb(truths, rng)


def stored(channel: SubsetSelection | BitVector, reports: NDArray[np.integer]) -> NDArray[np.uint8]:
    """The bytes our server keeps."""
    if reports.ndim == 2:
        return np.packbits(reports, axis=1)
    return reports.astype(f">u{index_bytes(channel.k)}").view(np.uint8).reshape(N, -1)


def shares(channel: SubsetSelection | BitVector, codes: NDArray[np.uint8]) -> Floats:
    """What theirs do: count and invert."""
    return debias(channel.count(codes) / N, channel)


def everything(channel: SubsetSelection | BitVector, codes: NDArray[np.uint8]) -> Floats:
    n = N if isinstance(channel, BitVector) or channel.d > 1 else None
    return proportions(channel.count(codes), channel, n=n).estimate


def pure_ldp(raw: dict[str, NDArray[np.integer]]) -> Iterator[Peer]:
    from pure_ldp.frequency_oracles.direct_encoding import DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEServer

    def run(server: object, reports: list) -> Floats:
        for report in reports:
            server.aggregate(report)
        options = range(1, server.d + 1)
        return np.array([server.estimate(i, suppress_warnings=True) for i in options]) / N

    listed, rows = raw["grr"].tolist(), list(raw["bits"].astype(float))
    epsilon = math.log(GRR.ratio)
    yield Peer("DEServer", GRR, lambda: run(DEServer(epsilon, GRR.k), listed), ROUNDS)
    # Their symmetric unary encoding keeps a bit with chance e^(eps/2)/(e^(eps/2)+1).
    per_bit = 2 * math.log(BITS.T / BITS.L)
    yield Peer(
        "UEServer, symmetric",
        BITS,
        lambda: run(UEServer(per_bit, BITS.m, use_oue=False), rows),
        ROUNDS,
    )


def multi_freq_ldpy(raw: dict[str, NDArray[np.integer]]) -> Iterator[Peer]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI

    listed, rows = raw["grr"].tolist(), list(raw["bits"].astype(float))
    sets = [np.flatnonzero(row) for row in raw["sets"]]
    epsilon, per_bit = math.log(GRR.ratio), 2 * math.log(BITS.T / BITS.L)
    yield Peer("GRR_Aggregator_MI", GRR, lambda: GRR_Aggregator_MI(listed, GRR.k, epsilon), ROUNDS)
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
    def once() -> float:
        _ends.cache_clear()
        start = time.process_time()
        work()
        return time.process_time() - start

    return statistics.median(once() for _ in range(rounds))


def compared(peer: Peer, codes: NDArray[np.uint8]) -> float:
    """Print one row; the ratio of the two times."""
    mine, theirs = everything(peer.channel, codes), np.asarray(peer.estimate())
    # Theirs may clip at 0 and rescale: compare with the same done to ours.
    clipped = np.maximum(mine, 0)
    off = min(np.abs(theirs - each).max() for each in (mine, clipped, clipped / clipped.sum()))
    their_time = seconds(peer.estimate, peer.rounds)
    our_time = seconds(lambda: shares(peer.channel, codes), ROUNDS)
    whole = seconds(lambda: everything(peer.channel, codes), ROUNDS)
    ratio = their_time / our_time
    print(
        f"  {peer.name:<30}{1000 * their_time:>10.1f}{1000 * our_time:>8.2f}{ratio:>8.0f}"
        f"{TARGET:>8}  {'yes' if ratio >= TARGET else 'MISSED':<9}{1000 * whole:>8.2f}"
        f"{their_time / whole:>8.0f}  {'the same' if off < CLOSE else f'up to {off:.2g} apart'}"
    )
    return ratio


def main() -> None:
    channels = {"grr": GRR, "bits": BITS, "sets": SETS}
    raw = {name: reports_of(channel) for name, channel in channels.items()}
    codes = {channel: stored(channel, raw[name]) for name, channel in channels.items()}
    print(f"n = {N:,}; milliseconds of processor, median of {ROUNDS} (SS: once)")
    print(f"  {'':<30}{'':>10}{'ours':>8}{'':>26} {'with intervals':>17}")
    print(
        f"  {'theirs':<30}{'theirs':>10}{'shares':>8}{'ratio':>8}{'target':>8}  {'reached':<9}"
        f"{'ours':>8}{'ratio':>8}  estimates"
    )
    ratios = []
    for package, peers in (("pure-ldp", pure_ldp), ("multi-freq-ldpy", multi_freq_ldpy)):
        try:
            print(f"{package} {metadata.version(package)}")
            ratios += [compared(peer, codes[peer.channel]) for peer in peers(raw)]
        except ImportError as error:
            print(f"{package}: NOT COMPARED, it is not installed or does not import: {error}")
            print("    pip install -e '.[bench]'")
    if ratios:
        print(f"least ratio {min(ratios):.0f} (target >= {TARGET})")


if __name__ == "__main__":
    main()
