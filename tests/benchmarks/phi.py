"""Coverage of the interval of phi; run `python -m tests.benchmarks.phi [--short] [surveys]`.

The baseline in the same run is the interval of the delta method on the debiased table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from survey.estimator import crosstab, phi
from survey.mechanism import from_epsilon
from tests.benchmarks.short import benchmark_parser, reduced, require_range

TARGET = 0.945
CASES = [
    (50, 2.0, 0.3, 0.3, 1.0),
    (50, 8.0, 0.1, 0.2, 0.3),
    (50, 1.0, 0.3, 0.3, 1.0),
    (200, 4.0, 0.05, 0.05, 0.0),
    (200, 2.0, 0.1, 0.1, 1.0),
    (200, 8.0, 0.05, 0.05, 0.0),
    (1000, 2.0, 0.3, 0.3, -0.4285),
]
"""Reports, epsilon, both shares, phi."""

SHORT = {"CASES": CASES[1:2]}
SHORT_SURVEYS = 10
LEAST_PLAUSIBLE = 0.7
"""A coverage below this means a fault, even in a short run."""


def of_shares(table: np.ndarray) -> float:
    u, v = np.clip([table[0].sum(), table[:, 0].sum()], 1e-6, 1 - 1e-6)
    return float((table[0, 0] - u * v) / np.sqrt(u * (1 - u) * v * (1 - v)))


def delta_interval(counts: np.ndarray, inverse: np.ndarray) -> tuple[float, float]:
    """Return the ends of the delta method, by differences of each kind of report."""
    n, f = counts.sum(), counts.ravel() / counts.sum()

    def value(shares: np.ndarray) -> float:
        return of_shares((shares @ inverse).reshape(2, 2))

    slopes = np.array([(value(f + 1e-5 * e) - value(f - 1e-5 * e)) / 2e-5 for e in np.eye(4)])
    error = np.sqrt(max(f @ slopes**2 - (f @ slopes) ** 2, 0.0) / n)
    reach = ndtri(0.975) * error
    return value(f) - reach, value(f) + reach


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("surveys", nargs="?", type=int, default=300)
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        measure(SHORT_SURVEYS if options.short else options.surveys)


def measure(surveys: int) -> None:
    """Print the coverage of each case, and compare the least with its target."""
    least = least_by_delta = 1.0
    for n, epsilon, u, v, truth in CASES:
        channel, rng = from_epsilon(2, epsilon), np.random.default_rng(1)
        both = u * v + truth * np.sqrt(u * (1 - u) * v * (1 - v))
        cells = np.maximum(np.array([[both, u - both], [v - both, 1 - u - v + both]]), 0.0)
        chances = (channel.matrix.T @ cells @ channel.matrix).ravel()
        inverse = np.linalg.inv(np.kron(channel.matrix, channel.matrix))
        covered, by_delta = 0, 0
        for _ in range(surveys):
            counts = rng.multinomial(n, chances / chances.sum()).reshape(2, 2)
            found = phi(crosstab(counts, [channel, channel]))
            covered += found.conf_low - 1e-9 <= truth <= found.conf_high + 1e-9
            low, high = delta_interval(counts, inverse)
            by_delta += low <= truth <= high
        least = min(least, covered / surveys)
        least_by_delta = min(least_by_delta, by_delta / surveys)
        print(
            f"n {n}, epsilon {epsilon:g}, shares {u:g} and {v:g}, phi {truth:g}: coverage "
            f"{covered / surveys:.3f}, delta method {by_delta / surveys:.3f}"
        )
    # Two standard errors of a simulated coverage.
    slack = 2 * np.sqrt(TARGET * (1 - TARGET) / surveys)
    verdict = "met" if least >= TARGET - slack else "missed"
    print(
        f"least coverage {least:.3f}, target {TARGET} - {slack:.3f} (simulation): {verdict}, "
        f"ratio {least / TARGET:.3f}; delta method {least_by_delta:.3f}"
    )
    require_range("least coverage", least, LEAST_PLAUSIBLE, 1.0)
    if verdict != "met":
        sys.exit(1)


if __name__ == "__main__":
    main()
