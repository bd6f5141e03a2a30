"""Compare the reports of other libraries' clients with our exact probabilities.

    python -m tests.benchmarks.mechanism_peers [--short]

Run it after `pip install -e '.[bench]'`. Each installed client randomizes a million times at the
same k and epsilon as our channel, whose probabilities are exact fractions. A cell is one
P(report | truth); its standard error is the binomial standard error of the exact probability.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

import numpy as np

from survey.audit.channels import Truth, distribution, truths_of
from survey.mechanism import AnyChannel, BitVector, SubsetSelection, grr
from survey.mechanism.channel import pack_bits
from tests.benchmarks.short import benchmark_parser, reduced, require_range

RUNS = 1_000_000
PLACES = 100_000
MAX_DIFFERENCE = 5
ROWS = 8
MAX_PLAUSIBLE = 20
"""A larger difference means a fault, even in a short run, whose cells have few reports."""

SHORT = {"RUNS": 2_000, "PLACES": 1_000}

GRR = [grr(2, "3/4"), grr(5, "3/4")]
BITS = BitVector(8, 1, 3, 1)
UNARY = BitVector(4, 1, 2, 1)
SETS = SubsetSelection(7, 2, 3, 1)


@dataclass(frozen=True)
class Peer:
    """A client of another library and our channel with the same guarantee."""

    name: str
    channel: AnyChannel
    truths: list[Truth]
    send: Callable[[Truth], str]


def opendp() -> Iterator[Peer]:
    """Yield OpenDP's boolean, categorical and bit vector randomized response."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    coin, five = GRR
    boolean = dp.m.make_randomized_response_bool(coin.p)
    yield Peer(
        "make_randomized_response_bool",
        coin,
        truths_of(coin),
        lambda truth: str(int(boolean(truth == 1))),
    )
    categories = dp.m.make_randomized_response(list(range(five.k)), five.p)
    yield Peer(
        "make_randomized_response",
        five,
        truths_of(five),
        lambda truth: str(categories(truth)),
    )
    # OpenDP redraws a bit with probability f, which flips it with probability f/2.
    bits = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=BITS.s), dp.discrete_distance(), f=2 * BITS.q
    )
    yield Peer(
        "make_randomized_response_bitvec",
        BITS,
        [(0, 1, 0, 0, 0, 0, 0, 0)],
        lambda ticks: pack(np.unpackbits(np.frombuffer(bits(pack_bytes(ticks)), np.uint8))),
    )


def multi_freq_ldpy() -> Iterator[Peer]:
    """Yield the GRR, symmetric unary encoding and subset selection of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    for channel in GRR:
        epsilon, k = math.log(channel.ratio), channel.k
        yield Peer(
            "GRR_Client",
            channel,
            truths_of(channel),
            lambda truth, k=k, epsilon=epsilon: str(GRR_Client(truth, k, epsilon)),
        )
    epsilon = math.log(UNARY.ratio)
    single_ticks = [ticks for ticks in truths_of(UNARY) if sum(ticks) == 1]
    yield Peer(
        "UE_Client, symmetric",
        UNARY,
        single_ticks,
        lambda ticks: pack(UE_Client(ticks.index(1), UNARY.m, epsilon, False)),
    )
    sets_epsilon = math.log(SETS.ratio)
    yield Peer(
        "SS_Client, order ignored",
        SETS,
        truths_of(SETS),
        lambda truth: pack_bits(map(int, SS_Client(truth, SETS.k, sets_epsilon)), SETS.k),
    )
    arrays = [list(SS_Client(3, SETS.k, sets_epsilon)) for _ in range(PLACES)]
    places = Counter(members.index(3) for members in arrays if 3 in members)
    print(f"  SS_Client sends an ordered array; places of the truth in it: {dict(places)}")


def pack_bytes(ticks: Truth) -> bytes:
    return np.packbits(np.array(ticks, dtype=np.uint8)).tobytes()


def pack(bits: np.ndarray) -> str:
    return pack_bits(map(int, np.flatnonzero(bits)), bits.size)


def compare(peer: Peer) -> float:
    """Run a client and print its figures; return the largest difference in standard errors."""
    n = RUNS // len(peer.truths)
    difference, cells, unknown = 0.0, 0, 0
    for row, truth in enumerate(peer.truths):
        counts = Counter(peer.send(truth) for _ in range(n))
        exact = {code: float(p) for code, p in distribution(peer.channel, truth).items()}
        unknown += sum(counts[code] for code in counts.keys() - exact.keys())
        errors = {
            code: (counts[code] / n - p) / math.sqrt(p * (1 - p) / n) for code, p in exact.items()
        }
        difference, cells = max(difference, *map(abs, errors.values())), cells + len(errors)
        if row == 0:
            print_cells(peer, n, {code: (counts[code] / n, p) for code, p in exact.items()})
    print(f"    largest difference {difference:.2f} standard errors in {cells} cells", end="")
    print(f"; {unknown} reports that our channel never sends" if unknown else "")
    require_range(f"{peer.name}: largest difference", difference, 0, MAX_PLAUSIBLE)
    return difference


def print_cells(peer: Peer, n: int, cells: dict[str, tuple[float, float]]) -> None:
    print(f"  {peer.name}, epsilon {peer.channel.epsilon:.4f}, {n:,} runs per truth")
    print(f"    truth {peer.truths[0]}; report, theirs, ours, of {len(cells)} reports:")
    for code, (theirs, ours) in list(cells.items())[:ROWS]:
        print(f"      {code:>4}  {theirs:.5f}  {ours:.5f}")


def main(arguments: Sequence[str] | None = None) -> None:
    is_short = benchmark_parser(__doc__).parse_args(arguments).short
    with reduced(__name__, SHORT, is_short):
        compare_all()


def compare_all() -> None:
    """Compare the clients of all packages that are installed."""
    differences: list[float] = []
    for package, peers in (("opendp", opendp), ("multi-freq-ldpy", multi_freq_ldpy)):
        try:
            print(f"{package} {metadata.version(package)}")
            differences += map(compare, peers())
        except ImportError as error:
            print(f"{package}: NOT COMPARED, because it is not installed: {error}")
            print("    pip install -e '.[bench]'")
    if differences:
        worst, verdict = (
            max(differences),
            "reached" if max(differences) <= MAX_DIFFERENCE else "MISSED",
        )
        print(
            f"largest difference {worst:.2f} standard errors "
            f"(target <= {MAX_DIFFERENCE}, ratio {worst / MAX_DIFFERENCE:.2f}: {verdict}); "
            "baseline: our exact probabilities"
        )


if __name__ == "__main__":
    main()
