"""Simulate the bias, standard errors and coverage of regressions.

`python -m tests.benchmarks.regression` prints one line per coefficient. Targets in brackets allow
for four standard errors of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.estimator.regression.test_simulation import simulated, simulated_in_groups

N = 3000
ROUNDS = 200

SETTINGS: dict[str, Callable[[], tuple]] = {
    "one channel, two answers": lambda: simulated(2, False, N, ROUNDS),
    "one channel, three answers": lambda: simulated(3, False, N, ROUNDS),
    "randomized predictor": lambda: simulated(2, True, N, ROUNDS),
    "three groups, two answers": lambda: simulated_in_groups(2, N, ROUNDS),
    "three groups, three answers": lambda: simulated_in_groups(3, N, ROUNDS),
}


def main() -> None:
    ratio_margin = 4 / math.sqrt(2 * ROUNDS)
    coverage_margin = 4 * math.sqrt(0.05 * 0.95 / ROUNDS)
    print(f"n = {N:,}, {ROUNDS} surveys per setting")
    print(f"{'setting':30}{'true':>7}{'bias/error':>12}{'error/spread':>14}{'coverage':>10}")
    for name, simulate in SETTINGS.items():
        estimates, errors, truth = simulate()
        for place, true_value in enumerate(truth):
            estimate, error = estimates[:, place], errors[:, place]
            spread = estimate.std(ddof=1)
            bias = (estimate.mean() - true_value) / spread
            coverage = (abs(estimate - true_value) < 1.96 * error).mean()
            ratio = float(error.mean()) / spread
            print(f"{name:30}{true_value:7.2f}{bias:12.3f}{ratio:14.3f}{coverage:10.3f}")
    print(f"{'target':37}{'(0)':>12}{'(1)':>14}{'(.95)':>10}, up to")
    print(f"{'':37}{4 / math.sqrt(ROUNDS):12.3f}{ratio_margin:14.3f}{coverage_margin:10.3f}")


if __name__ == "__main__":
    main()
