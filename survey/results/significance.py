"""Which of several tests is a finding: pages offer sentences for a paper about findings only."""

from __future__ import annotations


def significance_limit(level: float, tests: int = 1) -> float:
    """Return the p-value below which one of several tests is a finding.

    It is (1 - level)/tests, because the smallest of several p-values is below 1 - level too often
    by chance. Source: Bonferroni 1936.

    >>> significance_limit(0.95), significance_limit(0.95, 5)
    (0.05, 0.01)
    """
    # Without rounding, 1 - 0.9 is slightly below 0.1.
    return round((1 - level) / tests, 12)


def is_finding(
    p_value: float | None,
    low: float | None,
    high: float | None,
    limit: float,
    equal: float = 0.0,
) -> bool:
    """Return whether p is below the limit, and the interval without `equal`, no difference.

    An end that is None is open.
    """
    is_apart = (low is not None and low > equal) or (high is not None and high < equal)
    return p_value is not None and p_value < limit and is_apart
