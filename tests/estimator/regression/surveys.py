"""Simulated surveys, available real surveys and published examples for regressions."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from survey.mechanism import grr
from tests.conftest import REFERENCE_DATA

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DIE = grr(2, "5/6")
"""Forced response: the truth with probability 4/6, a forced yes or no with 1/6 each."""

TRUE = np.array([[-0.5, 0.8, 0.7], [0.4, -0.5, -0.6]])
"""Coefficients of `people`: intercept, x, u; for answers 1 and 2."""


def people(n: int, seed: int, outcomes: int = 2) -> tuple[Floats, Integers, Integers]:
    """Return a predictor, a correlated binary predictor and true answers of known coefficients."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    u = (rng.random(n) < expit(-0.3 + 0.7 * x)).astype(int)
    slopes = np.column_stack([np.ones(n), x, u]) @ TRUE[: outcomes - 1].T
    eta = np.column_stack([np.zeros(n), slopes])
    shares = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    truth = (rng.random(n)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    return x, u, truth


def rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the rows without missing values."""
    with path.open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row[name] != "NA" for name in columns)]


def nigeria() -> tuple[Integers, Floats, Integers]:
    """Return reports, the six predictors of the published model and civic engagement."""
    columns = ("rr.q1", "cov.asset.index", "cov.married", "cov.age", "cov.education", "cov.female")
    complete = rows(REFERENCE_DATA / "nigeria.csv", columns)
    values = np.array([[float(row[name]) for name in columns] for row in complete])
    reports, asset, married, age, education, female = values.T
    predictors = [asset, married, age / 10, (age / 10) ** 2, education, female]
    civic = np.array([row["civic"] == "TRUE" for row in complete])
    return reports.astype(int), np.column_stack(predictors), civic.astype(int)


def minarets() -> tuple[Integers, Integers, Floats]:
    """Return reports, the group (0: asked directly) and the predictors with their product."""
    columns = ("rrt", "condition", "leftRight.c", "RRdesign")
    complete = rows(REFERENCE_DATA / "minarets.csv", columns)
    values = np.array([[float(row[name]) for name in columns] for row in complete])
    reports, group, side, design = values.T
    predictors = np.column_stack([side, design, side * design])
    return reports.astype(int), group.astype(int), predictors


class RStream:
    """R's default generator after `set.seed(seed)`, which reproduces published examples.

    Mersenne Twister, seeded by 69069 x + 1 modulo 2^32 after 50 rounds of it; normals by inversion
    from two uniforms; a binomial of size 1 from one. Source: R 4.2, src/main/RNG.c,
    src/nmath/snorm.c and rbinom.c.
    """

    def __init__(self, seed: int) -> None:
        words, word = [], seed
        for _ in range(50 + 625):
            word = (69069 * word + 1) % 2**32
            words.append(word)
        self._bits = np.random.MT19937()
        key = np.array(words[51:], dtype=np.uint32)
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}

    def uniform(self, n: int) -> Floats:
        return np.asarray(self._bits.random_raw(n) * 2.3283064365386963e-10)

    def normal(self, n: int) -> Floats:
        first, second = self.uniform(2 * n).reshape(n, 2).T
        return np.asarray(ndtri((np.floor(2**27 * first) + second) / 2**27))

    def ones(self, n: int, p: float) -> Integers:
        """Draw 0 or 1; 1 has probability p <= 1/2."""
        return np.asarray((self.uniform(n) >= 1 - p).astype(int))

    def warner(self, n: int, share: float, p: float) -> tuple[Integers, Integers]:
        """Draw truths and reports for Warner's cards as `RRgen` of the R package RRreg does."""
        is_direct, truth = self.uniform(n) < p, self.ones(n, share)
        self.uniform(n)
        return truth, np.where(is_direct, truth, 1 - truth)


class Vignette(NamedTuple):
    """Data of the vignette of RRreg 0.7.5 after `set.seed(123)`, limited to the fields used here.

    truth, reports, cov, pred    (1000,): Warner's cards with p = 1/6, and two covariates
    mixed                        (1000,): reports; the first 500 use Warner's cards with p = 2/12,
                                 the others are direct answers
    design, age                  (1000,): 1 for cards and -1 for direct answers; a covariate
    """

    truth: Integers
    reports: Integers
    cov: Floats
    pred: Floats
    mixed: Integers
    design: Integers
    age: Floats


FITS_DRAW = 2002
"""Number of uniforms that the vignette's fits consume between `cov` and `pred`: the only number
below 8,000 that reproduces the printed least squares of `cov` on `truth` and `pred`."""


def vignette() -> Vignette:
    """Reproduce the vignette's draws in order; discard those of unused examples."""
    r = RStream(123)
    truth, reports = r.warner(1000, 0.3, 1 / 6)
    cov = np.empty(1000)
    cov[truth == 1] = 1 + r.normal(int(truth.sum()))
    cov[truth == 0] = r.normal(int(1000 - truth.sum()))
    r.uniform(FITS_DRAW)
    pred = r.normal(1000)
    r.warner(1000, 0.45, 0.35)
    r.normal(1000)
    carriers, by_cards = r.warner(500, 0.5, 2 / 12)
    mixed = np.concatenate([by_cards, r.ones(500, 0.35)])
    age = np.concatenate([carriers + 3 * r.normal(500), 0.5 + 3 * r.normal(500)])
    design = np.repeat([1, -1], 500)
    standard = (age - age.mean()) / age.std(ddof=1)
    return Vignette(truth, reports, cov, pred, mixed, design, standard)
