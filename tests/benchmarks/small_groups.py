"""Compare model-based shares of small groups with direct ones: error, coverage and baselines.

    python -m tests.benchmarks.small_groups [--short] [ROUNDS]

A seeded simulation draws the true shares of each group (a Dirichlet distribution; the standard
deviation is that of the first option), then reports. For each setting it prints the root mean
squared error of the direct estimate (the baseline) and of the model, the coverage of the model's
95% intervals averaged over groups, of the group covered least, and of a naive interval: the
estimate at DerSimonian and Laird's variance between groups
(`statsmodels.stats.meta_analysis.combine_effects`), with the error of a known variance. Figures are
averages over the options. "outlier": in one group the share of the first option is .8; the model
cannot cover this group.

A second table does the same for multilevel regression with post-stratification, with an eighth
of the surveys. There, log odds vary between groups by `sd` and between three strata, whose known
populations differ from the composition of the reports; the baseline is the direct estimate weighted
to these populations. Settings of the first table show what happens if shares are not normal on the
scale of log odds, in a single stratum.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from statsmodels.stats.meta_analysis import combine_effects

from survey.estimator import GroupShares, group_shares, multilevel_shares
from survey.mechanism import from_epsilon
from survey.mechanism.channel import Floats
from tests.benchmarks.short import benchmark_parser, reduced, require_range

ROUNDS = 400
LEVEL, Z = 0.95, 1.959964
MIN_COVERAGE = 0.93
"""Target of the coverage averaged over groups."""

MAX_RATIO = 0.9
"""Target of the error relative to the direct one where groups differ less than by their errors."""

OUTLIER = 0.8


@dataclass(frozen=True)
class Setting:
    """Groups of `sizes` (repeated) with shares of mean `mean`, the first with this deviation."""

    groups: int
    epsilon: float
    sizes: tuple[int, ...]
    sd: float
    mean: tuple[float, ...] = (0.3, 0.7)
    outlier: bool = False
    max_ratio: float = MAX_RATIO

    def __str__(self) -> str:
        sizes = f"{min(self.sizes)}-{max(self.sizes)}" if len(self.sizes) > 1 else self.sizes[0]
        outlier = " outlier" if self.outlier else ""
        shares = f"k {len(self.mean)}, {self.mean[0]} ± {self.sd}{outlier}"
        return f"{self.groups} × {sizes}, epsilon {self.epsilon:g}, {shares}"


UNEQUAL = (25, 50, 100, 400)
RARE = (0.05, 0.95)
NEAR_ZERO = (0.1, 0.9)
FOUR = (0.1, 0.2, 0.3, 0.4)
SETTINGS = (
    Setting(12, 0.8, (140,), 0.05, max_ratio=0.6),
    Setting(12, 0.8, (140,), 0.0, max_ratio=0.5),
    Setting(5, 0.8, (140,), 0.0),
    Setting(5, 0.8, (140,), 0.1),
    Setting(12, 0.8, (140,), 0.1),
    Setting(30, 0.8, (140,), 0.1),
    Setting(60, 0.8, (140,), 0.08),
    Setting(12, 1.0, UNEQUAL, 0.0),
    Setting(12, 1.0, UNEQUAL, 0.1),
    Setting(12, 2.0, UNEQUAL, 0.1),
    Setting(12, 4.0, UNEQUAL, 0.1),
    Setting(12, 4.0, UNEQUAL, 0.02, mean=RARE),
    Setting(12, 8.0, UNEQUAL, 0.0),
    Setting(12, 8.0, UNEQUAL, 0.02, mean=RARE),
    Setting(12, 0.8, (140,), 0.1, mean=NEAR_ZERO),
    Setting(12, 1.0, (200,), 0.0, mean=FOUR),
    Setting(12, 1.0, (200,), 0.05, mean=FOUR),
    Setting(12, 3.0, UNEQUAL, 0.05, mean=FOUR),
    # Where groups differ more than their errors, the model leaves the estimates nearly alone.
    Setting(12, 4.0, (400,), 0.2, max_ratio=1.01),
    Setting(12, 0.8, (140,), 0.05, outlier=True, max_ratio=1.0),
)


@dataclass(frozen=True)
class Measured:
    """Root mean squared errors, and coverage averaged over groups and of the worst one."""

    direct: float
    model: float
    naive: float
    coverage: float
    worst: float
    naive_coverage: float


def true_shares(setting: Setting, rng: np.random.Generator) -> Floats:
    """Draw the shares of each group, shape (groups, options)."""
    mean = np.array(setting.mean)
    if setting.sd == 0:
        shares = np.tile(mean, (setting.groups, 1))
    else:
        precision = mean[0] * (1 - mean[0]) / setting.sd**2 - 1
        shares = rng.dirichlet(mean * precision, setting.groups)
    if setting.outlier:
        shares[0] = [OUTLIER, *(1 - OUTLIER) * mean[1:] / mean[1:].sum()]
    return np.asarray(shares)


def naive(shares: GroupShares, option: int) -> tuple[Floats, Floats]:
    """Return the estimate and its error as if the variance between groups were known."""
    y, D = shares.direct[:, option], shares.direct_error[:, option] ** 2
    with warnings.catch_warnings():
        # Errors that are not used are roots of negative numbers if the variance is negative.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = combine_effects(y, D, method_re="chi2")
    A = max(float(result.tau2), 0.0)
    pooled = result.mean_effect_re if A > 0 else result.mean_effect_fe
    kept = A / (A + D)
    variance = A * (1 - kept) + (1 - kept) ** 2 / (1 / (A + D)).sum()
    return pooled + kept * (y - pooled), np.sqrt(variance)


def measured(setting: Setting, rounds: int, seed: int = 20) -> Measured:
    """Simulate a setting; a fixed seed gives the same surveys each time."""
    rng = np.random.default_rng(seed)
    k = len(setting.mean)
    channel = from_epsilon(k, setting.epsilon)
    sizes = np.resize(setting.sizes, setting.groups)
    errors, hits, naive_hits = [], [], []
    for _ in range(rounds):
        truth = true_shares(setting, rng)
        shares = group_shares(rng.multinomial(sizes, truth @ channel.matrix), channel, level=LEVEL)
        center, error = np.stack([naive(shares, j) for j in range(k)], axis=-1)
        estimates = shares.direct, shares.estimate, center
        errors.append([((estimate - truth) ** 2).mean() for estimate in estimates])
        hits.append(((shares.conf_low <= truth) & (truth <= shares.conf_high)).mean(axis=1))
        naive_hits.append(np.abs(center - truth) <= Z * error)
    direct, model, baseline = np.sqrt(np.mean(errors, axis=0)).tolist()
    coverage = np.mean(hits, axis=0)
    return Measured(
        direct, model, baseline, coverage.mean(), coverage.min(), float(np.mean(naive_hits))
    )


@dataclass(frozen=True)
class StratifiedSetting:
    """Groups of three strata, `size` reports a group, whose log odds vary between groups by `sd`.

    `base` are the log odds of the answers but the first in the first stratum.
    """

    groups: int
    epsilon: float
    size: int
    sd: float
    base: tuple[float, ...] = (0.8,)
    max_ratio: float = MAX_RATIO

    def __str__(self) -> str:
        groups = f"{self.groups} × {self.size} in 3 strata, epsilon {self.epsilon:g}"
        return f"{groups}, k {len(self.base) + 1}, log odds ± {self.sd}"


STRATUM_EFFECTS = np.array([0.0, 0.5, -0.5])
STRATIFIED = (
    StratifiedSetting(12, 0.8, 240, 0.3, max_ratio=0.6),
    StratifiedSetting(12, 0.8, 240, 0.0, max_ratio=0.5),
    StratifiedSetting(30, 0.8, 240, 0.5),
    StratifiedSetting(12, 2.0, 240, 0.3),
    StratifiedSetting(12, 4.0, 240, 0.3),
    StratifiedSetting(12, 1.0, 240, 0.3, base=(0.3, 0.6, 0.9)),
    StratifiedSetting(12, 8.0, 90, 0.5, base=(3.0,)),
)
UNSTRATIFIED = (
    # Here groups differ more than their errors.
    Setting(12, 0.8, (140,), 0.15, max_ratio=1.0),
    Setting(12, 1.0, UNEQUAL, 0.05, mean=FOUR),
    Setting(12, 4.0, UNEQUAL, 0.02, mean=RARE),
    # Most shares are near 0, which log odds describe badly.
    Setting(12, 0.8, (140,), 0.1, mean=NEAR_ZERO),
)


def stratified_shares(
    setting: StratifiedSetting, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Draw the shares (groups, strata, options), the populations and the composition of reports."""
    k = len(setting.base) + 1
    # Differences of independent effects have the deviation sd.
    effects = setting.sd / np.sqrt(2) * rng.standard_normal((setting.groups, 1, k))
    strata = np.outer(STRATUM_EFFECTS, np.append(0.0, np.ones(k - 1)))
    eta = effects + strata + np.append(0.0, setting.base)
    shares = np.exp(eta) / np.exp(eta).sum(axis=2, keepdims=True)
    people, reports = (rng.dirichlet([6, 6, 6], setting.groups) for _ in range(2))
    return shares, people, reports


def measured_multilevel(
    setting: Setting | StratifiedSetting, rounds: int, seed: int = 20
) -> Measured:
    """Simulate the multilevel model; the naive interval is estimate -+ z direct error."""
    rng = np.random.default_rng(seed)
    errors, hits, naive_hits = [], [], []
    k = len(setting.mean) if isinstance(setting, Setting) else len(setting.base) + 1
    channel = from_epsilon(k, setting.epsilon)
    for _ in range(rounds):
        if isinstance(setting, Setting):
            cells = true_shares(setting, rng)[:, None, :]
            people = np.ones(cells.shape[:2])
            sizes = np.resize(setting.sizes, people.shape)
        else:
            cells, people, reports = stratified_shares(setting, rng)
            sizes = rng.multinomial(setting.size, reports)
        truth = np.einsum("gs,gsj->gj", people, cells)
        counts = rng.multinomial(sizes, cells @ channel.matrix)
        shares = multilevel_shares(counts, channel, people, level=LEVEL)
        direct, error = shares.direct, shares.direct_error
        errors.append([((x - truth) ** 2).mean() for x in (direct, shares.estimate, direct)])
        hits.append(((shares.conf_low <= truth) & (truth <= shares.conf_high)).mean(axis=1))
        naive_hits.append(np.abs(direct - truth) <= Z * error)
    direct_error, model, _ = np.sqrt(np.nanmean(errors, axis=0)).tolist()
    coverage = np.mean(hits, axis=0)
    return Measured(
        direct_error,
        model,
        direct_error,
        coverage.mean(),
        coverage.min(),
        float(np.mean(naive_hits)),
    )


SHORT = {
    "SETTINGS": SETTINGS[:1],
    "STRATIFIED": STRATIFIED[:1],
    "UNSTRATIFIED": UNSTRATIFIED[:1],
}
SHORT_ROUNDS = 8
LEAST_PLAUSIBLE = 0.8
"""A coverage, averaged over groups, below this means a fault, even in a short run."""


def show(
    title: str,
    settings: Sequence[Setting | StratifiedSetting],
    measure: Callable[[Any, int], Measured],
    rounds: int,
) -> None:
    print(f"{title}: {rounds} surveys per setting, {100 * LEVEL:g}% intervals")
    print(f"{'groups × size, epsilon, options, spread':<58}{'direct':>8}{'model':>8}{'ratio':>7}"
          f"{'target':>8}{'naive':>8}{'coverage':>10}{'target':>8}{'worst':>7}{'naive':>7}"
          f"{'seconds':>9}")  # fmt: skip
    for setting in settings:
        start = perf_counter()
        figures = measure(setting, rounds)
        ratio = figures.model / figures.direct
        require_range(f"{setting}: coverage", figures.coverage, LEAST_PLAUSIBLE, 1.0)
        is_met = ratio <= setting.max_ratio and figures.coverage >= MIN_COVERAGE
        print(
            f"{setting!s:<58}{figures.direct:>8.4f}{figures.model:>8.4f}{ratio:>7.2f}"
            f"{setting.max_ratio:>8}{figures.naive:>8.4f}{figures.coverage:>10.4f}"
            f"{MIN_COVERAGE:>8}{figures.worst:>7.3f}{figures.naive_coverage:>7.3f}"
            f"{perf_counter() - start:>9.1f}  {'yes' if is_met else 'MISSED'}",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    with reduced(__name__, SHORT, options.short):
        compare(SHORT_ROUNDS if options.short else options.rounds)


def compare(rounds: int) -> None:
    """Print both tables."""
    show("hierarchical model", SETTINGS, measured, rounds)
    show(
        "multilevel regression",
        (*STRATIFIED, *UNSTRATIFIED),
        measured_multilevel,
        max(rounds // 8, 1),
    )


if __name__ == "__main__":
    main()
