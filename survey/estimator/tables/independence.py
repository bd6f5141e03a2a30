"""Whether answers to questions are related at all: Pearson's test on the table of reports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike

from survey.errors import CountsError
from survey.estimator.core.arguments import checked_arguments
from survey.estimator.core.result import Result
from survey.estimator.tables.crosstab import whole_table
from survey.mechanism.arrays import Floats, Integers

SMALL_EXPECTED = 5.0
"""Expected counts below this make chi-square's approximation doubtful ..."""

SMALL_SHARE = 0.2
"""... when more than this share of the cells has one, or any is below 1 (Cochran 1954)."""


@dataclass(frozen=True, eq=False, repr=False)
class Independence(Result):
    """Pearson's chi-square test of independence; arrays have the shape of the table of reports.

    statistic       sum (c - expected)^2/expected
    df              degrees of freedom, for the reports that occurred
    p_value         P(chi-square of df >= statistic)
    n               reports
    small_expected  whether expected counts are too small for a reliable p-value
    counts          the reports
    expected        expected counts if the questions were independent
    residual        (c - expected)/sqrt(expected), 0 where the expected count is 0
    """

    statistic: float
    df: int
    p_value: float
    n: int
    small_expected: bool
    counts: Integers
    expected: Floats
    residual: Floats

    @property
    def index_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return one name per question."""
        return tuple(f"question_{place}" for place in range(self.counts.ndim))


@checked_arguments
def independence(joint_counts: ArrayLike) -> Independence:
    """Test whether the true answers to two or more questions are (mutually) independent.

    `joint_counts` has shape (k1, k2, ...): how often each combination of REPORTS occurred, not
    debiased. This is valid, because devices randomize each question separately: independent truths
    give independent reports, and the table of reports is an ordinary sample of n people. If the
    channels have inverses, the converse is true too, so the test has power against every relation.
    Type I error at .05, simulated: .042 to .058 (`tests.benchmarks.crosstab`).
    On debiased counts the same test is wrong: randomization makes their variance much larger than
    the sampling error that chi-square assumes (type I error .27 to 1). It is not valid for reports
    of sets (subset selection with d > 1), where one report is in several cells.

    df = (number of cells - 1) - sum (k - 1) for k answers per question, (k1-1)(k2-1) for two.
    Reports that never occurred do not count. Source: Pearson 1900; Fisher 1922.

    Raises CountsError for impossible counts, or if all reports to a question are the same.

    >>> test = independence([[300, 200], [200, 300]])
    >>> round(test.statistic, 9), test.df, test.small_expected
    (40.0, 1, False)
    """
    from scipy.special import chdtrc

    counts = whole_table(joint_counts, np.shape(joint_counts), "one axis per question")
    if counts.ndim < 2:
        raise CountsError(
            f"counts of shape {counts.shape}: independence needs at least two questions"
        )
    n = int(counts.sum())
    if n == 0:
        raise CountsError("n = 0: independence cannot be tested without reports")
    margins = [
        counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis != place)) / n
        for place in range(counts.ndim)
    ]
    sizes = [int(np.count_nonzero(margin)) for margin in margins]
    for place, size in enumerate(sizes):
        if size < 2:
            raise CountsError(
                f"question {place}: all reports are the same, so independence cannot be tested"
            )
    expected = n * np.asarray(reduce(np.multiply.outer, margins))
    root = np.sqrt(expected)
    residual = np.divide(counts - expected, root, out=np.zeros(root.shape), where=root > 0)
    statistic = float(np.sum(residual**2))
    df = int(np.prod(sizes)) - 1 - sum(size - 1 for size in sizes)
    return Independence(
        statistic=statistic,
        df=df,
        p_value=float(chdtrc(df, statistic)),
        n=n,
        small_expected=_too_small(expected[expected > 0]),
        counts=counts,
        expected=expected,
        residual=residual,
    )


def _too_small(expected: Floats) -> bool:
    return bool(
        expected.min() < 1 or np.mean(expected < SMALL_EXPECTED) > SMALL_SHARE
    )  # Cochran's rule
